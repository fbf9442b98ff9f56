//! [`Bundle`]: many values handled as one.
//!
//! A bundle saves a remote runtime a message per value. It is not a value: it says of itself
//! whether it was deleted, and asks nobody what happened to its members since.
//!
//! # Mirrors
//! `xla/python/ifrt/bundle.h`.

mod basic;
mod execute;

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

pub use basic::BasicBundle;
pub use execute::execute_bundle;

use crate::array::ArrayCopySemantics;
use crate::array_spec::ArraySpec;
use crate::client::Client;
use crate::completion::Completion;
use crate::device_list::DeviceList;
use crate::memory::MemoryKind;
use crate::status::{Result, Status};
use crate::user_context::UserContextRef;
use crate::value::ValueRef;

/// A shared [`Bundle`].
pub type BundleRef = Arc<dyn Bundle>;

/// Where the next values of a bundle are copied to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopySlice {
    /// How many values.
    pub num_values: usize,
    /// To which devices; `None` keeps theirs.
    pub devices: Option<DeviceList>,
    /// Into which memory; `None` keeps theirs.
    pub memory_kind: Option<MemoryKind>,
}

/// An ordered list of values that a runtime handles as one.
///
/// # Deletion
/// [`Bundle::delete`] deletes every member and follows the rules of [`crate::value::Value`]. A
/// bundle that was donated is consumed: it counts as deleted, and only the result of the donation
/// holds the values. Dropping a bundle gives up its references and deletes nothing, so values that
/// others hold stay alive, and so do buffers that a member shares with other arrays.
pub trait Bundle: Any + Send + Sync + Debug {
    /// The client that owns the values, also if there are none.
    ///
    /// # Blocking
    /// Never.
    fn client(&self) -> Arc<dyn Client>;

    /// The place in the user's program that made the bundle.
    ///
    /// # Blocking
    /// Never.
    fn user_context(&self) -> Option<UserContextRef> {
        None
    }

    /// Ready when all values are, with one of their errors if any failed. After deletion or
    /// donation: INVALID_ARGUMENT with the text [`crate::value::READY_ON_DELETED`].
    ///
    /// # Blocking
    /// Never; the completion tells.
    fn ready(&self) -> Completion;

    /// Deletes all values.
    ///
    /// # Blocking
    /// Never; the completion tells when the runtime is done.
    fn delete(&self) -> Completion;

    /// True once the bundle as a whole was deleted or donated, whatever became of its values.
    ///
    /// # Blocking
    /// Never.
    fn is_deleted(&self) -> bool;

    /// The number of values, also of a bundle that is gone.
    ///
    /// # Blocking
    /// Never.
    fn num_values(&self) -> usize;

    /// The values in order.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for [`ArrayCopySemantics::AlwaysCopy`]; FAILED_PRECONDITION if the bundle is
    /// gone.
    ///
    /// # Conformance
    /// BUN-01, BUN-04.
    fn values(&self, copy: ArrayCopySemantics) -> Result<Vec<ValueRef>>;

    /// What the values are, if all of them are arrays.
    ///
    /// # Blocking
    /// May be a round trip in a remote runtime.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a value is no array; FAILED_PRECONDITION if the bundle is gone.
    fn array_specs(&self) -> Result<Vec<ArraySpec>>;

    /// The bundle in pieces of `sizes` values each.
    ///
    /// # Shapes
    /// The sizes add up to [`Bundle::num_values`].
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if they do not, or for [`ArrayCopySemantics::AlwaysCopy`];
    /// FAILED_PRECONDITION if the bundle is gone.
    ///
    /// # Conformance
    /// BUN-03.
    fn slice(&self, sizes: &[usize], copy: ArrayCopySemantics) -> Result<Vec<BundleRef>>;

    /// Copies the values, slice by slice, and puts the copies into one bundle.
    ///
    /// # Shapes
    /// The sizes of the slices add up to [`Bundle::num_values`]. The arrays of one slice have the
    /// same devices and memory kind, see [`Client::copy_arrays`].
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if that is not so or a value is no array; FAILED_PRECONDITION if the bundle
    /// is gone. With [`ArrayCopySemantics::DonateInput`] the slices before the one that failed may
    /// be consumed; the bundle itself is not.
    ///
    /// # Conformance
    /// BUN-05, BUN-07 to BUN-09.
    fn copy_arrays(&self, slices: &[CopySlice], copy: ArrayCopySemantics) -> Result<BundleRef>;

    /// Spreads the arrays differently and puts the results into one bundle.
    ///
    /// # Shapes
    /// One spec per value.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if there are more or fewer specs or a value is no array;
    /// FAILED_PRECONDITION if the bundle is gone; those of [`Client::reshard_arrays`].
    ///
    /// # Conformance
    /// BUN-06, RSH-01 to RSH-20.
    fn reshard_arrays(&self, specs: &[ArraySpec], copy: ArrayCopySemantics) -> Result<BundleRef>;
}

/// The error for a bundle that is gone.
pub(crate) fn gone() -> Status {
    Status::failed_precondition("the bundle was deleted or donated")
}

/// Refuses the semantics that no bundle can have: it only ever hands references on.
pub(crate) fn refuse_always_copy(copy: ArrayCopySemantics) -> Result<()> {
    if copy == ArrayCopySemantics::AlwaysCopy {
        return Err(Status::invalid_argument(
            "a bundle cannot copy the values that it hands on; ask it to reuse or to donate them",
        ));
    }
    Ok(())
}

/// Splits `items` into runs of these sizes.
///
/// # Errors
/// INVALID_ARGUMENT if the sizes do not add up to the number of items.
fn split<'a, T>(items: &'a [T], sizes: &[usize]) -> Result<Vec<&'a [T]>> {
    let total = sizes
        .iter()
        .try_fold(0_usize, |n, size| n.checked_add(*size));
    if total != Some(items.len()) {
        return Err(Status::invalid_argument(format!(
            "slices of {sizes:?} values do not make up {} values",
            items.len()
        )));
    }
    let mut rest = items;
    let runs = sizes.iter().map(|size| {
        let (run, others) = rest.split_at(*size);
        rest = others;
        run
    });
    Ok(runs.collect())
}
