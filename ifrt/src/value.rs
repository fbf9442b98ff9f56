//! [`Value`]: what every object that holds data has in common, and how data is deleted.
//!
//! # Mirrors
//! `xla/python/ifrt/value.h`.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

mod lifecycle;

pub use lifecycle::Lifecycle;

use crate::array::ArrayRef;
use crate::client::Client;
use crate::completion::Completion;
use crate::status::{Result, Status};
use crate::tuple::TupleRef;
use crate::user_context::UserContextRef;

/// A shared [`Value`].
pub type ValueRef = Arc<dyn Value>;

/// The text of the error that [`Value::ready`] gives after deletion or donation.
///
/// jaxlib compares the whole message with this one and shows its own words instead.
pub const READY_ON_DELETED: &str = "GetReadyFuture() called on deleted or donated buffer";

/// The text of the error, a FAILED_PRECONDITION, that every operation on an array of strings gives
/// after deletion, [`Value::ready`] included.
///
/// # Mirrors
/// `xla/python/pjrt_ifrt/basic_string_array.cc`, the only place where the reference does not say
/// INVALID_ARGUMENT; the proxy passes both on as they are.
pub const STRINGS_ON_DELETED: &str = "Array has already been deleted";

/// Something that holds data on devices.
///
/// # Deletion
/// 1. [`Value::delete`] only asks. It must not wait: not for pending users of the data, not for
///    the memory to be freed, not for a remote machine.
/// 2. As soon as it has returned, [`Value::is_deleted`] is true, whatever the completion says then
///    or later, and stays true.
/// 3. It may be called again, also from several threads at once. All completions of one value end
///    with the same result, and the runtime below sees one deletion.
/// 4. Operations that were enqueued before (reads, copies, executions) succeed with the old data.
///    Operations enqueued after it fail with INVALID_ARGUMENT; for arrays of strings with
///    FAILED_PRECONDITION and the text [`STRINGS_ON_DELETED`].
/// 5. A donated value counts as deleted. Deleting it succeeds and does nothing.
/// 6. Dropping the last reference is not deletion: the resources go away, nobody is told.
/// 7. Dropping the completion cancels nothing.
///
/// A runtime that cannot tell when the memory is free may answer OK at once. A deletion that fails
/// does not bring the value back.
///
/// [`Lifecycle`] keeps rules 2, 3 and 5 for a runtime that has nothing finer.
///
/// # Conformance
/// ARR-52 to ARR-55, NEW-01 to NEW-14; for strings STR-05, STR-19, STR-22, STR-28 and STR-31.
pub trait Value: Any + Send + Sync + Debug {
    /// The client that owns the value: always the same object, so that two values can be asked
    /// whether they belong together.
    ///
    /// # Blocking
    /// Never.
    fn client(&self) -> Arc<dyn Client>;

    /// This value as an array, if it is one.
    ///
    /// Rust cannot ask an object which traits it has, so each implementation of
    /// [`crate::array::Array`] must answer `Some(self)`. One that forgets it is no array to tuples,
    /// bundles and hashes.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Mirrors
    /// `xla/python/ifrt/value_util.h`, which asks with `dyn_cast<Array>`.
    ///
    /// # Conformance
    /// ARR-01, BUN-01.
    fn into_array(self: Arc<Self>) -> Option<ArrayRef> {
        None
    }

    /// This value as a tuple, if it is one. Each implementation of [`crate::tuple::Tuple`]
    /// must answer `Some(self)`.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Conformance
    /// TUP-04.
    fn into_tuple(self: Arc<Self>) -> Option<TupleRef> {
        None
    }

    /// The place in the user's program that made the value.
    ///
    /// # Blocking
    /// Never.
    fn user_context(&self) -> Option<UserContextRef> {
        None
    }

    /// The bytes that one shard takes on its device; `None` if its type has no size.
    ///
    /// # Blocking
    /// May be a round trip in a remote runtime.
    ///
    /// # Errors
    /// Those of the runtime.
    fn byte_size(&self) -> Result<Option<u64>>;

    /// Ready when the data is there or has failed.
    ///
    /// After deletion or donation: INVALID_ARGUMENT with the text [`READY_ON_DELETED`], or what
    /// [`STRINGS_ON_DELETED`] says for strings.
    ///
    /// # Blocking
    /// Never; the completion tells.
    fn ready(&self) -> Completion;

    /// Asks for deletion; see the trait for the rules.
    ///
    /// # Blocking
    /// Never; the completion tells when the runtime is done.
    fn delete(&self) -> Completion;

    /// True once deletion was asked for or the value was donated.
    ///
    /// # Blocking
    /// Never.
    fn is_deleted(&self) -> bool;
}

/// The arrays as values: the same objects in the same order.
pub fn to_values(arrays: &[ArrayRef]) -> Vec<ValueRef> {
    let upcast = |array: &ArrayRef| Arc::clone(array) as ValueRef;
    arrays.iter().map(upcast).collect()
}

/// The values as arrays: the same objects in the same order.
///
/// # Errors
/// INVALID_ARGUMENT if one of them is no array, naming its position.
///
/// # Mirrors
/// `xla/python/ifrt/value_util.h`, `ToArrays`, which aborts the process instead.
pub fn to_arrays(values: &[ValueRef]) -> Result<Vec<ArrayRef>> {
    let downcast = |(position, value): (usize, &ValueRef)| {
        Arc::clone(value).into_array().ok_or_else(|| {
            Status::invalid_argument(format!("value {position} is no array: {value:?}"))
        })
    };
    values.iter().enumerate().map(downcast).collect()
}

/// Checks that everything is owned by `client`; `what` is the word for one thing.
///
/// # Errors
/// INVALID_ARGUMENT naming the first that is not.
pub(crate) fn check_owner<'a>(
    client: &Arc<dyn Client>,
    owners: impl Iterator<Item = Arc<dyn Client>> + 'a,
    what: &str,
) -> Result<()> {
    for (position, owner) in owners.enumerate() {
        if !Arc::ptr_eq(&owner, client) {
            return Err(Status::invalid_argument(format!(
                "{what} {position} belongs to another client"
            )));
        }
    }
    Ok(())
}
