//! [`Client`]: the entrance to a runtime.
//!
//! The submodules' functions are portable: they give a runtime what it does not do itself, in terms
//! of what every runtime does.
//!
//! # Mirrors
//! `xla/python/ifrt/client.h`, `client_impl_util.h`.

mod attribute_subscription;
pub(crate) mod read_shards;
mod write_shards;

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

pub use attribute_subscription::{AttributeCallback, AttributeSubscription};
pub use read_shards::{ReadShard, ReadShards, copy_arrays_to_host_buffer_shards};
pub use write_shards::{check_host_shards, make_arrays_from_host_buffer_shards};

use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::array_hash::HashMode;
use crate::array_spec::ArraySpec;
use crate::attribute_map::AttributeMap;
use crate::bundle::{BasicBundle, BundleRef};
use crate::compiler::CompilerRef;
use crate::completion::{Completion, join_all};
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
use crate::tuple::{BasicTuple, TupleRef};
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

    /// This client as the shared object that its values name as theirs.
    ///
    /// Tuples and bundles hold it. A client whose answer is `None` can make them of at least one
    /// value, whose client it then is, but cannot make empty ones.
    ///
    /// # Blocking
    /// Never.
    fn to_shared(&self) -> Option<Arc<dyn Client>> {
        None
    }

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

    /// The addressable device that its process knows by this number.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if there is none.
    fn lookup_addressable_device(&self, local_hardware_id: i32) -> Result<DeviceRef> {
        self.addressable_devices()
            .iter()
            .find(|device| device.local_hardware_id() == Some(local_hardware_id))
            .cloned()
            .ok_or_else(|| {
                Status::invalid_argument(format!(
                    "No matching device found for local_hardware_id {local_hardware_id}"
                ))
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

    /// The layout that the shards of such an array take unless told otherwise.
    ///
    /// # Blocking
    /// May be a round trip in a remote runtime.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the shards have no common shape; those of [`Client::default_layout`].
    ///
    /// # Mirrors
    /// `Client::GetDefaultLayout`.
    ///
    /// # Conformance
    /// ARR-02, ARR-08.
    fn default_layout_of(
        &self,
        dtype: DType,
        shape: &Shape,
        sharding: &ShardingRef,
    ) -> Result<Layout> {
        let shard_shape = sharding.shard_shape(shape)?;
        let device = sharding.devices().devices().first().ok_or_else(|| {
            Status::invalid_argument("a sharding without devices has no default layout")
        })?;
        self.default_layout(dtype, &shard_shape, device, sharding.memory_kind())
    }

    /// A topology that covers these devices, for [`crate::compiler::Compiler::compile`].
    ///
    /// # Blocking
    /// May be a round trip in a remote runtime.
    ///
    /// # Errors
    /// UNIMPLEMENTED unless the runtime offers it.
    ///
    /// # Mirrors
    /// `Client::GetTopologyForDevices`.
    fn topology_for_devices(&self, devices: &DeviceList) -> Result<TopologyRef> {
        Err(unimplemented(format!("GetTopologyForDevices({devices:?})")))
    }

    /// Calls `callback` whenever attributes of these devices change, until the subscription is
    /// dropped or the callback fails. `names` limits it to some attributes.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// UNIMPLEMENTED unless the runtime offers it.
    ///
    /// # Mirrors
    /// `Client::SubscribeToAttributeChanges`.
    fn subscribe_to_attribute_changes(
        &self,
        devices: &DeviceList,
        names: Option<&[String]>,
        callback: AttributeCallback,
    ) -> Result<Box<dyn AttributeSubscription>> {
        drop(callback);
        Err(unimplemented(format!(
            "SubscribeToAttributeChanges({devices:?}, {names:?})"
        )))
    }

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

    /// Reads shards of several arrays in one call: one completion per array, one host value per
    /// read.
    ///
    /// # Shapes
    /// All arrays have the same devices. Each value has the shape of its shard, in the form of
    /// [`crate::array::Array::copy_to_host`].
    ///
    /// # Blocking
    /// Never; the completions bring the values.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the devices differ, if an array is not fully addressable or was deleted,
    /// or if a read names no shard; OUT_OF_RANGE if it names one that does not exist. Nothing is read
    /// then. Through the completions: those of reading.
    ///
    /// # Mirrors
    /// `Client::CopyArraysToHostBufferShards`, which fills buffers of the caller.
    ///
    /// # Conformance
    /// ARR-15 to ARR-17.
    fn copy_arrays_to_host_buffer_shards(
        &self,
        arrays: &[ReadShards],
    ) -> Result<Vec<Completion<Vec<HostValue>>>> {
        copy_arrays_to_host_buffer_shards(arrays)
    }

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

    /// Hashes what the values hold: one number per value.
    ///
    /// Some runtimes hash on their devices, which takes its turn among the executions.
    /// [`crate::array_hash::hash_values`] hashes on the host, for a runtime that cannot.
    ///
    /// # Blocking
    /// Never; the completion brings the hashes.
    ///
    /// # Errors
    /// Through the completion: INVALID_ARGUMENT if replicas differ; UNIMPLEMENTED unless the runtime
    /// offers it.
    ///
    /// # Mirrors
    /// `Client::HashValues`.
    ///
    /// # Conformance
    /// ARR-46 to ARR-49, XAR-01.
    fn hash_values(&self, values: &[ValueRef], mode: HashMode) -> Completion<Vec<u64>> {
        Completion::ready(Err(unimplemented(format!(
            "HashValues of {} values ({mode:?})",
            values.len()
        ))))
    }

    /// Makes a tuple of values.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a value belongs to another client.
    ///
    /// # Mirrors
    /// `Client::MakeTuple`.
    ///
    /// # Conformance
    /// TUP-01 to TUP-04.
    fn make_tuple(&self, values: &[ValueRef]) -> Result<TupleRef> {
        let client = owner(
            self.to_shared(),
            || Some(values.first()?.client()),
            "MakeTuple",
        )?;
        Ok(Arc::new(BasicTuple::new(client, values)?))
    }

    /// Makes a bundle of values.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for [`ArrayCopySemantics::AlwaysCopy`], or if a value belongs to another
    /// client.
    ///
    /// # Mirrors
    /// `Client::Bundle`.
    ///
    /// # Conformance
    /// BUN-01, BUN-04.
    fn bundle(&self, values: &[ValueRef], copy: ArrayCopySemantics) -> Result<BundleRef> {
        let client = owner(
            self.to_shared(),
            || Some(values.first()?.client()),
            "Bundle",
        )?;
        BasicBundle::of_values(client, values, copy)
    }

    /// Makes one bundle of the values of several, in order.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for [`ArrayCopySemantics::AlwaysCopy`], if a bundle belongs to another
    /// client or is donated twice; FAILED_PRECONDITION if one is gone.
    ///
    /// # Mirrors
    /// `Client::ConcatBundles`.
    ///
    /// # Conformance
    /// BUN-02.
    fn concat_bundles(&self, bundles: &[BundleRef], copy: ArrayCopySemantics) -> Result<BundleRef> {
        let client = owner(
            self.to_shared(),
            || Some(bundles.first()?.client()),
            "ConcatBundles",
        )?;
        BasicBundle::of_bundles(client, bundles, copy)
    }

    /// Asks for the end of an execution. Its outputs become ready with `error` if the runtime can
    /// still stop it; otherwise it goes on as if nobody had asked. May be called again.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Mirrors
    /// `Client::CancelExecution`.
    ///
    /// # Conformance
    /// EXE-11.
    fn cancel_execution(&self, handle: &CancellationHandle, error: Status) {
        drop((handle, error));
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

/// The client that a container of values holds.
///
/// # Errors
/// UNIMPLEMENTED if nobody knows.
fn owner(
    shared: Option<Arc<dyn Client>>,
    of_first: impl FnOnce() -> Option<Arc<dyn Client>>,
    operation: &str,
) -> Result<Arc<dyn Client>> {
    shared
        .or_else(of_first)
        .ok_or_else(|| unimplemented(format!("{operation} of nothing")))
}

fn unimplemented(what: String) -> Status {
    Status::unimplemented(format!("{what} is not available with this runtime"))
}
