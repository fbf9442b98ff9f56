//! [`Device`]: something that holds arrays and runs executables.
//!
//! # Mirrors
//! `xla/python/ifrt/device.h`.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

use crate::attribute_map::AttributeMap;
use crate::memory::{MemoryKind, MemoryRef};
use crate::status::{Result, Status};

/// The number of a device, unique in the whole system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub i32);

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A shared [`Device`]. Two references mean the same device iff their ids are equal and they
/// belong to one client.
pub type DeviceRef = Arc<dyn Device>;

/// A device of a client. All methods answer from local state.
pub trait Device: Any + Send + Sync + Debug {
    /// The number of the device, unique in the whole system.
    fn id(&self) -> DeviceId;

    /// The number that the hardware has in its process, if the runtime knows one.
    fn local_hardware_id(&self) -> Option<i32> {
        None
    }

    /// The process that owns the device.
    fn process_index(&self) -> i32;

    /// True if this process can reach the data of the device.
    fn is_addressable(&self) -> bool;

    /// The platform, for example `cpu`.
    fn platform_name(&self) -> &str;

    /// What the vendor calls the device, for example `NVIDIA H200`.
    fn kind(&self) -> &str;

    /// Further properties, for example `coords`.
    fn attributes(&self) -> &AttributeMap;

    /// The memories that the device can address, in no special order.
    fn memories(&self) -> &[MemoryRef];

    /// The memory that an array takes unless told otherwise.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime knows no memories.
    fn default_memory(&self) -> Result<MemoryRef>;

    /// A short name for people; Python shows it as `repr(device)`.
    fn to_text(&self) -> String;

    /// A long name for people; Python shows it as `str(device)`.
    fn debug_string(&self) -> String;
}

/// The memory of `device` with the kind `kind`.
///
/// The default kind means the default memory, whatever its kind is called.
///
/// # Errors
/// INVALID_ARGUMENT if the device addresses no memory of that kind; the text lists the kinds.
pub fn find_memory(device: &dyn Device, kind: &MemoryKind) -> Result<MemoryRef> {
    if let Some(memory) = device
        .memories()
        .iter()
        .find(|memory| memory.kind() == kind)
    {
        return Ok(Arc::clone(memory));
    }
    if kind.is_default() {
        return device.default_memory();
    }
    let kinds: Vec<&str> = device
        .memories()
        .iter()
        .map(|memory| memory.kind().name())
        .collect();
    Err(Status::invalid_argument(format!(
        "Could not find memory addressable by device {}. Device {} can address the following \
         memory kinds: {}. Got memory kind: {kind}",
        device.to_text(),
        device.to_text(),
        kinds.join(", "),
    )))
}
