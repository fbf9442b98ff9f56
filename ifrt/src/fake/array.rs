//! Arrays of the fake.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::client::FakeClient;
use super::elements::{Place, device_bytes};
use super::elements::{copy_block, dense_strides, filled, host_bytes};
use super::fault::Op;
use super::heap::{ArrayId, Buffer, Holder, Unusable};
use super::task::{Contents, derive, when_ready};
use crate::array::{Array, ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::array_spec::ArraySpec;
use crate::client::Client;
use crate::completion::{Completion, join_all};
use crate::dtype::DType;
use crate::host_buffer::HostValue;
use crate::layout::Layout;
use crate::shape::Shape;
use crate::sharding::{Sharding, ShardingRef};
use crate::status::{Result, Status};
use crate::user_context::{self, UserContextRef};
use crate::value::{READY_ON_DELETED, STRINGS_ON_DELETED, Value};

/// An array: what it is, and the buffers of its addressable shards.
pub(super) struct FakeArray {
    client: Arc<FakeClient>,
    id: ArrayId,
    spec: ArraySpec,
    buffers: Vec<Arc<Buffer>>,
    /// What the operation that made the array has to say besides the data of the buffers, which may
    /// be shared with other arrays: not before, or an error.
    own: Completion,
    user_context: Option<UserContextRef>,
}

impl FakeArray {
    pub(super) fn make(
        client: Arc<FakeClient>,
        spec: ArraySpec,
        buffers: Vec<Arc<Buffer>>,
        own: Completion,
    ) -> ArrayRef {
        Arc::new(Self {
            id: client.heap().register_array(),
            client,
            spec,
            buffers,
            own,
            user_context: user_context::current(),
        })
    }

    /// The array behind a reference, if it belongs to `client`.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an array of another client or another runtime.
    pub(super) fn of<'a>(client: &FakeClient, array: &'a ArrayRef) -> Result<&'a Self> {
        let any: &dyn Any = &**array;
        any.downcast_ref::<Self>()
            .filter(|array| std::ptr::eq(&*array.client, client))
            .ok_or_else(|| Status::invalid_argument("the array belongs to another client"))
    }

    pub(super) const fn spec(&self) -> &ArraySpec {
        &self.spec
    }

    pub(super) fn buffers(&self) -> &[Arc<Buffer>] {
        &self.buffers
    }

    pub(super) const fn own(&self) -> &Completion {
        &self.own
    }

    pub(super) fn holder(&self) -> Holder<'_> {
        Holder {
            id: self.id,
            buffers: &self.buffers,
        }
    }

    /// The data of a buffer as this array has it: not before the array itself is ready.
    pub(super) fn gated(&self, contents: Contents) -> Contents {
        match self.own.peek() {
            Some(Ok(())) => contents,
            Some(Err(status)) => Completion::ready(Err(status)),
            None => derive(self.own.clone(), contents, Ok),
        }
    }

    fn read(&self, operation: &str) -> Result<Vec<Contents>> {
        let taken = self.client.heap().take(&[(self.holder(), false)]);
        let mut contents = taken.map_err(|why| unusable(operation, &[self], why))?;
        Ok(contents.pop().unwrap_or_default())
    }

    fn piece(&self, buffer: &Arc<Buffer>, own: Completion) -> ArrayRef {
        let kind = self.spec.sharding.memory_kind().clone();
        let spec = ArraySpec {
            dtype: self.spec.dtype,
            shape: buffer.spec.shape.clone(),
            sharding: Sharding::single_device(Arc::clone(&buffer.spec.device), kind),
            layout: self.spec.layout.clone(),
        };
        Self::make(
            Arc::clone(&self.client),
            spec,
            vec![Arc::clone(buffer)],
            own,
        )
    }

    /// The shard that a read takes.
    fn shard_to_read(&self) -> Result<&Arc<Buffer>> {
        let sharding = &self.spec.sharding;
        if sharding.devices().len() != 1 && !sharding.is_fully_replicated() {
            return Err(Status::invalid_argument(format!(
                "only arrays with one shard and fully replicated ones can be read, but this one \
                 has {} different shards; read each shard of Array::disassemble",
                sharding.devices().len()
            )));
        }
        self.buffers.first().ok_or_else(no_shard)
    }

    fn read_shard(&self, byte_strides: Option<&[i64]>) -> Result<Completion<HostValue>> {
        let buffer = self.shard_to_read()?;
        let order = byte_strides
            .map(|strides| check_reordering(strides, self.spec.dtype, &buffer.spec.shape))
            .transpose()?;
        let strike = self.client.faults().strike_completion(Op::CopyToHost);
        let contents = self.read("CopyToHostBuffer")?.into_iter().next();
        let contents = self.gated(contents.ok_or_else(no_shard)?);
        let (dtype, shape) = (self.spec.dtype, buffer.spec.shape.clone());
        Ok(derive(strike.permit(), contents, move |value| {
            match (value, order) {
                (HostValue::Bytes(data), Some(strides)) => reorder(&data, dtype, &shape, &strides),
                (value, _) => Ok(value),
            }
        }))
    }
}

