//! [`FakeClient`]: the fake runtime itself.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::array::FakeArray;
use super::compiler::FakeCompiler;
use super::device::make_devices;
use super::executable::cancel;
use super::fault::FaultPlan;
use super::heap::{BufferId, DeleteCounts, Heap, ShardSpec};
use super::options::FakeOptions;
use super::program::{FakeProgram, Kernel, Programs};
use super::{make, rearrange};
use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::array_hash::{HashMode, hash_values};
use crate::array_spec::ArraySpec;
use crate::attribute_map::AttributeMap;
use crate::client::{Client, HostShards};
use crate::compiler::CompilerRef;
use crate::completion::Completion;
use crate::device::{DeviceId, DeviceRef, find_memory};
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::executable::CancellationHandle;
use crate::host_buffer::HostBuffer;
use crate::layout::Layout;
use crate::memory::MemoryKind;
use crate::remap_plan::RemapPlan;
use crate::shape::Shape;
use crate::sharding::ShardingRef;
use crate::status::{Result, Status};
use crate::value::ValueRef;

/// A runtime in host memory.
pub struct FakeClient {
    /// What arrays and executables keep alive.
    this: Weak<Self>,
    options: FakeOptions,
    devices: Vec<DeviceRef>,
    addressable_devices: Vec<DeviceRef>,
    attributes: AttributeMap,
    compiler: CompilerRef,
    heap: Arc<Heap>,
    programs: Mutex<Programs>,
}

impl FakeClient {
    /// A runtime with these devices.
    pub fn new(options: FakeOptions) -> Arc<Self> {
        let devices = make_devices(&options);
        let addressable = devices.iter().filter(|device| device.is_addressable());
        let addressable_devices = addressable.cloned().collect();
        let attributes = [("supports_executable_serialization", true)];
        Arc::new_cyclic(|this: &Weak<Self>| Self {
            this: Weak::clone(this),
            devices,
            addressable_devices,
            attributes: attributes.into_iter().collect(),
            compiler: Arc::new(FakeCompiler::new(Weak::clone(this))),
            heap: Heap::new(options.memory_bytes),
            programs: Mutex::new(Programs::with_standard_kernels()),
            options,
        })
    }

    /// What goes wrong; rules may be added at any time.
    pub const fn faults(&self) -> &FaultPlan {
        &self.options.faults
    }

    /// The bytes of all buffers that were neither deleted nor donated nor dropped.
    pub fn live_bytes(&self) -> u64 {
        self.heap.live_bytes()
    }

    /// The number of buffers that were neither deleted nor donated nor dropped. Each addressable
    /// shard of an array is one; arrays may share them.
    pub fn live_buffers(&self) -> usize {
        self.heap.live_buffers()
    }

    /// How many deletions the runtime was asked for.
    pub fn delete_counts(&self) -> DeleteCounts {
        self.heap.delete_counts()
    }

    /// How often the runtime was asked to delete this buffer; zero when no array holds it any more.
    pub fn deletes_of(&self, buffer: BufferId) -> u64 {
        self.heap.deletes_of(buffer)
    }

    /// The buffers of an array, one per addressable shard.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the array belongs to another client.
    pub fn buffers_of(&self, array: &ArrayRef) -> Result<Vec<BufferId>> {
        let array = FakeArray::of(self, array)?;
        Ok(array.buffers().iter().map(|buffer| buffer.id).collect())
    }

    /// Makes `program` available as the module `fake:NAME`.
    pub fn register_program(&self, name: impl Into<String>, program: FakeProgram) {
        let name = name.into();
        // What it replaces is dropped without the lock: its kernel is foreign code.
        drop(self.with_programs(|programs| programs.register_program(name, program)));
    }

    /// Makes `kernel` available in module texts, see [`super::program`].
    pub fn register_kernel(&self, name: impl Into<String>, kernel: Kernel) {
        let name = name.into();
        drop(self.with_programs(|programs| programs.register_kernel(name, kernel)));
    }

    pub(super) fn with_programs<T>(&self, f: impl FnOnce(&mut Programs) -> T) -> T {
        // Lookups and insertions only: a poisoned lock holds a consistent table.
        f(&mut self.programs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) const fn heap(&self) -> &Arc<Heap> {
        &self.heap
    }

    /// The client as arrays hold it.
    ///
    /// # Errors
    /// INTERNAL if the last reference is just being dropped.
    pub(super) fn arc(&self) -> Result<Arc<Self>> {
        let this = self.this.upgrade();
        this.ok_or_else(|| Status::internal("the client is being dropped"))
    }

    /// A new array of these buffers.
    pub(super) fn array(
        &self,
        spec: ArraySpec,
        buffers: Vec<Arc<super::heap::Buffer>>,
        own: Completion,
    ) -> Result<ArrayRef> {
        Ok(FakeArray::make(self.arc()?, spec, buffers, own))
    }

    /// Checks that the devices are devices of this client.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if one is not.
    pub(super) fn check_devices(&self, devices: &DeviceList) -> Result<()> {
        for device in devices {
            if !Arc::ptr_eq(device, &self.lookup_device(device.id())?) {
                return Err(Status::invalid_argument(format!(
                    "device {} belongs to another client",
                    device.id()
                )));
            }
        }
        Ok(())
    }

    /// The addressable shards of an array.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the sharding does not say their shapes, or names an unknown memory kind
    /// or devices of another client.
    pub(super) fn shard_specs(&self, spec: &ArraySpec) -> Result<Vec<ShardSpec>> {
        let sharding = &spec.sharding;
        self.check_devices(sharding.devices())?;
        let shapes = sharding.shard_shapes(&spec.shape, ShardSemantics::Addressable)?;
        let shard =
            |(shape, device)| self.shard_spec(spec.dtype, shape, device, sharding.memory_kind());
        let devices = sharding.devices().addressable();
        shapes.into_iter().zip(&devices).map(shard).collect()
    }

    /// Where a shard of `shape` goes and what it takes there.
    pub(super) fn shard_spec(
        &self,
        dtype: DType,
        shape: Shape,
        device: &DeviceRef,
        kind: &MemoryKind,
    ) -> Result<ShardSpec> {
        Ok(ShardSpec {
            memory: find_memory(&**device, kind)?,
            bytes: super::elements::device_bytes(dtype, &shape)?,
            device: Arc::clone(device),
            dtype,
            shape,
        })
    }
}

impl Client for FakeClient {
    fn runtime_type(&self) -> &str {
        "fake"
    }

