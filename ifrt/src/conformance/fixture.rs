//! What a case works with.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::backend::{Backend, Caps};
use super::check::{Check, Stop, equal};
use super::data::Host;
use super::program::ProgramKind;
use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::array_spec::ArraySpec;
use crate::client::{Client, HostShards};
use crate::completion::Completion;
use crate::device::DeviceRef;
use crate::device_list::DeviceList;
use crate::executable::LoadedExecutableRef;
use crate::fake::fault::FaultPlan;
use crate::host_buffer::{HostBuffer, HostValue};
use crate::memory::MemoryKind;
use crate::program::{CompileOptions, Program};
use crate::sharding::{Sharding, ShardingKind, ShardingRef};
use crate::status::{Result, Status};
use crate::user_context::{self, UserContext, UserContextScope};
use crate::value::ValueRef;
use crate::xla::HloSharding;

/// Long enough for any machine; only a hang takes it.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// The number of the user context in which cases call.
pub(crate) const CONTEXT: u64 = 100;

/// A case's own client, and what every case needs to do with it.
pub(crate) struct Fixture {
    backend: Arc<dyn Backend>,
    pub(crate) client: Arc<dyn Client>,
    pub(crate) caps: Caps,
}

impl Fixture {
    pub(crate) fn new(backend: &Arc<dyn Backend>) -> Result<Self> {
        Ok(Self {
            client: backend.client()?,
            caps: backend.caps(),
            backend: Arc::clone(backend),
        })
    }

    /// The same with a client that cannot reach all devices.
    pub(crate) fn multi_process(&self) -> Check<Self> {
        match self.backend.multi_process_client()? {
            Some(client) => Ok(Self {
                backend: Arc::clone(&self.backend),
                client,
                caps: self.caps,
            }),
            None => Err(Stop::skipped("needs devices that the process cannot reach")),
        }
    }

    /// Another client of the same runtime.
    pub(crate) fn another(&self) -> Check<Self> {
        Ok(Self::new(&self.backend)?)
    }

    pub(crate) fn faults(&self) -> Check<FaultPlan> {
        self.backend
            .faults(&self.client)
            .ok_or_else(|| Stop::skipped("needs a runtime that can be made to misbehave"))
    }

    pub(crate) fn needs(&self, has: bool, what: &str) -> Check {
        if has {
            return Ok(());
        }
        Err(Stop::skipped(format!("the runtime has no {what}")))
    }

    /// The result of a completion; a hang is a failure.
    #[track_caller]
    pub(crate) fn result<T: Clone>(&self, completion: &Completion<T>) -> Check<Result<T>> {
        completion
            .wait_timeout(PATIENCE)
            .ok_or_else(|| Stop::failed(format_args!("a result does not come in {PATIENCE:?}")))
    }

    /// The value of a completion that must succeed.
    #[track_caller]
    pub(crate) fn value<T: Clone>(&self, completion: &Completion<T>) -> Check<T> {
        Ok(self.result(completion)??)
    }

    #[track_caller]
    pub(crate) fn ready(&self, array: &ArrayRef) -> Check {
        self.value(&array.ready())
    }

    // Devices.

    /// The first `count` addressable devices.
    pub(crate) fn devices(&self, count: usize) -> Check<DeviceList> {
        let devices = self.client.addressable_devices();
        match devices.get(..count) {
            Some(devices) => Ok(devices.iter().cloned().collect()),
            None => Err(Stop::skipped(format!(
                "needs {count} devices, but there are {}",
                devices.len()
            ))),
        }
    }

    /// Addressable devices by position.
    pub(crate) fn devices_at(&self, positions: &[usize]) -> Check<DeviceList> {
        let count = positions.iter().max().map_or(0, |last| last + 1);
        let all = self.devices(count)?;
        let device = |position: &usize| Arc::clone(&all.devices()[*position]);
        Ok(positions.iter().map(device).collect())
    }

    pub(crate) fn device(&self, position: usize) -> Check<DeviceRef> {
        Ok(Arc::clone(&self.devices_at(&[position])?.devices()[0]))
    }

    /// Some device that the process cannot reach.
    pub(crate) fn unreachable_device(&self) -> Check<DeviceRef> {
        let devices = self.client.devices().iter();
        let mut unreachable = devices.filter(|device| !device.is_addressable());
        unreachable
            .next()
            .cloned()
            .ok_or_else(|| Stop::skipped("every device can be reached"))
    }

