//! Wrapping what comes out of the client below, and unwrapping what goes back in.

use std::any::Any;
use std::sync::Arc;

use super::LayeredClient;
use crate::array::ArrayRef;
use crate::bundle::BundleRef;
use crate::layer::Observer;
use crate::layer::array::LayeredArray;
use crate::layer::group::{LayeredBundle, LayeredTuple};
use crate::status::Result;
use crate::tuple::TupleRef;
use crate::value::ValueRef;

impl<O: Observer> LayeredClient<O> {
    pub(in crate::layer) fn wrap_array(&self, array: ArrayRef) -> Result<(ArrayRef, u64)> {
        let wrapped = LayeredArray::new(self.arc()?, array);
        let id = wrapped.id();
        Ok((Arc::new(wrapped), id))
    }

    pub(in crate::layer) fn wrap_arrays(
        &self,
        arrays: Vec<ArrayRef>,
    ) -> Result<(Vec<ArrayRef>, Vec<u64>)> {
        arrays
            .into_iter()
            .map(|array| self.wrap_array(array))
            .collect()
    }

    /// A value that is neither an array nor a tuple stays as it is.
    pub(in crate::layer) fn wrap_value(&self, value: ValueRef) -> Result<(ValueRef, u64)> {
        if let Some(array) = Arc::clone(&value).into_array() {
            let (array, id) = self.wrap_array(array)?;
            return Ok((array, id));
        }
        let Some(tuple) = Arc::clone(&value).into_tuple() else {
            return Ok((value, 0));
        };
        let elements = tuple.unpack()?.into_iter();
        let elements = elements.map(|value| Ok(self.wrap_value(value)?.0));
        let (tuple, id) = self.wrap_tuple(tuple, elements.collect::<Result<_>>()?)?;
        Ok((tuple, id))
    }

    pub(super) fn wrap_tuple(
        &self,
        tuple: TupleRef,
        elements: Vec<ValueRef>,
    ) -> Result<(TupleRef, u64)> {
        let wrapped = LayeredTuple::new(self.arc()?, tuple, elements);
        let id = wrapped.id();
        Ok((Arc::new(wrapped), id))
    }

    pub(in crate::layer) fn wrap_bundle(&self, bundle: BundleRef) -> Result<(BundleRef, Vec<u64>)> {
        let wrapped = LayeredBundle::new(self.arc()?, bundle);
        let id = wrapped.id();
        Ok((Arc::new(wrapped), vec![id]))
    }

    /// The array below and its number. What is not of this layer goes down as it is, for the
    /// runtime to refuse.
    pub(in crate::layer) fn unwrap_array(&self, array: &ArrayRef) -> (ArrayRef, u64) {
        let any: &dyn Any = &**array;
        match any.downcast_ref::<LayeredArray<O>>() {
            Some(own) if self.owns(own.layer()) => (Arc::clone(own.inner()), own.id()),
            _ => (Arc::clone(array), 0),
        }
    }

    pub(in crate::layer) fn unwrap_arrays(&self, arrays: &[ArrayRef]) -> (Vec<ArrayRef>, Vec<u64>) {
        arrays.iter().map(|array| self.unwrap_array(array)).unzip()
    }

    fn unwrap_value(&self, value: &ValueRef) -> (ValueRef, u64) {
        let any: &dyn Any = &**value;
        if let Some(own) = any.downcast_ref::<LayeredArray<O>>()
            && self.owns(own.layer())
        {
            return (Arc::clone(own.inner()) as ValueRef, own.id());
        }
        if let Some(own) = any.downcast_ref::<LayeredTuple<O>>()
            && self.owns(own.layer())
        {
            return (Arc::clone(own.inner()) as ValueRef, own.id());
        }
        (Arc::clone(value), 0)
    }

    pub(super) fn unwrap_values(&self, values: &[ValueRef]) -> (Vec<ValueRef>, Vec<u64>) {
        values.iter().map(|value| self.unwrap_value(value)).unzip()
    }

    pub(in crate::layer) fn unwrap_bundles(
        &self,
        bundles: &[BundleRef],
    ) -> (Vec<BundleRef>, Vec<u64>) {
        let unwrap = |bundle: &BundleRef| {
            let any: &dyn Any = &**bundle;
            match any.downcast_ref::<LayeredBundle<O>>() {
                Some(own) if self.owns(own.layer()) => (Arc::clone(own.inner()), own.id()),
                _ => (Arc::clone(bundle), 0),
            }
        };
        bundles.iter().map(unwrap).unzip()
    }

    fn owns(&self, layer: &Arc<Self>) -> bool {
        std::ptr::eq(&**layer, self)
    }
}
