//! [`Client`]: the entrance to a runtime.
//!
//! # Mirrors
//! `xla/python/ifrt/client.h`.

use std::any::Any;
use std::fmt::Debug;

use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::array_spec::ArraySpec;
use crate::attribute_map::AttributeMap;
use crate::compiler::CompilerRef;
use crate::completion::{Completion, join_all};
use crate::device::{DeviceId, DeviceRef};
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::host_buffer::HostBuffer;
use crate::layout::Layout;
use crate::memory::MemoryKind;
use crate::remap_plan::RemapPlan;
use crate::shape::Shape;
use crate::sharding::ShardingRef;
use crate::status::{Result, Status};
use crate::value::ValueRef;

/// An array to be made from host buffers that hold its shards.
#[derive(Debug)]
pub struct HostShards<'a> {
    /// The array.
    pub spec: ArraySpec,
    /// Each buffer with the addressable shards that it is for; several for replicas.
    pub buffers: Vec<(Vec<usize>, HostBuffer<'a>)>,
}

/// A runtime: its devices and what can be done with them.
///
/// Whatever can be asked without a device is answered from local state. Methods that start work
/// return when it is enqueued; failures show at once or when the outputs become ready. Methods that
/// a runtime need not have answer UNIMPLEMENTED by default.
pub trait Client: Any + Send + Sync + Debug {
    /// The kind of runtime, for example `pjrt_ifrt`.
    fn runtime_type(&self) -> &str;

    /// The platform, for example `cpu`. JAX chooses its lowering by it.
    fn platform_name(&self) -> &str;

    /// The version of the platform, for people.
    fn platform_version(&self) -> &str;

    /// A number for the platform.
    fn platform_id(&self) -> u64;

    /// The number of this process among those that share the runtime.
    fn process_index(&self) -> i32;

    /// Properties of the runtime by name, for example `supports_executable_serialization`.
    fn attributes(&self) -> &AttributeMap;

    /// The devices for computing, by ascending id.
    fn devices(&self) -> &[DeviceRef];

    /// Those of [`Client::devices`] that this process can reach.
    fn addressable_devices(&self) -> &[DeviceRef];

    /// Every device, also those that only assist others.
    fn all_devices(&self) -> &[DeviceRef] {
        self.devices()
    }

    /// The device with this id.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if there is none.
    fn lookup_device(&self, id: DeviceId) -> Result<DeviceRef> {
        self.all_devices()
            .iter()
            .find(|device| device.id() == id)
            .cloned()
            .ok_or_else(|| {
                Status::invalid_argument(format!("No matching device found for device_id {id}"))
            })
    }

    /// The devices that a program with so many replicas and partitions runs on unless told
    /// otherwise, as `[replica][partition]`.
    ///
    /// # Blocking
    /// May be a round trip in a remote runtime.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if there are not enough devices.
    fn default_device_assignment(
        &self,
        num_replicas: usize,
        num_partitions: usize,
    ) -> Result<Vec<Vec<DeviceId>>>;

    /// The compiler for the devices of this client.
    fn default_compiler(&self) -> CompilerRef;

    /// The layout that a shard of these dimensions takes on `device` unless told otherwise.
    ///
    /// # Blocking
    /// May be a round trip in a remote runtime.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an unknown memory kind; those of the runtime.
    fn default_layout(
        &self,
        dtype: DType,
        shard_shape: &Shape,
        device: &DeviceRef,
        memory_kind: &MemoryKind,
    ) -> Result<Layout>;

    /// Makes an array from a host buffer: on one device, or the same on each of several.
    ///
    /// # Shapes
    /// The shape of the array is that of the buffer.
    ///
    /// # Blocking
    /// May copy the buffer before it returns.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the buffer does not hold the shape, the sharding splits the array, or
    /// the memory kind is unknown.
    fn make_array_from_host_buffer(
        &self,
        buffer: HostBuffer<'_>,
        sharding: ShardingRef,
        layout: Option<Layout>,
    ) -> Result<ArrayRef>;

    /// Makes arrays from host buffers that hold their shards.
    ///
    /// # Shapes
    /// Each buffer has the shape of a shard. The buffers of one array cover each addressable shard
    /// exactly once.
    ///
    /// # Blocking
    /// May copy the buffers before it returns.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a shard is missing, covered twice or of the wrong dtype or shape.
    fn make_arrays_from_host_buffer_shards(
        &self,
        arrays: Vec<HostShards<'_>>,
    ) -> Result<Vec<ArrayRef>>;

    /// Makes arrays that are ready with `error`.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime has no such arrays.
    fn make_error_arrays(&self, error: Status, specs: &[ArraySpec]) -> Result<Vec<ArrayRef>> {
        Err(unimplemented(format!(
            "MakeErrorArrays of {} arrays ({error})",
            specs.len()
        )))
    }

    /// Makes one array from single-device arrays, which share their buffers with it.
    ///
    /// # Shapes
    /// One input per (addressable) shard, in the order of the sharding's devices.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the inputs do not fit the sharding or were deleted.
    fn assemble_array(
        &self,
        dtype: DType,
        shape: Shape,
        sharding: ShardingRef,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
        shards: ShardSemantics,
    ) -> Result<ArrayRef>;

    /// Copies arrays to other devices or another memory kind. `None` keeps what they have.
    ///
    /// # Shapes
    /// All inputs have the same devices and memory kind; `devices` has as many.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if that is not so or an input was deleted; UNIMPLEMENTED if the runtime
    /// cannot copy that way.
    fn copy_arrays(
        &self,
        arrays: &[ArrayRef],
        devices: Option<DeviceList>,
        memory_kind: Option<MemoryKind>,
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>>;

    /// Makes arrays whose shards are shards of `arrays`. No data moves.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the plan or the inputs do not fit; UNIMPLEMENTED by default.
    fn remap_arrays(
        &self,
        plan: &RemapPlan,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let _: (&RemapPlan, ArrayCopySemantics) = (plan, copy);
        Err(unimplemented(format!(
            "RemapArrays of {} arrays",
            arrays.len()
        )))
    }

    /// Gives arrays another dtype or shape without changing a byte.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if sizes, devices or memory kinds differ; UNIMPLEMENTED by default.
    fn bitcast_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let _: (&[ArraySpec], ArrayCopySemantics) = (specs, copy);
        Err(unimplemented(format!(
            "BitcastArrays of {} arrays",
            arrays.len()
        )))
    }

    /// Spreads arrays differently, wherever the data has to go.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if dtypes or shapes differ; UNIMPLEMENTED by default.
    fn reshard_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let _: (&[ArraySpec], ArrayCopySemantics) = (specs, copy);
        Err(unimplemented(format!(
            "ReshardArrays of {} arrays",
            arrays.len()
        )))
    }

    /// Ready when all values are, with one of their errors if any failed.
    fn ready(&self, values: &[ValueRef]) -> Completion {
        join_all(values.iter().map(|value| value.ready()))
    }

    /// Deletes all values; see [`crate::value::Value`] for the rules.
    fn delete_values(&self, values: &[ValueRef]) -> Completion {
        join_all(values.iter().map(|value| value.delete()))
    }
}

fn unimplemented(what: String) -> Status {
    Status::unimplemented(format!("{what} is not available with this runtime"))
}
