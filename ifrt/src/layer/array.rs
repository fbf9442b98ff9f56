//! Arrays of a layered client.

use std::fmt;
use std::sync::Arc;

use super::client::LayeredClient;
use super::{Call, Observer, Op};
use crate::array::{Array, ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::client::Client;
use crate::completion::Completion;
use crate::dtype::DType;
use crate::host_buffer::HostValue;
use crate::layout::Layout;
use crate::shape::Shape;
use crate::sharding::ShardingRef;
use crate::status::Result;
use crate::user_context::UserContextRef;
use crate::value::Value;

pub(super) struct LayeredArray<O: Observer> {
    layer: Arc<LayeredClient<O>>,
    inner: ArrayRef,
    id: u64,
}

impl<O: Observer> LayeredArray<O> {
    pub(super) fn new(layer: Arc<LayeredClient<O>>, inner: ArrayRef) -> Self {
        let id = layer.next_id();
        Self { layer, inner, id }
    }

    pub(super) const fn layer(&self) -> &Arc<LayeredClient<O>> {
        &self.layer
    }

    pub(super) const fn inner(&self) -> &ArrayRef {
        &self.inner
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    fn call<'a>(&'a self, op: Op, inputs: &'a [u64]) -> Call<'a> {
        Call {
            dtype: Some(self.inner.dtype()),
            shape: Some(self.inner.shape()),
            devices: Some(self.inner.sharding().devices()),
            ..self.layer.call(op, inputs)
        }
    }
}

impl<O: Observer> Value for LayeredArray<O> {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.layer) as Arc<dyn Client>
    }

    fn into_array(self: Arc<Self>) -> Option<ArrayRef> {
        Some(self)
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.inner.user_context()
    }

    fn byte_size(&self) -> Result<Option<u64>> {
        let call = self.call(Op::ByteSize, std::slice::from_ref(&self.id));
        self.layer.observe_plain(&call, || self.inner.byte_size())
    }

    fn ready(&self) -> Completion {
        let call = self.call(Op::Ready, std::slice::from_ref(&self.id));
        self.layer.observe_completion(&call, || self.inner.ready())
    }

    fn delete(&self) -> Completion {
        let call = self.call(Op::Delete, std::slice::from_ref(&self.id));
        self.layer.observe_completion(&call, || self.inner.delete())
    }

    fn is_deleted(&self) -> bool {
        self.inner.is_deleted()
    }
}

impl<O: Observer> Array for LayeredArray<O> {
    fn dtype(&self) -> DType {
        self.inner.dtype()
    }

    fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    fn sharding(&self) -> &ShardingRef {
        self.inner.sharding()
    }

    fn layout(&self) -> Result<Option<Layout>> {
        let call = self.call(Op::Layout, std::slice::from_ref(&self.id));
        self.layer.observe_plain(&call, || self.inner.layout())
    }

    fn disassemble(
        &self,
        copy: ArrayCopySemantics,
        shards: ShardSemantics,
    ) -> Result<Vec<ArrayRef>> {
        let call = self.call(Op::Disassemble, std::slice::from_ref(&self.id));
        self.layer
            .observe_arrays(&call, || self.inner.disassemble(copy, shards))
    }

    fn fully_replicated_shard(&self, copy: ArrayCopySemantics) -> Result<ArrayRef> {
        let call = self.call(Op::FullyReplicatedShard, std::slice::from_ref(&self.id));
        self.layer.observe(
            &call,
            || self.inner.fully_replicated_shard(copy),
            |array| {
                let (array, id) = self.layer.wrap_array(array)?;
                Ok((array, vec![id]))
            },
        )
    }

    fn copy_to_host(&self, byte_strides: Option<&[i64]>) -> Completion<HostValue> {
        let call = self.call(Op::CopyToHost, std::slice::from_ref(&self.id));
        self.layer
            .observe_completion(&call, || self.inner.copy_to_host(byte_strides))
    }
}

/// The words of the array below: a layer does not show.
impl<O: Observer> fmt::Debug for LayeredArray<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}