    /// The kinds of memory of the first device.
    pub(crate) fn memory_kinds(&self) -> Check<Vec<MemoryKind>> {
        let memories = self.device(0)?.memories().to_vec();
        Ok(memories
            .iter()
            .map(|memory| memory.kind().clone())
            .collect())
    }

    /// Every ordered pair of kinds of memory.
    pub(crate) fn memory_pairs(&self) -> Check<Vec<(MemoryKind, MemoryKind)>> {
        let kinds = self.memory_kinds()?;
        let pairs = |from: &MemoryKind| {
            let from = from.clone();
            kinds.clone().into_iter().map(move |to| (from.clone(), to))
        };
        Ok(kinds.iter().flat_map(pairs).collect())
    }

    // Shardings.

    pub(crate) fn single(&self, position: usize) -> Check<ShardingRef> {
        self.single_in(position, &MemoryKind::default())
    }

    pub(crate) fn single_in(&self, position: usize, kind: &MemoryKind) -> Check<ShardingRef> {
        Ok(Sharding::single_device(
            self.device(position)?,
            kind.clone(),
        ))
    }

    pub(crate) fn sharding(
        &self,
        kind: ShardingKind,
        devices: &DeviceList,
        memory_kind: &MemoryKind,
    ) -> Check<ShardingRef> {
        let sharding = Sharding::new(kind, devices.clone(), memory_kind.clone())?;
        Ok(Arc::new(sharding))
    }

    /// An even sharding; replicated if shard and array have the same shape.
    pub(crate) fn even(
        &self,
        dims: &[i64],
        shard_dims: &[i64],
        devices: &DeviceList,
        memory_kind: &MemoryKind,
    ) -> Check<ShardingRef> {
        let kind = ShardingKind::ConcreteEven {
            shape: super::data::shape(dims)?,
            shard_shape: super::data::shape(shard_dims)?,
            is_fully_replicated: dims == shard_dims,
        };
        self.sharding(kind, devices, memory_kind)
    }

    pub(crate) fn replicated(
        &self,
        devices: &DeviceList,
        memory_kind: &MemoryKind,
    ) -> Check<ShardingRef> {
        self.sharding(
            ShardingKind::Hlo(HloSharding::Replicated),
            devices,
            memory_kind,
        )
    }

    // Arrays.

    /// The array of this data on one device or replicated.
    #[track_caller]
    pub(crate) fn put(&self, host: &Host, sharding: &ShardingRef) -> Check<ArrayRef> {
        self.put_buffer(host.buffer(), sharding)
    }

    #[track_caller]
    pub(crate) fn put_buffer(
        &self,
        buffer: HostBuffer<'_>,
        sharding: &ShardingRef,
    ) -> Check<ArrayRef> {
        let sharding = Arc::clone(sharding);
        let made = self
            .client
            .make_array_from_host_buffer(buffer, sharding, None);
        Ok(made?)
    }

    /// The array of the numbers 0 to 5 that most cases use.
    #[track_caller]
    pub(crate) fn standard(&self) -> Check<ArrayRef> {
        self.put(&Host::iota(crate::DType::F32, &[2, 3])?, &self.single(0)?)
    }

    /// The array of these shards, each from a buffer of its own.
    #[track_caller]
    pub(crate) fn put_shards(&self, spec: ArraySpec, shards: &[Host]) -> Check<ArrayRef> {
        let buffers = shards.iter().map(Host::buffer).enumerate();
        let buffers = buffers
            .map(|(shard, buffer)| (vec![shard], buffer))
            .collect();
        let shards = vec![HostShards { spec, buffers }];
        let mut made = self.client.make_arrays_from_host_buffer_shards(shards)?;
        equal(made.len(), 1, "the number of arrays")?;
        Ok(made.remove(0))
    }

    /// The array of this data, cut as the sharding says.
    #[track_caller]
    pub(crate) fn put_cut(&self, host: &Host, sharding: &ShardingRef) -> Check<ArrayRef> {
        let domains = sharding.index_domains(&host.shape, ShardSemantics::Addressable)?;
        let shards: Check<Vec<Host>> = domains.iter().map(|domain| host.cut(domain)).collect();
        self.put_shards(spec_of(host, sharding), &shards?)
    }

