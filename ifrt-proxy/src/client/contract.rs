//! The contract of a client, as far as it is not in a module of its own.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client/client.cc`.

use std::sync::Arc;

use ifrt::array_hash;
use ifrt::client::HostShards;
use ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, AttributeMap, Client, CompilerRef, Completion, DType,
    DeviceId, DeviceList, DeviceRef, HashMode, HostBuffer, Layout, MemoryKind, RemapPlan, Result,
    Shape, ShardSemantics, ShardingRef, Status, ValueRef, join_all,
};

use super::ProxyClient;
use super::array::ProxyArray;
use super::compiler::ProxyCompiler;
use super::response::body;
use super::{make, rearrange};
use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use crate::proto::xla::ifrt::proxy::{CheckValueReadyRequest, GetDefaultDeviceAssignmentRequest};

impl Client for ProxyClient {
    fn runtime_type(&self) -> &str {
        &self.runtime_type
    }

    fn platform_name(&self) -> &str {
        &self.platform_name
    }

    fn platform_version(&self) -> &str {
        &self.platform_version
    }

    fn platform_id(&self) -> u64 {
        self.platform_id
    }

    fn process_index(&self) -> i32 {
        self.process_index
    }

    fn attributes(&self) -> &AttributeMap {
        &self.attributes
    }

    fn devices(&self) -> &[DeviceRef] {
        &self.devices.primary
    }

    fn addressable_devices(&self) -> &[DeviceRef] {
        &self.devices.addressable
    }

    fn to_shared(&self) -> Option<Arc<dyn Client>> {
        self.shared().ok().map(|client| client as Arc<dyn Client>)
    }

    fn all_devices(&self) -> &[DeviceRef] {
        &self.devices.all
    }

    fn lookup_device(&self, id: DeviceId) -> Result<DeviceRef> {
        self.devices.get(id).cloned().ok_or_else(|| {
            Status::invalid_argument(format!("No matching device found for device_id {id}"))
        })
    }

    fn default_device_assignment(
        &self,
        num_replicas: usize,
        num_partitions: usize,
    ) -> Result<Vec<Vec<DeviceId>>> {
        let number = |count: usize| {
            u64::try_from(count).map_err(|_| Status::invalid_argument("too many devices"))
        };
        let request = GetDefaultDeviceAssignmentRequest {
            num_replicas: number(num_replicas)?,
            num_partitions: number(num_partitions)?,
        };
        let request = Request::GetDefaultDeviceAssignmentRequest(request);
        let assignment = self.session().round_trip(request, |response| {
            let response = body!(response, GetDefaultDeviceAssignmentResponse)?;
            Ok(response.device_assignment.unwrap_or_default())
        })?;
        let malformed = || {
            Status::internal(format!(
                "the server sent no assignment for {num_replicas} replicas and {num_partitions} \
                 partitions"
            ))
        };
        let partitions = assignment.computation_devices;
        if partitions.len() != num_partitions {
            return Err(malformed());
        }
        // The message has partitions outside and replicas inside.
        let device = |id: &i64| i32::try_from(*id).map(DeviceId).map_err(|_| malformed());
        (0..num_replicas)
            .map(|replica| {
                let ids = partitions.iter().map(|partition| {
                    let ids = &partition.replica_device_ids;
                    let id = ids.get(replica).filter(|_| ids.len() == num_replicas);
                    id.ok_or_else(malformed).and_then(device)
                });
                ids.collect()
            })
            .collect()
    }

    fn default_compiler(&self) -> CompilerRef {
        Arc::new(ProxyCompiler::new(self.this.clone()))
    }

    fn default_layout(
        &self,
        dtype: DType,
        shard_shape: &Shape,
        device: &DeviceRef,
        memory_kind: &MemoryKind,
    ) -> Result<Layout> {
        self.default_layout_of_shard(dtype, shard_shape, device, memory_kind)
    }

    fn make_array_from_host_buffer(
        &self,
        buffer: HostBuffer<'_>,
        sharding: ShardingRef,
        layout: Option<Layout>,
    ) -> Result<ArrayRef> {
        make::from_host_buffer(&self.shared()?, buffer, sharding, layout)
    }

    fn make_arrays_from_host_buffer_shards(
        &self,
        arrays: Vec<HostShards<'_>>,
    ) -> Result<Vec<ArrayRef>> {
        make::from_host_buffer_shards(&self.shared()?, arrays)
    }

    fn make_error_arrays(&self, error: Status, specs: &[ArraySpec]) -> Result<Vec<ArrayRef>> {
        make::errors(&self.shared()?, &error, specs)
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
        let client = self.shared()?;
        rearrange::assemble(&client, dtype, shape, sharding, arrays, copy, shards)
    }

    fn copy_arrays(
        &self,
        arrays: &[ArrayRef],
        devices: Option<DeviceList>,
        memory_kind: Option<MemoryKind>,
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        rearrange::copy(&self.shared()?, arrays, devices, memory_kind, copy)
    }

    fn remap_arrays(
        &self,
        plan: &RemapPlan,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        rearrange::remap(&self.shared()?, plan, arrays, copy)
    }

    fn bitcast_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        rearrange::bitcast(&self.shared()?, arrays, specs, copy)
    }

    fn reshard_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        rearrange::reshard(&self.shared()?, arrays, specs, copy)
    }

    /// The protocol has no message for it, so the data is hashed here.
    fn hash_values(&self, values: &[ValueRef], mode: HashMode) -> Completion<Vec<u64>> {
        array_hash::hash_values(values, mode)
    }

    fn ready(&self, values: &[ValueRef]) -> Completion {
        // One request for all, if all are live arrays of this client.
        let mut handles = Vec::with_capacity(values.len());
        for value in values {
            let array = ValueRef::clone(value).into_array();
            let handle = array.as_ref().and_then(|array| {
                let array = ProxyArray::of(self, array).ok()?;
                (!array.cells().is_dead()).then(|| array.handle())
            });
            handles.extend(handle);
        }
        if handles.len() < 2 || handles.len() != values.len() {
            return join_all(values.iter().map(|value| value.ready()));
        }
        let request = CheckValueReadyRequest {
            value_handles: handles,
        };
        let request = Request::CheckValueReadyRequest(request);
        self.session().request(request, |response| {
            body!(response, CheckValueReadyResponse).map(drop)
        })
    }
}