fn no_shard() -> Status {
    Status::failed_precondition("the array has no shard on a device that this process can reach")
}

/// The error of an operation on `arrays`, one of which is dead or donated twice.
pub(super) fn unusable(operation: &str, arrays: &[&FakeArray], why: Unusable) -> Status {
    if let Unusable::Dead(number) = why
        && arrays
            .get(number)
            .is_some_and(|a| a.spec.dtype == DType::String)
    {
        return Status::failed_precondition(STRINGS_ON_DELETED);
    }
    Status::invalid_argument(match why {
        Unusable::Dead(0) => format!("{operation}() called on deleted or donated buffer"),
        Unusable::Dead(number) => {
            format!("{operation}() called on deleted or donated buffer (array {number})")
        }
        Unusable::DonatedTwice(number) => format!(
            "{operation}() was asked to donate a buffer that another of its arrays uses too (array \
             {number})"
        ),
    })
}

/// Strides that say in which order dense elements stand.
fn check_reordering(strides: &[i64], dtype: DType, shape: &Shape) -> Result<Box<[i64]>> {
    let item = dtype.host_byte_size().ok_or_else(|| {
        Status::invalid_argument(format!("an array of dtype {dtype} is read without strides"))
    })?;
    if strides.len() != shape.rank() {
        return Err(Status::invalid_argument(format!(
            "strides {strides:?} are not for shape {shape}"
        )));
    }
    let mut axes: Vec<usize> = (0..strides.len()).collect();
    axes.sort_by_key(|axis| strides[*axis]);
    let mut expected = i64::try_from(item).unwrap_or(i64::MAX);
    for axis in axes {
        let dim = shape.dims()[axis];
        if dim <= 1 || shape.num_elements() == 0 {
            continue;
        }
        if strides[axis] != expected {
            return Err(Status::unimplemented(format!(
                "the fake reads only into dense buffers, but strides {strides:?} of shape {shape} \
                 and dtype {dtype} leave gaps or overlap"
            )));
        }
        expected = expected.saturating_mul(dim);
    }
    Ok(strides.into())
}

fn reorder(data: &[u8], dtype: DType, shape: &Shape, strides: &[i64]) -> Result<HostValue> {
    let item = dtype.host_byte_size().unwrap_or(1);
    let mut out = filled(host_bytes(dtype, shape)?, 0)?;
    let from = Place {
        offset: 0,
        strides: &dense_strides(shape, item)?,
    };
    let to = Place { offset: 0, strides };
    copy_block(shape.dims(), item, (data, &from), (&mut out, &to))?;
    Ok(HostValue::Bytes(out.into()))
}

