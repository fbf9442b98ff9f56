//! [`Value`]: what every object that holds data has in common, and how data is deleted.
//!
//! # Mirrors
//! `xla/python/ifrt/value.h`.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use crate::client::Client;
use crate::completion::Completion;
use crate::status::Result;
use crate::user_context::UserContextRef;

/// A shared [`Value`].
pub type ValueRef = Arc<dyn Value>;

/// The text of the error that [`Value::ready`] gives after deletion or donation.
///
/// jaxlib compares the whole message with this one and shows its own words instead.
pub const READY_ON_DELETED: &str = "GetReadyFuture() called on deleted or donated buffer";

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
///    Operations enqueued after it fail.
/// 5. A donated value counts as deleted. Deleting it succeeds and does nothing.
/// 6. Dropping the last reference is not deletion: the resources go away, nobody is told.
/// 7. Dropping the completion cancels nothing.
///
/// A runtime that cannot tell when the memory is free may answer OK at once. A deletion that fails
/// does not bring the value back.
pub trait Value: Any + Send + Sync + Debug {
    /// The client that owns the value.
    ///
    /// # Blocking
    /// Never.
    fn client(&self) -> Arc<dyn Client>;

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
    /// After deletion or donation: INVALID_ARGUMENT with the text [`READY_ON_DELETED`].
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
