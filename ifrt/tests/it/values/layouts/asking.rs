//! A client that is only asked for default layouts, and remembers the questions.

use std::fmt;
use std::sync::{Arc, Mutex};

use ifrt::fake::FakeClient;
use ifrt::{
    ArrayCopySemantics, ArrayRef, AttributeMap, Client, CompilerRef, DType, DeviceId, DeviceList,
    DeviceRef, HostBuffer, HostShards, Layout, MemoryKind, Result, Shape, ShardSemantics,
    ShardingRef,
};

use super::super::fixture;

/// The dtype, the shape of the shard, the device and the memory kind.
pub(super) type Asked = (DType, Shape, i32, String);

pub(super) struct AskingClient {
    pub(super) devices: Arc<FakeClient>,
    default_layout: fn(i32) -> Layout,
    asked: Mutex<Vec<Asked>>,
}

impl AskingClient {
    /// Six devices with ids from 10, and the default layout of each.
    pub(super) fn new(default_layout: fn(i32) -> Layout) -> Self {
        Self {
            devices: fixture(6, 6),
            default_layout,
            asked: Mutex::default(),
        }
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl fmt::Debug for AskingClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AskingClient")
    }
}

impl Client for AskingClient {
    fn runtime_type(&self) -> &str {
        self.devices.runtime_type()
    }
    fn platform_name(&self) -> &str {
        self.devices.platform_name()
    }
    fn platform_version(&self) -> &str {
        self.devices.platform_version()
    }
    fn platform_id(&self) -> u64 {
        self.devices.platform_id()
    }
    fn process_index(&self) -> i32 {
        self.devices.process_index()
    }
    fn attributes(&self) -> &AttributeMap {
        self.devices.attributes()
    }
    fn devices(&self) -> &[DeviceRef] {
        self.devices.devices()
    }
    fn addressable_devices(&self) -> &[DeviceRef] {
        self.devices.addressable_devices()
    }
    fn default_device_assignment(
        &self,
        num_replicas: usize,
        num_partitions: usize,
    ) -> Result<Vec<Vec<DeviceId>>> {
        self.devices
            .default_device_assignment(num_replicas, num_partitions)
    }
    fn default_compiler(&self) -> CompilerRef {
        self.devices.default_compiler()
    }
    fn default_layout(
        &self,
        dtype: DType,
        shard_shape: &Shape,
        device: &DeviceRef,
        memory_kind: &MemoryKind,
    ) -> Result<Layout> {
        let kind = memory_kind.to_string();
        let asked = (dtype, shard_shape.clone(), device.id().0, kind);
        self.asked.lock().unwrap().push(asked);
        Ok((self.default_layout)(device.id().0))
    }
    fn make_array_from_host_buffer(
        &self,
        buffer: HostBuffer<'_>,
        sharding: ShardingRef,
        layout: Option<Layout>,
    ) -> Result<ArrayRef> {
        self.devices
            .make_array_from_host_buffer(buffer, sharding, layout)
    }
    fn make_arrays_from_host_buffer_shards(
        &self,
        arrays: Vec<HostShards<'_>>,
    ) -> Result<Vec<ArrayRef>> {
        self.devices.make_arrays_from_host_buffer_shards(arrays)
    }
    fn assemble_array(
        &self,
        dtype: DType,
        shape: Shape,
        sharding: ShardingRef,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
        shards: ShardSemantics,
    ) -> Result<ArrayRef> {
        self.devices
            .assemble_array(dtype, shape, sharding, arrays, copy, shards)
    }
    fn copy_arrays(
        &self,
        arrays: &[ArrayRef],
        devices: Option<DeviceList>,
        memory_kind: Option<MemoryKind>,
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        self.devices.copy_arrays(arrays, devices, memory_kind, copy)
    }
}
