//! [`BasicBundle`]: a bundle for runtimes that have none of their own.

use std::fmt;
use std::sync::Arc;

use super::{Bundle, BundleRef, CopySlice, gone, refuse_always_copy, split};
use crate::array::ArrayCopySemantics;
use crate::array_spec::ArraySpec;
use crate::client::Client;
use crate::completion::Completion;
use crate::status::{Result, Status};
use crate::user_context::{self, UserContextRef};
use crate::value::{Lifecycle, READY_ON_DELETED, ValueRef, check_owner, to_arrays, to_values};

/// A bundle that holds references and asks the client for the rest.
///
/// # Mirrors
/// `xla/python/ifrt/basic_bundle.h`. Unlike there, an empty bundle knows its client, donation
/// consumes the source, and dropping deletes nothing: the last reference to a value frees it
/// anyway, while deleting would also take the buffers that it shares with arrays which live on.
pub struct BasicBundle {
    client: Arc<dyn Client>,
    num_values: usize,
    life: Lifecycle<Arc<[ValueRef]>>,
    user_context: Option<UserContextRef>,
}

impl BasicBundle {
    /// A bundle of these values. Donating them means that the caller gives its references up; as
    /// that is all a bundle holds, it changes nothing here.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for [`ArrayCopySemantics::AlwaysCopy`], or if a value belongs to another
    /// client.
    pub fn of_values(
        client: Arc<dyn Client>,
        values: &[ValueRef],
        copy: ArrayCopySemantics,
    ) -> Result<BundleRef> {
        refuse_always_copy(copy)?;
        check_owner(&client, values.iter().map(|v| v.client()), "value")?;
        Ok(Self::of(client, values.into()))
    }

    /// One bundle with the values of all `bundles`, in order.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for [`ArrayCopySemantics::AlwaysCopy`], if a bundle belongs to another
    /// client, or if one that is donated appears twice; FAILED_PRECONDITION if one is gone. None is
    /// consumed then, unless another thread consumed one of them meanwhile.
    pub fn of_bundles(
        client: Arc<dyn Client>,
        bundles: &[BundleRef],
        copy: ArrayCopySemantics,
    ) -> Result<BundleRef> {
        refuse_always_copy(copy)?;
        check_owner(&client, bundles.iter().map(|b| b.client()), "bundle")?;
        for (position, bundle) in bundles.iter().enumerate() {
            if bundle.is_deleted() {
                return Err(gone());
            }
            let again = |other| Arc::ptr_eq(bundle, other);
            if copy == ArrayCopySemantics::DonateInput && bundles[..position].iter().any(again) {
                return Err(Status::invalid_argument(format!(
                    "bundle {position} was given before and cannot be donated twice"
                )));
            }
        }
        let mut values = Vec::new();
        for bundle in bundles {
            values.extend(bundle.values(copy)?);
        }
        Ok(Self::of(client, values.into()))
    }

    fn of(client: Arc<dyn Client>, values: Arc<[ValueRef]>) -> BundleRef {
        Arc::new(Self {
            client,
            num_values: values.len(),
            life: Lifecycle::new(values),
            user_context: user_context::current(),
        })
    }

    fn get(&self) -> Result<Arc<[ValueRef]>> {
        self.life.get().ok_or_else(gone)
    }

    /// The values, which nobody else gets if they are donated.
    fn take(&self, copy: ArrayCopySemantics) -> Result<Arc<[ValueRef]>> {
        if copy == ArrayCopySemantics::DonateInput {
            self.life.donate().ok_or_else(gone)
        } else {
            self.get()
        }
    }

    /// A bundle of what was made from the values of this one.
    fn replace(&self, values: Vec<ValueRef>, copy: ArrayCopySemantics) -> BundleRef {
        if copy == ArrayCopySemantics::DonateInput {
            drop(self.life.donate());
        }
        Self::of(Arc::clone(&self.client), values.into())
    }
}

impl Bundle for BasicBundle {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.client)
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.user_context.clone()
    }

    fn ready(&self) -> Completion {
        match self.life.get() {
            Some(values) => self.client.ready(&values),
            None => Completion::ready(Err(Status::invalid_argument(READY_ON_DELETED))),
        }
    }

    fn delete(&self) -> Completion {
        self.life
            .delete(|values| self.client.delete_values(&values))
    }

    fn is_deleted(&self) -> bool {
        !self.life.is_live()
    }

    fn num_values(&self) -> usize {
        self.num_values
    }

    fn values(&self, copy: ArrayCopySemantics) -> Result<Vec<ValueRef>> {
        refuse_always_copy(copy)?;
        Ok(self.take(copy)?.to_vec())
    }

    fn array_specs(&self) -> Result<Vec<ArraySpec>> {
        let spec = |array: &crate::array::ArrayRef| {
            Ok(ArraySpec {
                dtype: array.dtype(),
                shape: array.shape().clone(),
                sharding: Arc::clone(array.sharding()),
                layout: array.layout()?,
            })
        };
        to_arrays(&self.get()?)?.iter().map(spec).collect()
    }

    fn slice(&self, sizes: &[usize], copy: ArrayCopySemantics) -> Result<Vec<BundleRef>> {
        refuse_always_copy(copy)?;
        // The sizes are checked before anything is consumed.
        split(&self.get()?, sizes)?;
        let values = self.take(copy)?;
        let slice = |run: &[ValueRef]| Self::of(Arc::clone(&self.client), run.into());
        Ok(split(&values, sizes)?.into_iter().map(slice).collect())
    }

    fn copy_arrays(&self, slices: &[CopySlice], copy: ArrayCopySemantics) -> Result<BundleRef> {
        let arrays = to_arrays(&self.get()?)?;
        let sizes: Vec<usize> = slices.iter().map(|slice| slice.num_values).collect();
        let mut copies = Vec::with_capacity(arrays.len());
        for (run, slice) in split(&arrays, &sizes)?.into_iter().zip(slices) {
            let (devices, kind) = (slice.devices.clone(), slice.memory_kind.clone());
            let made = self.client.copy_arrays(run, devices, kind, copy)?;
            copies.extend(to_values(&made));
        }
        Ok(self.replace(copies, copy))
    }

    fn reshard_arrays(&self, specs: &[ArraySpec], copy: ArrayCopySemantics) -> Result<BundleRef> {
        let arrays = to_arrays(&self.get()?)?;
        if specs.len() != arrays.len() {
            return Err(Status::invalid_argument(format!(
                "{} array specs cannot be those of a bundle of {} values",
                specs.len(),
                arrays.len()
            )));
        }
        let made = self.client.reshard_arrays(&arrays, specs, copy)?;
        Ok(self.replace(to_values(&made), copy))
    }
}

impl fmt::Debug for BasicBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "BasicBundle(num_values={}, {:?})",
            self.num_values, self.life
        )
    }
}
