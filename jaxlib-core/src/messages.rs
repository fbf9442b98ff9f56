//! The errors of this crate whose texts JAX users and tests match on.
//!
//! An error is a [`Status`]. Where a program may want to react to the kind of error rather than to
//! its text, the kind stands in a payload and [`Kind::of`] reads it.
//!
//! # Mirrors
//! `jax/_src/array.py`, `jax/_src/pjit.py`, `jax/_src/interpreters/pxla.py`, `jaxlib/py_array.cc`,
//! `xla/pjrt/utils.cc`.

use ifrt::{Result, Status};

use crate::aval::Aval;
use crate::deletion::DeadReason;
use crate::transfer_guard::Direction;

/// The payload that holds the kind of an error.
const KIND: &str = "jaxlib.kind";
/// The payload that holds shape and dtype of the array that an error is about.
const AVAL: &str = "jaxlib.aval";

/// Kinds of errors that a program may want to tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A deleted or donated array was used.
    ArrayDeleted {
        /// Its shape and element type.
        aval: Aval,
        /// How it was lost.
        reason: DeadReason,
    },
    /// A dimension cannot be split into equal parts as a sharding asks.
    Indivisible,
    /// Arguments are on other devices than the program.
    IncompatibleDevices,
    /// Arguments are of other types than the program was compiled for.
    ArgumentMismatch,
    /// A guard does not allow a transfer.
    TransferGuard,
    /// An exported function is for other platforms.
    PlatformMismatch,
    /// An exported function is for another number of devices.
    DeviceCountMismatch,
    /// An exported function is called in a way that is not known.
    UnsupportedCallingConvention,
    /// An exported function has symbolic dimensions.
    NeedsShapeRefinement,
}

impl Kind {
    /// The kind of an error; `None` for one that is only what its code and text say.
    pub fn of(status: &Status) -> Option<Self> {
        let reason = match &**status.payload(KIND)? {
            b"deleted" => DeadReason::Deleted,
            b"donated" => DeadReason::Donated,
            b"indivisible" => return Some(Self::Indivisible),
            b"incompatible devices" => return Some(Self::IncompatibleDevices),
            b"argument mismatch" => return Some(Self::ArgumentMismatch),
            b"transfer guard" => return Some(Self::TransferGuard),
            b"platform mismatch" => return Some(Self::PlatformMismatch),
            b"device count mismatch" => return Some(Self::DeviceCountMismatch),
            b"calling convention" => return Some(Self::UnsupportedCallingConvention),
            b"needs shape refinement" => return Some(Self::NeedsShapeRefinement),
            _ => return None,
        };
        let aval = std::str::from_utf8(status.payload(AVAL)?).ok()?;
        Some(Self::ArrayDeleted {
            aval: Aval::parse(aval).ok()?,
            reason,
        })
    }
}

fn with_kind(message: String, kind: &'static str) -> Status {
    Status::invalid_argument(message).with_payload(KIND, kind)
}

fn dead(message: String, aval: &Aval, reason: DeadReason) -> Status {
    let kind = match reason {
        DeadReason::Deleted => "deleted",
        DeadReason::Donated => "donated",
    };
    with_kind(message, kind).with_payload(AVAL, aval.to_string())
}

/// A deleted or donated array is used.
pub(crate) fn array_deleted(aval: &Aval, reason: DeadReason) -> Status {
    let how = match reason {
        DeadReason::Deleted => "",
        DeadReason::Donated => " It was donated to a call.",
    };
    dead(
        format!("Array has been deleted with shape={aval}.{how}"),
        aval,
        reason,
    )
}

/// The same for waiting, which has words of its own in JAX.
pub(crate) fn wait_on_deleted(aval: &Aval, reason: DeadReason) -> Status {
    dead(
        "BlockHostUntilReady() called on deleted or donated buffer".into(),
        aval,
        reason,
    )
}

pub(crate) fn donated_twice(arg: usize, partition: usize, first: usize) -> Status {
    Status::invalid_argument(format!(
        "Attempt to donate the same buffer twice in Execute() ({}). Toy example for this bug: \
         `f(donate(a), donate(a))`.",
        place(arg, partition, first)
    ))
}

pub(crate) fn donated_after_use(arg: usize, partition: usize, first: usize) -> Status {
    Status::invalid_argument(format!(
        "Attempt to donate a buffer which is also used by the same call to Execute() ({}). Toy \
         example for this bug: `f(a, donate(a))`.",
        place(arg, partition, first)
    ))
}

pub(crate) fn used_after_donation(arg: usize, partition: usize, first: usize) -> Status {
    Status::invalid_argument(format!(
        "Attempt to use a buffer that was previously donated in the same call to Execute() ({}). \
         Toy example for this bug: `f(donate(a), a)`.",
        place(arg, partition, first)
    ))
}

fn place(arg: usize, partition: usize, first: usize) -> String {
    format!("flattened argument {arg}, replica 0, partition {partition}, first use: {first}")
}

