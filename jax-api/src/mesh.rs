//! [`Mesh`] and [`NamedSharding`]: arrays over several devices.

use std::fmt;
use std::sync::Arc;

use ifrt::DeviceList;
use jaxlib_core::PartitionSpec;

use crate::device::Device;
use crate::error::{Error, Result};

/// Devices in a grid whose axes have names. A cheap clone.
///
/// # Examples
/// ```
/// # use jax_api::prelude::*;
/// # use ifrt::fake::{FakeClient, FakeOptions};
/// # fn main() -> jax_api::Result<()> {
/// # let fake = FakeClient::new(FakeOptions { num_devices: 8, ..Default::default() });
/// # let client = Client::from_ifrt(fake);
/// let mesh = Mesh::new(client.devices(), [("data", 4), ("model", 2)])?;
/// let sharding = NamedSharding::new(&mesh, P!["data", None])?;
/// let x = device_put((&[0.0_f32; 12], [4, 3]), &sharding)?;
/// assert_eq!(x.addressable_shards()?.len(), 8);
/// # Ok(())
/// # }
/// ```
///
/// # Mirrors
/// `jax.sharding.Mesh`.
#[derive(Clone)]
pub struct Mesh {
    core: jaxlib_core::Mesh,
    client: jaxlib_core::Client,
}

/// An array spread over a mesh by the names of its axes. A cheap clone.
///
/// # Mirrors
/// `jax.sharding.NamedSharding`.
#[derive(Clone)]
pub struct NamedSharding {
    core: jaxlib_core::NamedSharding,
    client: jaxlib_core::Client,
}

impl Mesh {
    /// The devices as a grid, the last axis fastest.
    ///
    /// # Errors
    /// If the sizes do not give the number of devices, a name or device stands there twice, or the
    /// devices are of several clients.
    pub fn new<'a>(
        devices: &[Device],
        axes: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Result<Self> {
        let (client, devices) = one_client(devices)?;
        Ok(Self {
            core: jaxlib_core::Mesh::new(devices, axes)?,
            client,
        })
    }

    /// Names and sizes of the axes.
    pub fn axes(&self) -> impl ExactSizeIterator<Item = (&str, usize)> {
        self.core.axes()
    }
}

/// The one client of these devices.
pub(crate) fn one_client(devices: &[Device]) -> Result<(jaxlib_core::Client, DeviceList)> {
    let Some(first) = devices.first() else {
        return Err(Error::invalid("at least one device is needed"));
    };
    let client = first.client().clone();
    if let Some(other) = devices.iter().find(|d| !d.client().is_same(&client)) {
        return Err(Error::invalid(format!(
            "the devices {first} and {other} belong to different clients"
        )));
    }
    let list = devices.iter().map(|device| Arc::clone(device.core()));
    Ok((client, list.collect()))
}

impl NamedSharding {
    /// A sharding over the mesh; see [`P!`](crate::P) for the spec.
    ///
    /// # Errors
    /// If the mesh has no such axis, or an axis splits two dimensions.
    pub fn new(mesh: &Mesh, spec: impl Into<PartitionSpec>) -> Result<Self> {
        Ok(Self {
            core: jaxlib_core::NamedSharding::new(&mesh.core, spec)?,
            client: mesh.client.clone(),
        })
    }

    /// The same in another memory of the devices, for example `pinned_host`.
    #[must_use]
    pub fn with_memory_kind(&self, kind: &str) -> Self {
        Self {
            core: self.core.with_memory_kind(ifrt::MemoryKind::new(kind)),
            client: self.client.clone(),
        }
    }

    /// The spec.
    pub fn spec(&self) -> &PartitionSpec {
        self.core.spec()
    }

    pub(crate) const fn core(&self) -> &jaxlib_core::NamedSharding {
        &self.core
    }

    pub(crate) const fn client(&self) -> &jaxlib_core::Client {
        &self.client
    }
}

impl From<&NamedSharding> for jaxlib_core::Sharding {
    fn from(named: &NamedSharding) -> Self {
        named.core.clone().into()
    }
}

impl fmt::Debug for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.core)
    }
}

impl fmt::Debug for NamedSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.core)
    }
}

/// A [`PartitionSpec`]: for each dimension the axis or tuple of axes that splits it, or `None`.
///
/// # Examples
/// ```
/// use jax_api::P;
/// assert_eq!(P!["data", None, ("x", "y")].to_string(), "P('data', None, ('x', 'y'))");
/// assert_eq!(P![].to_string(), "P()");
/// ```
///
/// # Mirrors
/// `jax.P`.
#[macro_export]
macro_rules! P {
    ($($dim:expr),* $(,)?) => {
        <$crate::PartitionSpec as ::std::iter::FromIterator<$crate::PartitionDim>>::from_iter(
            [$(<$crate::PartitionDim as ::std::convert::From<_>>::from($dim)),*]
        )
    };
}
