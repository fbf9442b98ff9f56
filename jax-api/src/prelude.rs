//! What most programs need: `use jax_api::prelude::*;`.

#[cfg(feature = "pjrt")]
pub use crate::ClientOptions;
#[cfg(feature = "proxy")]
pub use crate::ProxyOptions;
pub use crate::jit::{self, donate};
pub use crate::{
    Array, Client, Device, Element, Exported, Mesh, NamedSharding, P, PutOptions, args, delete_all,
    device_put, device_put_with,
};