/// `what` implies that `shape` is cut into `factors`, which do not divide it at `axis`.
pub(crate) fn indivisible(what: &str, shape: &[i64], factors: &[i64], axis: usize) -> Status {
    let of = |values: &[i64]| values.get(axis).copied().unwrap_or(0);
    with_kind(
        format!(
            "Sharding {what} implies that array axis {axis} is partitioned {} times, but the \
             dimension size is {} (full shape: {}, per-dimension tiling factors: {factors:?} should \
             evenly divide the shape)",
            of(factors),
            of(shape),
            tuple(shape),
        ),
        "indivisible",
    )
}

/// Values as a tuple of Python: `(1,)`, `(1, 2)`.
pub(crate) fn tuple<T: std::fmt::Display>(values: &[T]) -> String {
    let text: Vec<String> = values.iter().map(ToString::to_string).collect();
    match text.as_slice() {
        [one] => format!("({one},)"),
        several => format!("({})", several.join(", ")),
    }
}

/// A call with another number of arguments than the program takes.
pub(crate) fn argument_count(expected: usize, found: usize) -> Status {
    with_kind(
        format!("Computation compiled for {expected} inputs but called with {found}"),
        "argument mismatch",
    )
}

/// Arguments whose types are not those of the program, as `(position, expected, found)`.
pub(crate) fn argument_types(mismatches: &[(usize, Aval, Aval)]) -> Status {
    const SHOWN: usize = 5;
    let which = if mismatches.len() > SHOWN {
        format!("The first {SHOWN} of {}", mismatches.len())
    } else {
        "The".into()
    };
    let lines: Vec<String> = mismatches
        .iter()
        .take(SHOWN)
        .map(|(position, expected, found)| {
            format!("Argument {position} compiled with {expected} and called with {found}")
        })
        .collect();
    with_kind(
        format!(
            "Argument types differ from the types for which this computation was compiled. {which} \
             mismatches are:\n{}",
            lines.join("\n")
        ),
        "argument mismatch",
    )
}

/// An argument stays where it was put, and the program is elsewhere.
pub(crate) fn incompatible_devices(
    position: usize,
    aval: &Aval,
    found: &[i32],
    expected: &[i32],
    platform: &str,
) -> Status {
    with_kind(
        format!(
            "Received incompatible devices for jitted computation. Got argument {position} with \
             shape {aval} and with device ids {found:?} on platform {} and a program compiled for \
             device ids {expected:?}. Put the argument on these devices with device_put.",
            platform.to_uppercase()
        ),
        "incompatible devices",
    )
}

/// An argument is on the devices of the program, but spread differently.
pub(crate) fn incompatible_sharding(
    position: usize,
    aval: &Aval,
    found: &dyn std::fmt::Display,
    expected: &dyn std::fmt::Display,
) -> Status {
    with_kind(
        format!(
            "Compiled object called with input sharding(s) does not match the sharding(s) the \
             computation was compiled with. Here are the mismatches:\nArgument {position} with \
             shape {aval}:\n  Passed sharding: {found}\n  Required sharding: {expected}"
        ),
        "argument mismatch",
    )
}

/// A guard does not allow a transfer.
pub(crate) fn disallowed_transfer(direction: Direction, what: &str) -> Status {
    with_kind(
        format!("Disallowed {direction} transfer: {what}"),
        "transfer guard",
    )
}

/// An exported function is called on a platform that it is not for.
pub(crate) fn platform_mismatch(name: &str, platforms: &[String], own: &str) -> Status {
    let quoted: Vec<String> = platforms.iter().map(|one| format!("'{one}'")).collect();
    with_kind(
        format!(
            "Function '{name}' was exported for platforms '{}' but it is used on '('{own}',)'.",
            tuple(&quoted)
        ),
        "platform mismatch",
    )
}

/// An exported function is called with another number of devices.
pub(crate) fn device_count_mismatch(name: &str, expected: usize, found: usize) -> Status {
    with_kind(
        format!(
            "Function {name} was exported for {expected} devices and is called in a context with \
             {found} devices, which is not allowed."
        ),
        "device count mismatch",
    )
}

/// An exported function is called in a way that is not known.
pub(crate) fn calling_convention(
    name: &str,
    version: u16,
    known: std::ops::RangeInclusive<u16>,
) -> Status {
    with_kind(
        format!(
            "Function {name} was exported with calling convention version {version}, but only the \
             versions {} to {} are known. Export it again with a JAX that writes one of these.",
            known.start(),
            known.end()
        ),
        "calling convention",
    )
}

/// An exported function has symbolic dimensions.
pub(crate) fn needs_shape_refinement(name: &str, aval: &dyn std::fmt::Display) -> Status {
    with_kind(
        format!(
            "Function {name} was exported with symbolic dimensions ({aval}), which this version \
             cannot give sizes to. Export it once for each shape that is needed."
        ),
        "needs shape refinement",
    )
    .with_code(ifrt::Code::Unimplemented)
}

/// The same error, or the words for a deleted array if that is what made the runtime refuse.
pub(crate) fn explain<T>(result: Result<T>, dead: impl FnOnce() -> Option<Status>) -> Result<T> {
    result.map_err(|status| dead().unwrap_or(status))
}

#[cfg(test)]
mod tests;
