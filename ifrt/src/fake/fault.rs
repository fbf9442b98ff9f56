//! Faults: how a runtime can misbehave, on purpose and repeatably.
//!
//! A [`FaultPlan`] says what happens to which call. Tests keep a handle, add rules as they go and
//! print it when they fail. A [`Gate`] holds back what a rule makes slow, so that a test decides
//! when it goes on: no test has to sleep. Whoever opens the gate runs what waited behind it, which
//! is why the fake needs no threads.
//!
//! # Examples
//! ```
//! use ifrt::fake::fault::{Fault, Gate, Op, When};
//! use ifrt::fake::{FakeClient, FakeOptions};
//!
//! let client = FakeClient::new(FakeOptions::default());
//! let gate = Gate::new();
//! client.faults().add(Op::Delete, When::Once, Fault::Slow(gate.clone()));
//! // The next deletion completes only now:
//! gate.open();
//! ```

mod gate;
mod plan;

use std::fmt;

pub use gate::{Gate, GateGuard};
pub use plan::FaultPlan;

use crate::status::Status;

/// An operation of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Op {
    /// Making an array from host data, or an error array.
    MakeArray,
    /// Assembling an array from single-device arrays.
    Assemble,
    /// Taking an array apart.
    Disassemble,
    /// Copying arrays to other devices or memories.
    Copy,
    /// Remapping arrays.
    Remap,
    /// Reinterpreting arrays.
    Bitcast,
    /// Resharding arrays.
    Reshard,
    /// Compiling or loading a program.
    Compile,
    /// Running a program.
    Execute,
    /// Asking whether an array is ready.
    Ready,
    /// Deleting one buffer.
    Delete,
    /// Reading an array.
    CopyToHost,
}

impl Op {
    /// Every operation.
    pub const ALL: [Self; 12] = [
        Self::MakeArray,
        Self::Assemble,
        Self::Disassemble,
        Self::Copy,
        Self::Remap,
        Self::Bitcast,
        Self::Reshard,
        Self::Compile,
        Self::Execute,
        Self::Ready,
        Self::Delete,
        Self::CopyToHost,
    ];
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MakeArray => "make_array",
            Self::Assemble => "assemble",
            Self::Disassemble => "disassemble",
            Self::Copy => "copy",
            Self::Remap => "remap",
            Self::Bitcast => "bitcast",
            Self::Reshard => "reshard",
            Self::Compile => "compile",
            Self::Execute => "execute",
            Self::Ready => "ready",
            Self::Delete => "delete",
            Self::CopyToHost => "copy_to_host",
        })
    }
}

/// How a call misbehaves.
///
/// "The result" is the completion that the call returns, or the data of the arrays that it returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The call returns; the result comes when the gate is opened.
    Slow(Gate),
    /// The call returns; the result is this error.
    Fail(Status),
    /// The call itself returns this error. Calls that return a completion fail it.
    Refuse(Status),
    /// The call returns; the result never comes while the plan lives.
    Never,
    /// The call returns; the runtime loses the promise of the result.
    DropPromise,
    /// The call panics.
    Panic,
    /// The call returns only when the gate is opened.
    Block(Gate),
    /// The result comes after that of the next call of the same operation.
    AfterNext,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slow(_) => f.write_str("slow"),
            Self::Fail(status) => write!(f, "fail with {status}"),
            Self::Refuse(status) => write!(f, "refuse with {status}"),
            Self::Never => f.write_str("never ready"),
            Self::DropPromise => f.write_str("drop the promise"),
            Self::Panic => f.write_str("panic"),
            Self::Block(_) => f.write_str("block the caller"),
            Self::AfterNext => f.write_str("ready after the next"),
        }
    }
}

/// Which calls of an operation a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// Each call.
    Always,
    /// The next call; then the rule is spent.
    Once,
    /// The call with this number, counted from zero since the plan was made.
    Nth(u64),
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::Once => f.write_str("once"),
            Self::Nth(number) => write!(f, "call {number}"),
        }
    }
}

#[cfg(test)]
mod tests;
