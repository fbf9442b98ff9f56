//! [`Mesh`]: devices in a grid whose axes have names.
//!
//! # Mirrors
//! `jax/_src/mesh.py`, `Mesh` with axes of type `Auto`.

use std::fmt;
use std::sync::Arc;

use ifrt::{DeviceList, Result, Status};

/// Devices in a grid whose axes have names. A cheap clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Mesh(Arc<Inner>);

#[derive(PartialEq, Eq, Hash)]
struct Inner {
    devices: DeviceList,
    axes: Box<[(Arc<str>, usize)]>,
}

impl Mesh {
    /// The devices as a grid, the last axis fastest.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the sizes do not give the number of devices, or a name or device stands
    /// there twice.
    pub fn new<'a>(
        devices: DeviceList,
        axes: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Result<Self> {
        let axes: Box<[(Arc<str>, usize)]> = axes
            .into_iter()
            .map(|(name, size)| (Arc::from(name), size))
            .collect();
        let mesh = Inner { devices, axes };
        let size = mesh
            .axes
            .iter()
            .try_fold(1_usize, |product, (_, size)| product.checked_mul(*size));
        if size != Some(mesh.devices.len()) || mesh.devices.is_empty() {
            return Err(Status::invalid_argument(format!(
                "a mesh of axes {mesh} does not fit {} devices",
                mesh.devices.len()
            )));
        }
        for (position, (name, _)) in mesh.axes.iter().enumerate() {
            if mesh.axes[..position].iter().any(|(other, _)| other == name) {
                return Err(Status::invalid_argument(format!(
                    "the axis '{name}' stands twice in a mesh of axes {mesh}"
                )));
            }
        }
        let mut ids: Vec<_> = mesh.devices.ids().collect();
        ids.sort_unstable();
        if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Status::invalid_argument(format!(
                "device {} stands twice in a mesh of axes {mesh}",
                twice[0]
            )));
        }
        Ok(Self(Arc::new(mesh)))
    }

    /// The devices, the last axis fastest.
    pub fn devices(&self) -> &DeviceList {
        &self.0.devices
    }

    /// Names and sizes of the axes.
    pub fn axes(&self) -> impl ExactSizeIterator<Item = (&str, usize)> {
        self.0.axes.iter().map(|(name, size)| (&**name, *size))
    }

    /// The size of an axis; `None` if there is none of that name.
    pub fn axis_size(&self, name: &str) -> Option<usize> {
        self.axes()
            .find(|(axis, _)| *axis == name)
            .map(|(_, size)| size)
    }

    /// Where the device at `position` stands, one number per axis.
    pub(crate) fn coordinates(&self, position: usize) -> Vec<usize> {
        let mut rest = position;
        let mut coordinates: Vec<usize> = self
            .0
            .axes
            .iter()
            .rev()
            .map(|(_, size)| {
                let coordinate = rest % size;
                rest /= size;
                coordinate
            })
            .collect();
        coordinates.reverse();
        coordinates
    }
}

/// As Python shows the axes: `'x': 4, 'y': 2`.
impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (name, size)) in self.axes.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            write!(f, "'{name}': {size}")?;
        }
        Ok(())
    }
}

/// As Python shows it: `Mesh('x': 8, axis_types=(Auto,))`.
impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = vec!["Auto"; self.0.axes.len()];
        write!(
            f,
            "Mesh({}, axis_types={})",
            self.0,
            crate::messages::tuple(&types)
        )
    }
}

impl fmt::Debug for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} on {:?}", self.0.devices)
    }
}
