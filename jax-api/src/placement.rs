//! [`Placement`]: where data goes.

use jaxlib_core::device_put::Target;
use jaxlib_core::{Client, Sharding};

use crate::device::Device;
use crate::mesh::NamedSharding;

/// Where data goes: onto a device, over a mesh, or (from a client) wherever is best.
///
/// Data with a place of its own is *committed*: it stays there, and programs must run there. Data
/// without one follows the program.
#[derive(Clone, Debug)]
pub struct Placement {
    pub(crate) client: Client,
    pub(crate) target: Target,
}

impl From<&Device> for Placement {
    fn from(device: &Device) -> Self {
        Self {
            client: device.client().clone(),
            target: Sharding::single_device(device.core().clone()).into(),
        }
    }
}

impl From<&NamedSharding> for Placement {
    fn from(sharding: &NamedSharding) -> Self {
        Self {
            client: sharding.client().clone(),
            target: sharding.core().clone().into(),
        }
    }
}

/// The default device of the client, uncommitted.
impl From<&crate::Client> for Placement {
    fn from(client: &crate::Client) -> Self {
        Self {
            client: client.core().clone(),
            target: Target::Default,
        }
    }
}