    fn platform_name(&self) -> &str {
        &self.options.platform_name
    }

    fn platform_version(&self) -> &str {
        concat!("fake ", env!("CARGO_PKG_VERSION"))
    }

    fn platform_id(&self) -> u64 {
        // Any number will do as long as equal names have equal ones (FNV-1a).
        let bytes = self.options.platform_name.bytes();
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    fn to_shared(&self) -> Option<Arc<dyn Client>> {
        self.arc().ok().map(|client| client as Arc<dyn Client>)
    }

    fn process_index(&self) -> i32 {
        self.options.process_index
    }

    fn attributes(&self) -> &AttributeMap {
        &self.attributes
    }

    fn devices(&self) -> &[DeviceRef] {
        &self.devices
    }

    fn addressable_devices(&self) -> &[DeviceRef] {
        &self.addressable_devices
    }

    fn default_device_assignment(
        &self,
        num_replicas: usize,
        num_partitions: usize,
    ) -> Result<Vec<Vec<DeviceId>>> {
        let needed = num_replicas.checked_mul(num_partitions);
        if needed.is_none_or(|needed| needed == 0 || needed > self.devices.len()) {
            return Err(Status::invalid_argument(format!(
                "{num_replicas} replicas of {num_partitions} partitions need as many devices, but \
                 the client has {}",
                self.devices.len()
            )));
        }
        let ids: Vec<DeviceId> = self.devices.iter().map(|device| device.id()).collect();
        let rows = ids.chunks(num_partitions).take(num_replicas);
        Ok(rows.map(<[DeviceId]>::to_vec).collect())
    }

    fn default_compiler(&self) -> CompilerRef {
        Arc::clone(&self.compiler)
    }

    fn default_layout(
        &self,
        _dtype: DType,
        shard_shape: &Shape,
        device: &DeviceRef,
        memory_kind: &MemoryKind,
    ) -> Result<Layout> {
        find_memory(&**device, memory_kind)?;
        Ok(Layout::descending(shard_shape.rank()))
    }

    fn make_array_from_host_buffer(
        &self,
        buffer: HostBuffer<'_>,
        sharding: ShardingRef,
        layout: Option<Layout>,
    ) -> Result<ArrayRef> {
        make::from_host_buffer(self, buffer, sharding, layout)
    }

    fn make_arrays_from_host_buffer_shards(
        &self,
        arrays: Vec<HostShards<'_>>,
    ) -> Result<Vec<ArrayRef>> {
        make::from_shards(self, arrays)
    }

    fn make_error_arrays(&self, error: Status, specs: &[ArraySpec]) -> Result<Vec<ArrayRef>> {
        make::errors(self, &error, specs)
    }

    fn assemble_array(
        &self,
        dtype: DType,
        shape: Shape,
        sharding: ShardingRef,
        arrays: &[ArrayRef],
        _copy: ArrayCopySemantics,
        shards: ShardSemantics,
    ) -> Result<ArrayRef> {
        rearrange::assemble(self, dtype, shape, sharding, arrays, shards)
    }

    fn copy_arrays(
        &self,
        arrays: &[ArrayRef],
        devices: Option<DeviceList>,
        memory_kind: Option<MemoryKind>,
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        rearrange::copy(self, arrays, devices.as_ref(), memory_kind.as_ref(), copy)
    }

    fn remap_arrays(
        &self,
        plan: &RemapPlan,
        arrays: &[ArrayRef],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        rearrange::remap(self, plan, arrays, copy)
    }

    fn bitcast_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        rearrange::bitcast(self, arrays, specs, copy)
    }

    fn cancel_execution(&self, handle: &CancellationHandle, error: Status) {
        cancel(handle, error);
    }

    fn hash_values(&self, values: &[ValueRef], mode: HashMode) -> Completion<Vec<u64>> {
        hash_values(values, mode)
    }

    fn reshard_arrays(
        &self,
        arrays: &[ArrayRef],
        specs: &[ArraySpec],
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        rearrange::reshard(self, arrays, specs, copy)
    }
}

impl fmt::Debug for FakeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeClient")
            .field("platform", &self.options.platform_name)
            .field("devices", &self.devices.len())
            .field("addressable", &self.addressable_devices.len())
            .finish_non_exhaustive()
    }
}
