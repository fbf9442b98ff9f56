//! A mock of a runtime.

use std::sync::Arc;

use mockall::mock;

use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::array_hash::HashMode;
use crate::array_spec::ArraySpec;
use crate::attribute_map::AttributeMap;
use crate::bundle::BundleRef;
use crate::client::{Client, HostShards, ReadShards};
use crate::compiler::CompilerRef;
use crate::completion::Completion;
use crate::device::{DeviceId, DeviceRef};
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::executable::CancellationHandle;
use crate::host_buffer::{HostBuffer, HostValue};
use crate::layout::Layout;
use crate::memory::MemoryKind;
use crate::remap_plan::RemapPlan;
use crate::shape::Shape;
use crate::sharding::ShardingRef;
use crate::status::{Result, Status};
use crate::topology::TopologyRef;
use crate::tuple::TupleRef;
use crate::value::ValueRef;

mock! {
    /// A mock of [`Client`].
    pub Client {}

    impl Client for Client {
        fn runtime_type(&self) -> &str;
        fn platform_name(&self) -> &str;
        fn platform_version(&self) -> &str;
        fn platform_id(&self) -> u64;
        fn process_index(&self) -> i32;
        fn attributes(&self) -> &AttributeMap;
        fn devices(&self) -> &[DeviceRef];
        fn addressable_devices(&self) -> &[DeviceRef];
        fn to_shared(&self) -> Option<Arc<dyn Client>>;
        fn default_device_assignment(
            &self,
            num_replicas: usize,
            num_partitions: usize,
        ) -> Result<Vec<Vec<DeviceId>>>;
        fn default_compiler(&self) -> CompilerRef;
        fn default_layout(
            &self,
            dtype: DType,
            shard_shape: &Shape,
            device: &DeviceRef,
            memory_kind: &MemoryKind,
        ) -> Result<Layout>;
        fn topology_for_devices(&self, devices: &DeviceList) -> Result<TopologyRef>;
        fn make_array_from_host_buffer<'a>(
            &self,
            buffer: HostBuffer<'a>,
            sharding: ShardingRef,
            layout: Option<Layout>,
        ) -> Result<ArrayRef>;
        fn make_arrays_from_host_buffer_shards<'a>(
            &self,
            arrays: Vec<HostShards<'a>>,
        ) -> Result<Vec<ArrayRef>>;
        fn copy_arrays_to_host_buffer_shards(
            &self,
            arrays: &[ReadShards],
        ) -> Result<Vec<Completion<Vec<HostValue>>>>;
        fn make_error_arrays(&self, error: Status, specs: &[ArraySpec]) -> Result<Vec<ArrayRef>>;
        fn assemble_array(
            &self,
            dtype: DType,
            shape: Shape,
            sharding: ShardingRef,
            arrays: &[ArrayRef],
            copy: ArrayCopySemantics,
            shards: ShardSemantics,
        ) -> Result<ArrayRef>;
        fn copy_arrays(
            &self,
            arrays: &[ArrayRef],
            devices: Option<DeviceList>,
            memory_kind: Option<MemoryKind>,
            copy: ArrayCopySemantics,
        ) -> Result<Vec<ArrayRef>>;
        fn remap_arrays(
            &self,
            plan: &RemapPlan,
            arrays: &[ArrayRef],
            copy: ArrayCopySemantics,
        ) -> Result<Vec<ArrayRef>>;
        fn bitcast_arrays(
            &self,
            arrays: &[ArrayRef],
            specs: &[ArraySpec],
            copy: ArrayCopySemantics,
        ) -> Result<Vec<ArrayRef>>;
        fn reshard_arrays(
            &self,
            arrays: &[ArrayRef],
            specs: &[ArraySpec],
            copy: ArrayCopySemantics,
        ) -> Result<Vec<ArrayRef>>;
        fn hash_values(&self, values: &[ValueRef], mode: HashMode) -> Completion<Vec<u64>>;
        fn make_tuple(&self, values: &[ValueRef]) -> Result<TupleRef>;
        fn bundle(&self, values: &[ValueRef], copy: ArrayCopySemantics) -> Result<BundleRef>;
        fn concat_bundles(
            &self,
            bundles: &[BundleRef],
            copy: ArrayCopySemantics,
        ) -> Result<BundleRef>;
        fn cancel_execution(&self, handle: &CancellationHandle, error: Status);
        fn ready(&self, values: &[ValueRef]) -> Completion;
        fn delete_values(&self, values: &[ValueRef]) -> Completion;
    }
}
