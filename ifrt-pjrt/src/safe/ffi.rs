//! Handlers of typed custom calls: from a plugin's call frame to a checked [`Call`], and back to an
//! error.
//!
//! A [`Handler`] is safe code that sees slices and numbers. Around it, this module checks the sizes,
//! kinds, types, ranks and attributes of a frame before anything is read, keeps operands and results
//! from overlapping, and stops panics.
//!
//! What is not here: stages other than execution, state, asynchronous results, contexts.
//!
//! # Safety arguments
//! Besides those of [`safe`](crate::safe):
//!
//! - **F1 (frame)** A plugin calls a handler with a frame that is valid for the call, as is all that
//!   it points to, and states its sizes. Nothing beyond a stated size, or that is NULL, is read.
//! - **F2 (buffer)** The buffer of an operand or a result has as many bytes as its type and its
//!   dimensions say. For the time of a call no one else writes an operand or touches a result.
//! - **F3 (overlap)** An exclusive slice is made of the bytes of a result only if they overlap with
//!   no other result; a shared one of the bytes of an operand only if they overlap with no result.
//!   Other operands are copied before the first result is written.
//! - **F4 (plain data)** Every pattern of bits is a value of each [`Element`], and results are
//!   written before they are lent, so their bytes are initialized.
//!
//! # Mirrors
//! `xla/ffi/api/ffi.h`.

mod call;
mod decode;
mod float_environment;
mod register;
mod reply;

pub(crate) use call::{Attribute, Call, Element, ElementKind};
pub(crate) use register::{Target, register, target};

use ifrt::Result;

/// A custom call that is served in Rust.
pub(crate) trait Handler: 'static {
    /// What it computes, for errors.
    const NAME: &'static str;
    /// The number of operands.
    const OPERANDS: usize;
    /// The number of results.
    const RESULTS: usize;
    /// The names of all attributes, in any order.
    const ATTRIBUTES: &'static [&'static str];
    /// Operands that are the initial contents of a result: it is written in their place, which may
    /// or may not be the same memory.
    const IN_PLACE: &'static [(usize, usize)];

    /// Computes the results. Those that are not written are zero.
    ///
    /// # Errors
    /// Whatever is wrong with the call; the execution of the program fails with it.
    fn run(call: &mut Call<'_>) -> Result<()>;
}

#[cfg(test)]
mod tests;
