//! [`Topology`]: devices as a compiler sees them, whether or not they are there.
//!
//! # What is not here
//! Loading and running: that takes the devices of a [`crate::client::Client`].
//!
//! # Mirrors
//! `xla/python/ifrt/topology.h`. Where the reference hands out PJRT's description object, we hand
//! out its serialized form, because the contract knows no PJRT.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use crate::attribute_map::AttributeMap;
use crate::device::DeviceId;
use crate::dtype::DType;
use crate::layout::Layout;
use crate::shape::Shape;
use crate::status::{Result, Status};

/// A shared [`Topology`].
pub type TopologyRef = Arc<dyn Topology>;

/// A device of a [`Topology`]: what is known about it without touching it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceDescription {
    /// The number of the device, unique in the whole system.
    pub id: DeviceId,
    /// The process that owns the device.
    pub process_index: i32,
    /// What the vendor calls the device.
    pub kind: String,
    /// Further properties, for example `coords`.
    pub attributes: AttributeMap,
    /// A short name for people.
    pub text: String,
    /// A long name for people.
    pub debug_text: String,
}

/// Devices that a program can be compiled for. All methods answer from local state.
pub trait Topology: Any + Send + Sync + Debug {
    /// The platform, for example `tpu`.
    fn platform_name(&self) -> &str;

    /// The version of the platform, for people.
    fn platform_version(&self) -> &str;

    /// A number for the platform.
    fn platform_id(&self) -> u64;

    /// The devices, in no special order.
    fn device_descriptions(&self) -> &[DeviceDescription];

    /// Properties of the topology by name.
    fn attributes(&self) -> &AttributeMap;

    /// The layout that a shard takes unless told otherwise.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime cannot tell without a device.
    fn default_layout(&self, dtype: DType, shard_shape: &Shape) -> Result<Layout> {
        Err(Status::unimplemented(format!(
            "this topology does not tell the default layout of {dtype}{shard_shape}; ask the client"
        )))
    }

    /// A number for keys of caches; not stable across versions.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// UNIMPLEMENTED unless the runtime offers it.
    fn fingerprint(&self) -> Result<u64> {
        Err(Status::unimplemented("this topology has no fingerprint"))
    }

    /// The topology as bytes for another compiler of the same platform.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// UNIMPLEMENTED unless the runtime offers it.
    fn serialize(&self) -> Result<Bytes> {
        Err(Status::unimplemented("this topology cannot be serialized"))
    }
}
