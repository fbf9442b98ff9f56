//! Tuples and bundles of a layered client.

use std::fmt;
use std::sync::Arc;

use super::client::LayeredClient;
use super::{Call, Observer, Op};
use crate::array::ArrayCopySemantics;
use crate::array_spec::ArraySpec;
use crate::bundle::{Bundle, BundleRef, CopySlice};
use crate::client::Client;
use crate::completion::Completion;
use crate::status::Result;
use crate::tuple::{Tuple, TupleRef};
use crate::user_context::UserContextRef;
use crate::value::{Value, ValueRef};

pub(super) struct LayeredTuple<O: Observer> {
    layer: Arc<LayeredClient<O>>,
    inner: TupleRef,
    /// The very objects that the tuple was made of, which the tuple below knows without the layer.
    elements: Vec<ValueRef>,
    id: u64,
}

impl<O: Observer> LayeredTuple<O> {
    pub(super) fn new(
        layer: Arc<LayeredClient<O>>,
        inner: TupleRef,
        elements: Vec<ValueRef>,
    ) -> Self {
        let id = layer.next_id();
        Self {
            layer,
            inner,
            elements,
            id,
        }
    }

    pub(super) const fn layer(&self) -> &Arc<LayeredClient<O>> {
        &self.layer
    }

    pub(super) const fn inner(&self) -> &TupleRef {
        &self.inner
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    fn call(&self, op: Op) -> Call<'_> {
        self.layer.call(op, std::slice::from_ref(&self.id))
    }
}

impl<O: Observer> Value for LayeredTuple<O> {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.layer) as Arc<dyn Client>
    }

    fn into_tuple(self: Arc<Self>) -> Option<TupleRef> {
        Some(self)
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.inner.user_context()
    }

    fn byte_size(&self) -> Result<Option<u64>> {
        self.layer
            .observe_plain(&self.call(Op::ByteSize), || self.inner.byte_size())
    }

    fn ready(&self) -> Completion {
        self.layer
            .observe_completion(&self.call(Op::Ready), || self.inner.ready())
    }

    fn delete(&self) -> Completion {
        self.layer
            .observe_completion(&self.call(Op::Delete), || self.inner.delete())
    }

    fn is_deleted(&self) -> bool {
        self.inner.is_deleted()
    }
}

impl<O: Observer> Tuple for LayeredTuple<O> {
    fn arity(&self) -> usize {
        self.inner.arity()
    }

    fn unpack(&self) -> Result<Vec<ValueRef>> {
        self.layer.observe_plain(&self.call(Op::Unpack), || {
            self.inner.unpack()?;
            Ok(self.elements.clone())
        })
    }
}

/// The words of the tuple below.
impl<O: Observer> fmt::Debug for LayeredTuple<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}

pub(super) struct LayeredBundle<O: Observer> {
    layer: Arc<LayeredClient<O>>,
    inner: BundleRef,
    id: u64,
}

impl<O: Observer> LayeredBundle<O> {
    pub(super) fn new(layer: Arc<LayeredClient<O>>, inner: BundleRef) -> Self {
        let id = layer.next_id();
        Self { layer, inner, id }
    }

    pub(super) const fn layer(&self) -> &Arc<LayeredClient<O>> {
        &self.layer
    }

    pub(super) const fn inner(&self) -> &BundleRef {
        &self.inner
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    fn call(&self, op: Op) -> Call<'_> {
        self.layer.call(op, std::slice::from_ref(&self.id))
    }
}

impl<O: Observer> Bundle for LayeredBundle<O> {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.layer) as Arc<dyn Client>
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.inner.user_context()
    }

    fn ready(&self) -> Completion {
        self.layer
            .observe_completion(&self.call(Op::Ready), || self.inner.ready())
    }

    fn delete(&self) -> Completion {
        self.layer
            .observe_completion(&self.call(Op::Delete), || self.inner.delete())
    }

    fn is_deleted(&self) -> bool {
        self.inner.is_deleted()
    }

    fn num_values(&self) -> usize {
        self.inner.num_values()
    }

    fn values(&self, copy: ArrayCopySemantics) -> Result<Vec<ValueRef>> {
        self.layer.observe(
            &self.call(Op::Values),
            || self.inner.values(copy),
            |values| {
                let wrap = |value| self.layer.wrap_value(value);
                values.into_iter().map(wrap).collect()
            },
        )
    }

    fn array_specs(&self) -> Result<Vec<ArraySpec>> {
        self.layer
            .observe_plain(&self.call(Op::ArraySpecs), || self.inner.array_specs())
    }

    fn slice(&self, sizes: &[usize], copy: ArrayCopySemantics) -> Result<Vec<BundleRef>> {
        self.layer.observe(
            &self.call(Op::Slice),
            || self.inner.slice(sizes, copy),
            |slices| {
                let (mut wrapped, mut ids) = (Vec::new(), Vec::new());
                for slice in slices {
                    let (slice, id) = self.layer.wrap_bundle(slice)?;
                    wrapped.push(slice);
                    ids.extend(id);
                }
                Ok((wrapped, ids))
            },
        )
    }

    fn copy_arrays(&self, slices: &[CopySlice], copy: ArrayCopySemantics) -> Result<BundleRef> {
        self.layer.observe(
            &self.call(Op::CopyArrays),
            || self.inner.copy_arrays(slices, copy),
            |bundle| self.layer.wrap_bundle(bundle),
        )
    }

    fn reshard_arrays(&self, specs: &[ArraySpec], copy: ArrayCopySemantics) -> Result<BundleRef> {
        self.layer.observe(
            &self.call(Op::ReshardArrays),
            || self.inner.reshard_arrays(specs, copy),
            |bundle| self.layer.wrap_bundle(bundle),
        )
    }
}

/// The words of the bundle below.
impl<O: Observer> fmt::Debug for LayeredBundle<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}
