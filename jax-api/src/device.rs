//! [`Device`]: something that holds arrays and runs programs.

use std::fmt;
use std::sync::Arc;

use ifrt::DeviceRef;

/// Something that holds arrays and runs programs. A cheap clone.
#[derive(Clone)]
pub struct Device {
    core: DeviceRef,
    client: jaxlib_core::Client,
}

impl Device {
    pub(crate) fn all(client: &jaxlib_core::Client) -> Vec<Self> {
        let devices = client.runtime().devices().iter();
        devices
            .map(|core| Self {
                core: Arc::clone(core),
                client: client.clone(),
            })
            .collect()
    }

    /// The number of the device, unique in the whole system.
    pub fn id(&self) -> i32 {
        self.core.id().0
    }

    /// What the vendor calls the device.
    pub fn kind(&self) -> &str {
        self.core.kind()
    }

    /// The platform, for example `cpu`.
    pub fn platform_name(&self) -> &str {
        self.core.platform_name()
    }

    /// True if this process can put data onto the device.
    pub fn is_addressable(&self) -> bool {
        self.core.is_addressable()
    }

    pub(crate) const fn core(&self) -> &DeviceRef {
        &self.core
    }

    pub(crate) const fn client(&self) -> &jaxlib_core::Client {
        &self.client
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.client.is_same(&other.client) && self.id() == other.id()
    }
}

impl Eq for Device {}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.core.to_text())
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