impl Value for FakeArray {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.client) as Arc<dyn Client>
    }

    fn into_array(self: Arc<Self>) -> Option<ArrayRef> {
        Some(self)
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.user_context.clone()
    }

    fn byte_size(&self) -> Result<Option<u64>> {
        let dtype = self.spec.dtype;
        if dtype.bit_size().is_none() {
            return Ok(None);
        }
        let Some(buffer) = self.buffers.first() else {
            let Ok(shape) = self.spec.sharding.shard_shape(&self.spec.shape) else {
                return Ok(None);
            };
            return device_bytes(dtype, &shape).map(Some);
        };
        let uneven = |other: &Arc<Buffer>| other.spec.shape != buffer.spec.shape;
        if self.buffers.iter().any(uneven) {
            return Ok(None);
        }
        Ok(Some(buffer.spec.bytes))
    }

    fn ready(&self) -> Completion {
        let strike = self.client.faults().strike_completion(Op::Ready);
        if self.is_deleted() {
            return Completion::ready(Err(match self.spec.dtype {
                DType::String => Status::failed_precondition(STRINGS_ON_DELETED),
                _ => Status::invalid_argument(READY_ON_DELETED),
            }));
        }
        let buffers = self.buffers.iter().map(|buffer| buffer.ready.clone());
        let ready = join_all(buffers.chain([self.own.clone()]));
        let permit = strike.permit();
        if permit.peek() == Some(Ok(())) {
            return ready;
        }
        let (promise, completion) = Completion::pair();
        when_ready(&join_all([permit, ready]), move |result| {
            promise.set(result)
        });
        completion
    }

    fn delete(&self) -> Completion {
        self.client
            .heap()
            .delete(self.holder(), self.client.faults())
    }

    fn is_deleted(&self) -> bool {
        !self.client.heap().is_live(self.holder())
    }
}

impl Array for FakeArray {
    fn dtype(&self) -> DType {
        self.spec.dtype
    }

    fn shape(&self) -> &Shape {
        &self.spec.shape
    }

    fn sharding(&self) -> &ShardingRef {
        &self.spec.sharding
    }

    fn layout(&self) -> Result<Option<Layout>> {
        Ok(self.spec.layout.clone())
    }

    fn disassemble(
        &self,
        _copy: ArrayCopySemantics,
        shards: ShardSemantics,
    ) -> Result<Vec<ArrayRef>> {
        if shards == ShardSemantics::All && !self.spec.sharding.devices().is_fully_addressable() {
            return Err(Status::invalid_argument(
                "the fake has no arrays for shards on devices that this process cannot reach; ask \
                 for the addressable shards",
            ));
        }
        let strike = self.client.faults().strike(Op::Disassemble)?;
        self.read("DisassembleIntoSingleDeviceArrays")?;
        let own = join_all([self.own.clone(), strike.permit()]);
        let piece = |buffer| self.piece(buffer, own.clone());
        Ok(self.buffers.iter().map(piece).collect())
    }

    fn fully_replicated_shard(&self, _copy: ArrayCopySemantics) -> Result<ArrayRef> {
        if !self.spec.sharding.is_fully_replicated() {
            return Err(Status::invalid_argument(
                "FullyReplicatedShard() called on an array that is not fully replicated",
            ));
        }
        let strike = self.client.faults().strike(Op::Disassemble)?;
        self.read("FullyReplicatedShard")?;
        let buffer = self.buffers.first().ok_or_else(no_shard)?;
        Ok(self.piece(buffer, join_all([self.own.clone(), strike.permit()])))
    }

    fn copy_to_host(&self, byte_strides: Option<&[i64]>) -> Completion<HostValue> {
        self.read_shard(byte_strides)
            .unwrap_or_else(|status| Completion::ready(Err(status)))
    }
}

impl Drop for FakeArray {
    fn drop(&mut self) {
        self.client.heap().forget_array(self.id);
    }
}

/// Says what the array is; never its contents, and without waiting.
impl fmt::Debug for FakeArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_deleted() { "deleted" } else { "live" };
        write!(
            f,
            "FakeArray({}{}, {:?}, {state})",
            self.spec.dtype, self.spec.shape, self.spec.sharding
        )
    }
}
