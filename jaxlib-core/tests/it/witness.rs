//! [`Witness`]: a runtime around another that notes every deletion, donation and release by handle,
//! and can call back into the crate from within.

mod executable;

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, Weak};

use crate::support::DEADLINE;
use ifrt::{
    Array, ArrayCopySemantics, ArrayRef, AttributeMap, Client, CompilerRef, Completion, DType,
    DeviceId, DeviceList, DeviceRef, HostBuffer, HostShards, HostValue, Layout, MemoryKind, Result,
    Shape, ShardSemantics, ShardingRef, Value, ValueRef,
};

/// What the runtime was asked for; the number is that of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Delete(u64),
    /// Deleted together with others in one call.
    DeleteTogether(u64),
    IsDeleted(u64),
    Donated(u64),
    Dropped(u64),
}

type Hook = Arc<dyn Fn(Event) + Send + Sync>;

pub(crate) struct Witness {
    this: Weak<Self>,
    inner: Arc<dyn Client>,
    log: Mutex<Log>,
    noted: Condvar,
}

#[derive(Default)]
struct Log {
    events: Vec<Event>,
    next: u64,
    batches: usize,
    hook: Option<Hook>,
}

impl Witness {
    pub(crate) fn new(inner: Arc<dyn Client>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            inner,
            log: Mutex::default(),
            noted: Condvar::new(),
        })
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.log.lock().unwrap().events.clone()
    }

    /// Waits until the events are as wanted.
    pub(crate) fn wait_for(&self, wanted: impl Fn(&[Event]) -> bool) {
        let log = self.log.lock().unwrap();
        let (log, timeout) = self
            .noted
            .wait_timeout_while(log, DEADLINE, |log| !wanted(&log.events))
            .unwrap();
        assert!(!timeout.timed_out(), "{:?}", log.events);
    }

    /// How often the runtime was asked to delete the array with this handle.
    pub(crate) fn deletions(&self, handle: u64) -> usize {
        let of_it = [Event::Delete(handle), Event::DeleteTogether(handle)];
        let events = self.events();
        events.iter().filter(|event| of_it.contains(event)).count()
    }

    /// How often `delete_values` was called.
    pub(crate) fn batches(&self) -> usize {
        self.log.lock().unwrap().batches
    }

    /// Forgets the events so far.
    pub(crate) fn forget(&self) {
        self.log.lock().unwrap().events.clear();
    }

    /// Called from within the runtime at every event.
    pub(crate) fn set_hook(&self, hook: impl Fn(Event) + Send + Sync + 'static) {
        self.log.lock().unwrap().hook = Some(Arc::new(hook));
    }

    /// The number of the handle that is made next.
    pub(crate) fn next_handle(&self) -> u64 {
        self.log.lock().unwrap().next
    }

    fn note(&self, event: Event) {
        let hook = {
            let mut log = self.log.lock().unwrap();
            log.events.push(event);
            log.hook.clone()
        };
        self.noted.notify_all();
        if let Some(hook) = hook {
            hook(event);
        }
    }

    fn wrap(&self, inner: ArrayRef) -> ArrayRef {
        let mut log = self.log.lock().unwrap();
        let handle = log.next;
        log.next += 1;
        Arc::new(WitnessArray {
            client: self.this.upgrade().unwrap(),
            handle,
            inner: Some(inner),
        })
    }

    fn wrap_all(&self, inner: Vec<ArrayRef>) -> Vec<ArrayRef> {
        inner.into_iter().map(|array| self.wrap(array)).collect()
    }

    fn unwrap_all(arrays: &[ArrayRef]) -> Vec<ArrayRef> {
        arrays
            .iter()
            .map(|array| of(&**array).inner().clone())
            .collect()
    }
}

fn of(array: &dyn Any) -> &WitnessArray {
    array.downcast_ref().unwrap()
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness")
    }
}

