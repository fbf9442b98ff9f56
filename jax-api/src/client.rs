//! [`Client`]: the way to devices.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jaxlib_core::DeletionStats;

use crate::array::Array;
use crate::device::Device;
#[cfg(any(feature = "pjrt", feature = "proxy"))]
use crate::error::Result;

/// The way to the devices of a runtime. A cheap clone.
///
/// Arrays and compiled programs keep their client alive.
#[derive(Clone)]
pub struct Client {
    core: jaxlib_core::Client,
    devices: Arc<[Device]>,
}

/// How a client of a plugin is made.
///
/// # Examples
/// ```
/// # use jax_api::ClientOptions;
/// let options = ClientOptions::new().cpu_device_count(8).option("asynchronous=true");
/// ```
#[cfg(feature = "pjrt")]
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing by themselves"]
pub struct ClientOptions {
    options: Vec<String>,
}

#[cfg(feature = "pjrt")]
impl ClientOptions {
    /// No options.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many devices the CPU plugin pretends to have.
    pub fn cpu_device_count(self, count: usize) -> Self {
        self.option(format!("cpu_device_count={count}"))
    }

    /// An option of the plugin in the form `name=value`.
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }
}

impl Client {
    /// A client of a PJRT plugin, which is a shared library.
    ///
    /// # Blocking
    /// Takes as long as the plugin needs to find its devices.
    ///
    /// # Errors
    /// For a file that is missing, is no plugin or is too old; for options that the plugin does not
    /// take; and what the plugin reports.
    ///
    /// # Mirrors
    /// `jax.devices()`, which finds a plugin by itself.
    #[cfg(feature = "pjrt")]
    pub fn pjrt(plugin: impl AsRef<std::path::Path>, options: ClientOptions) -> Result<Self> {
        let options = ifrt_pjrt::CreateOptions::parse(&options.options)?;
        let client = ifrt_pjrt::PjrtClient::create(plugin.as_ref(), &options)?;
        Ok(Self::from_ifrt(client))
    }

    /// A client of a server that has the devices, at `grpc://host:port` or
    /// `grpc://unix:/path/to/socket`. Everything works as with a plugin in this process.
    ///
    /// If the connection is lost, everything that is pending and everything that is asked later fails
    /// with UNAVAILABLE, and a new client has to be made.
    ///
    /// # Blocking
    /// Until the server has told what it is, at most 30 seconds.
    ///
    /// # Errors
    /// For a malformed address, for a server that cannot be reached or does not answer, and what the
    /// server reports.
    ///
    /// # Mirrors
    /// `JAX_PLATFORMS=proxy JAX_BACKEND_TARGET=…`.
    #[cfg(feature = "proxy")]
    pub fn proxy(address: &str) -> Result<Self> {
        Self::proxy_with(address, crate::ProxyOptions::new())
    }

    /// As [`Client::proxy`], with options.
    ///
    /// # Blocking
    /// As the options say.
    ///
    /// # Errors
    /// As [`Client::proxy`].
    #[cfg(feature = "proxy")]
    pub fn proxy_with(address: &str, options: crate::ProxyOptions) -> Result<Self> {
        let client = ifrt_proxy::client::ProxyClient::connect(address, options)?;
        Ok(Self::from_ifrt(client))
    }

    /// A client of any IFRT runtime.
    pub fn from_ifrt(runtime: Arc<dyn ifrt::Client>) -> Self {
        let core = jaxlib_core::Client::new(runtime);
        Self {
            devices: Device::all(&core).into(),
            core,
        }
    }

    /// The devices, by ascending id.
    ///
    /// # Mirrors
    /// `jax.devices`.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The platform, for example `cpu`.
    pub fn platform_name(&self) -> &str {
        self.core.runtime().platform_name()
    }

    /// The version of the platform, for people.
    pub fn platform_version(&self) -> &str {
        self.core.runtime().platform_version()
    }

    /// The arrays that somebody holds and that are neither deleted nor donated, in no order.
    ///
    /// Aliases and shards are arrays of their own: each is listed for as long as it is held. Clones
    /// are one array.
    ///
    /// # Blocking
    /// Asks the runtime about each array, which is a matter of microseconds or of a round trip.
    ///
    /// # Mirrors
    /// `jax.live_arrays`.
    pub fn live_arrays(&self) -> Vec<Array> {
        let arrays = self.core.live_arrays().into_iter();
        arrays.map(Array::from_core).collect()
    }

    /// What has become of the deletions so far.
    pub fn deletion_stats(&self) -> DeletionStats {
        self.core.deletion_stats()
    }

    /// Waits until the runtime has been told of every deletion that was asked for; false if
    /// `timeout` passes first.
    ///
    /// Nothing needs this for being right. It is for programs that want to know how much memory is
    /// free.
    ///
    /// # Blocking
    /// For as long as the runtime takes to hear of them, at most `timeout`.
    pub fn drain_deletions(&self, timeout: Duration) -> bool {
        self.core.drain_deletions(timeout)
    }

    pub(crate) const fn core(&self) -> &jaxlib_core::Client {
        &self.core
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("platform", &self.platform_name())
            .field("devices", &self.devices)
            .finish()
    }
}
