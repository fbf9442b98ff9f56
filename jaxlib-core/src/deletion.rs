//! Deletion: total, silent, immediate for the caller, whatever the runtime does.
//!
//! - `Cell`: the life of one buffer in one word, shared by everybody who can reach the buffer.
//! - `BufferSet`: the runtime's handle of one array and the cells behind it.
//! - `Uses`: the buffers of one call, taken all together or not at all; donation.
//! - `Sink`: the threads that talk to the runtime, so that the user's thread never does.
//!
//! # The rules
//! 1. Deleting marks the cells and moves the handle to the sink. It cannot fail and waits for
//!    nothing: no lock is held for longer than a few instructions, no runtime is called.
//! 2. From then on every user of the buffer sees it dead, in every thread, for ever.
//! 3. An operation pins its buffers while it is being enqueued. The handle of a pinned array goes to
//!    the sink only after the last pin, so the runtime sees deletions delayed, but never before an
//!    operation that was accepted.
//! 4. The runtime sees at most one deletion per handle, and none for what it was given as a
//!    donation.
//! 5. No lock is held while the runtime is called, so it may call back into this crate.
//!
//! # Mirrors
//! `jaxlib/py_array.cc`, `PyArray::Delete` and `PyArray::IsDeleted`, where the Python interpreter's
//! lock takes the place of the cells.

mod buffer_set;
mod cell;
mod sink;
mod uses;

pub(crate) use buffer_set::{BufferSet, Cells};
pub use cell::DeadReason;
pub use sink::DeletionStats;
pub(crate) use sink::Sink;
pub(crate) use uses::{DeadArgument, Mode, Uses};

#[cfg(doc)]
use cell::Cell;