impl Client for Witness {
    fn runtime_type(&self) -> &str {
        self.inner.runtime_type()
    }
    fn platform_name(&self) -> &str {
        self.inner.platform_name()
    }
    fn platform_version(&self) -> &str {
        self.inner.platform_version()
    }
    fn platform_id(&self) -> u64 {
        self.inner.platform_id()
    }
    fn process_index(&self) -> i32 {
        self.inner.process_index()
    }
    fn attributes(&self) -> &AttributeMap {
        self.inner.attributes()
    }
    fn devices(&self) -> &[DeviceRef] {
        self.inner.devices()
    }
    fn addressable_devices(&self) -> &[DeviceRef] {
        self.inner.addressable_devices()
    }
    fn default_device_assignment(
        &self,
        num_replicas: usize,
        num_partitions: usize,
    ) -> Result<Vec<Vec<DeviceId>>> {
        self.inner
            .default_device_assignment(num_replicas, num_partitions)
    }
    fn default_compiler(&self) -> CompilerRef {
        Arc::new(executable::WitnessCompiler {
            client: self.this.upgrade().unwrap(),
            inner: self.inner.default_compiler(),
        })
    }
    fn default_layout(
        &self,
        dtype: DType,
        shard_shape: &Shape,
        device: &DeviceRef,
        memory_kind: &MemoryKind,
    ) -> Result<Layout> {
        self.inner
            .default_layout(dtype, shard_shape, device, memory_kind)
    }
    fn make_array_from_host_buffer(
        &self,
        buffer: HostBuffer<'_>,
        sharding: ShardingRef,
        layout: Option<Layout>,
    ) -> Result<ArrayRef> {
        let made = self
            .inner
            .make_array_from_host_buffer(buffer, sharding, layout)?;
        Ok(self.wrap(made))
    }
    fn make_arrays_from_host_buffer_shards(
        &self,
        arrays: Vec<HostShards<'_>>,
    ) -> Result<Vec<ArrayRef>> {
        Ok(self.wrap_all(self.inner.make_arrays_from_host_buffer_shards(arrays)?))
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
        let arrays = Self::unwrap_all(arrays);
        let made = self
            .inner
            .assemble_array(dtype, shape, sharding, &arrays, copy, shards)?;
        Ok(self.wrap(made))
    }
    fn copy_arrays(
        &self,
        arrays: &[ArrayRef],
        devices: Option<DeviceList>,
        memory_kind: Option<MemoryKind>,
        copy: ArrayCopySemantics,
    ) -> Result<Vec<ArrayRef>> {
        let inner = Self::unwrap_all(arrays);
        let made = self.inner.copy_arrays(&inner, devices, memory_kind, copy)?;
        if copy == ArrayCopySemantics::DonateInput {
            for array in arrays {
                self.note(Event::Donated(of(&**array).handle));
            }
        }
        Ok(self.wrap_all(made))
    }
    fn delete_values(&self, values: &[ValueRef]) -> Completion {
        self.log.lock().unwrap().batches += 1;
        let mut inner = Vec::new();
        for value in values {
            let array = of(&**value);
            self.note(Event::DeleteTogether(array.handle));
            inner.push(array.inner().clone() as ValueRef);
        }
        self.inner.delete_values(&inner)
    }
}

struct WitnessArray {
    client: Arc<Witness>,
    handle: u64,
    /// Taken when this is dropped.
    inner: Option<ArrayRef>,
}

impl WitnessArray {
    fn inner(&self) -> &ArrayRef {
        self.inner.as_ref().unwrap()
    }
}

impl Drop for WitnessArray {
    fn drop(&mut self) {
        self.inner = None;
        self.client.note(Event::Dropped(self.handle));
    }
}

impl fmt::Debug for WitnessArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WitnessArray({})", self.handle)
    }
}

impl Value for WitnessArray {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.client) as Arc<dyn Client>
    }
    fn byte_size(&self) -> Result<Option<u64>> {
        self.inner().byte_size()
    }
    fn ready(&self) -> Completion {
        self.inner().ready()
    }
    fn delete(&self) -> Completion {
        self.client.note(Event::Delete(self.handle));
        self.inner().delete()
    }
    fn is_deleted(&self) -> bool {
        self.client.note(Event::IsDeleted(self.handle));
        self.inner().is_deleted()
    }
}

impl Array for WitnessArray {
    fn dtype(&self) -> DType {
        self.inner().dtype()
    }
    fn shape(&self) -> &Shape {
        self.inner().shape()
    }
    fn sharding(&self) -> &ShardingRef {
        self.inner().sharding()
    }
    fn layout(&self) -> Result<Option<Layout>> {
        self.inner().layout()
    }
    fn disassemble(
        &self,
        copy: ArrayCopySemantics,
        shards: ShardSemantics,
    ) -> Result<Vec<ArrayRef>> {
        Ok(self
            .client
            .wrap_all(self.inner().disassemble(copy, shards)?))
    }
    fn fully_replicated_shard(&self, copy: ArrayCopySemantics) -> Result<ArrayRef> {
        Ok(self.client.wrap(self.inner().fully_replicated_shard(copy)?))
    }
    fn copy_to_host(&self, byte_strides: Option<&[i64]>) -> Completion<HostValue> {
        self.inner().copy_to_host(byte_strides)
    }
}
