//! Mocks of where data lives and where it comes from.

use bytes::Bytes;
use mockall::mock;

use crate::attribute_map::AttributeMap;
use crate::device::{Device, DeviceId, DeviceRef};
use crate::dtype::DType;
use crate::layout::Layout;
use crate::memory::{Memory, MemoryId, MemoryKind, MemoryRef};
use crate::shape::Shape;
use crate::status::Result;
use crate::topology::{DeviceDescription, Topology};
use crate::user_context::UserContext;

mock! {
    /// A mock of [`Device`].
    pub Device {}

    impl Device for Device {
        fn id(&self) -> DeviceId;
        fn local_hardware_id(&self) -> Option<i32>;
        fn process_index(&self) -> i32;
        fn is_addressable(&self) -> bool;
        fn platform_name(&self) -> &str;
        fn kind(&self) -> &str;
        fn attributes(&self) -> &AttributeMap;
        fn memories(&self) -> &[MemoryRef];
        fn default_memory(&self) -> Result<MemoryRef>;
        fn to_text(&self) -> String;
        fn debug_string(&self) -> String;
    }
}

mock! {
    /// A mock of [`Memory`].
    pub Memory {}

    impl Memory for Memory {
        fn id(&self) -> MemoryId;
        fn kind(&self) -> &MemoryKind;
        fn devices(&self) -> Vec<DeviceRef>;
        fn to_text(&self) -> String;
        fn debug_string(&self) -> String;
    }
}

mock! {
    /// A mock of [`Topology`].
    pub Topology {}

    impl Topology for Topology {
        fn platform_name(&self) -> &str;
        fn platform_version(&self) -> &str;
        fn platform_id(&self) -> u64;
        fn device_descriptions(&self) -> &[DeviceDescription];
        fn attributes(&self) -> &AttributeMap;
        fn default_layout(&self, dtype: DType, shard_shape: &Shape) -> Result<Layout>;
        fn fingerprint(&self) -> Result<u64>;
        fn serialize(&self) -> Result<Bytes>;
    }
}

mock! {
    /// A mock of [`UserContext`].
    pub UserContext {}

    impl UserContext for UserContext {
        fn id(&self) -> u64;
        fn debug_string(&self) -> String;
    }
}