    /// The bytes of an array with one shard, or of the first one of a replicated array.
    #[track_caller]
    pub(crate) fn read(&self, array: &ArrayRef) -> Check<Bytes> {
        Ok(self.value(&array.copy_to_host(None))?.into_bytes()?)
    }

    #[track_caller]
    pub(crate) fn read_strings(&self, array: &ArrayRef) -> Check<Vec<Bytes>> {
        match self.value(&array.copy_to_host(None))? {
            HostValue::Strings(strings) => Ok(strings.to_vec()),
            HostValue::Bytes(_) => Err(Stop::failed("an array of strings reads as bytes")),
        }
    }

    /// The addressable shards as arrays.
    #[track_caller]
    pub(crate) fn shards(&self, array: &ArrayRef) -> Check<Vec<ArrayRef>> {
        let copy = ArrayCopySemantics::ReuseInput;
        Ok(array.disassemble(copy, ShardSemantics::Addressable)?)
    }

    /// The bytes of each addressable shard.
    #[track_caller]
    pub(crate) fn read_shards(&self, array: &ArrayRef) -> Check<Vec<Bytes>> {
        self.shards(array)?
            .iter()
            .map(|shard| self.read(shard))
            .collect()
    }

    /// Checks that each shard holds the part of `host` that the sharding gives it.
    #[track_caller]
    pub(crate) fn holds(&self, array: &ArrayRef, host: &Host) -> Check {
        equal(array.dtype(), host.dtype, "the dtype")?;
        equal(array.shape(), &host.shape, "the shape")?;
        let semantics = ShardSemantics::Addressable;
        let domains = array.sharding().index_domains(&host.shape, semantics)?;
        let shards = self.shards(array)?;
        equal(shards.len(), domains.len(), "the number of shards")?;
        for (position, (shard, domain)) in shards.iter().zip(&domains).enumerate() {
            let part = host.cut(domain)?;
            equal(
                shard.shape(),
                &part.shape,
                &format!("the shape of shard {position}"),
            )?;
            equal(self.read(shard)?, part.bytes, &format!("shard {position}"))?;
        }
        Ok(())
    }

    pub(crate) fn error_array(&self, error: &Status, spec: &ArraySpec) -> Check<ArrayRef> {
        self.needs(self.caps.error_arrays, "error arrays")?;
        let specs = std::slice::from_ref(spec);
        let mut made = self.client.make_error_arrays(error.clone(), specs)?;
        equal(made.len(), 1, "the number of arrays")?;
        Ok(made.remove(0))
    }

    // Programs.

    pub(crate) fn program(
        &self,
        kind: ProgramKind,
        devices: &DeviceList,
    ) -> Check<(Program, CompileOptions)> {
        self.needs(self.caps.programs, "programs")?;
        self.backend
            .program(kind, devices)
            .ok_or_else(|| Stop::skipped(format!("the backend has no program {kind:?}")))
    }

    #[track_caller]
    pub(crate) fn load(
        &self,
        kind: ProgramKind,
        devices: &DeviceList,
    ) -> Check<LoadedExecutableRef> {
        let (program, options) = self.program(kind, devices)?;
        let compiler = self.client.default_compiler();
        self.value(&compiler.compile_and_load(program, options))
    }

    // Values.

    /// Checks that a value was made in the context of [`in_context`].
    #[track_caller]
    pub(crate) fn has_context(&self, value: &ValueRef) -> Check {
        let found = value.user_context().map(|context| context.id());
        equal(found, Some(CONTEXT), "the user context")
    }
}

pub(crate) fn spec_of(host: &Host, sharding: &ShardingRef) -> ArraySpec {
    ArraySpec {
        dtype: host.dtype,
        shape: host.shape.clone(),
        sharding: Arc::clone(sharding),
        layout: None,
    }
}

#[derive(Debug)]
struct TestContext(u64);

impl UserContext for TestContext {
    fn id(&self) -> u64 {
        self.0
    }

    fn debug_string(&self) -> String {
        format!("TestUserContext({})", self.0)
    }
}

/// What is made until the guard is dropped comes from this context.
pub(crate) fn context(id: u64) -> UserContextScope {
    user_context::scope(Some(Arc::new(TestContext(id))))
}

/// Calls `f` in the context that [`Fixture::has_context`] looks for.
pub(crate) fn in_context<T>(f: impl FnOnce() -> T) -> T {
    let _scope = context(CONTEXT);
    f()
}
