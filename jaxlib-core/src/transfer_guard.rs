//! Guards against transfers that a program does not know of.
//!
//! A guard says what happens when data moves between the host and devices, or between devices:
//! nothing, a line in the log, or an error. It holds for a thread while a scope lasts ([`scope`]), or
//! for all threads ([`set_default`]).
//!
//! In this crate nearly every transfer is *explicit*: `device_put`, and reading an array, say what
//! they do. Only a call that moves an uncommitted argument to where its program runs is *implicit*.
//! The levels tell the two apart.
//!
//! # Mirrors
//! `jax.transfer_guard`, `jaxlib/guard_lib.cc`.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

use ifrt::Result;

use crate::messages;

/// From where to where data moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::exhaustive_enums,
    reason = "hosts and devices are all there is"
)]
pub enum Direction {
    /// From the host to a device.
    HostToDevice,
    /// From a device to another.
    DeviceToDevice,
    /// From a device to the host.
    DeviceToHost,
}

impl Direction {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::HostToDevice, Self::DeviceToDevice, Self::DeviceToHost];

    const fn position(self) -> usize {
        match self {
            Self::HostToDevice => 0,
            Self::DeviceToDevice => 1,
            Self::DeviceToHost => 2,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HostToDevice => "host-to-device",
            Self::DeviceToDevice => "device-to-device",
            Self::DeviceToHost => "device-to-host",
        })
    }
}

/// What happens at a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the five levels of JAX")]
pub enum Level {
    /// Nothing.
    #[default]
    Allow,
    /// A line in the log for an implicit one.
    Log,
    /// An error for an implicit one.
    Disallow,
    /// A line in the log for any.
    LogExplicit,
    /// An error for any.
    DisallowExplicit,
}

impl Level {
    const ALL: [Self; 5] = [
        Self::Allow,
        Self::Log,
        Self::Disallow,
        Self::LogExplicit,
        Self::DisallowExplicit,
    ];

    fn from_number(number: u8) -> Self {
        let level = Self::ALL.get(usize::from(number));
        level.copied().unwrap_or_default()
    }

    fn number(self) -> u8 {
        let position = Self::ALL.iter().position(|level| *level == self);
        position
            .and_then(|position| u8::try_from(position).ok())
            .unwrap_or(0)
    }
}

/// Whether the program says that it wants the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Explicit,
    Implicit,
}

/// The levels of all threads that have none of their own.
static DEFAULTS: [AtomicU8; 3] = [const { AtomicU8::new(0) }; 3];

thread_local! {
    static OWN: Cell<[Option<Level>; 3]> = const { Cell::new([None; 3]) };
}

/// Sets the level of threads that have none of their own.
pub fn set_default(direction: Direction, level: Level) {
    DEFAULTS[direction.position()].store(level.number(), Ordering::Relaxed);
}

/// The level that holds on this thread now.
pub fn level(direction: Direction) -> Level {
    let own = OWN.try_with(Cell::get).unwrap_or_default();
    let default = || Level::from_number(DEFAULTS[direction.position()].load(Ordering::Relaxed));
    own[direction.position()].unwrap_or_else(default)
}

/// Sets the level of this thread until the result is dropped. Scopes nest; end them in the order
/// opposite to the one in which they began.
///
/// # Examples
/// ```
/// use jaxlib_core::transfer_guard::{self, Direction, Level};
/// let guard = transfer_guard::scope(&Direction::ALL, Level::DisallowExplicit);
/// assert_eq!(transfer_guard::level(Direction::HostToDevice), Level::DisallowExplicit);
/// drop(guard);
/// assert_eq!(transfer_guard::level(Direction::HostToDevice), Level::Allow);
/// ```
///
/// # Mirrors
/// `with jax.transfer_guard(...)`.
pub fn scope(directions: &[Direction], level: Level) -> Scope {
    let before = OWN.get();
    let mut own = before;
    for direction in directions {
        own[direction.position()] = Some(level);
    }
    OWN.set(own);
    Scope {
        before,
        not_send: std::marker::PhantomData,
    }
}

/// A level that holds on this thread until this is dropped; see [`scope`].
#[derive(Debug)]
#[must_use = "the guard ends when this is dropped"]
pub struct Scope {
    before: [Option<Level>; 3],
    /// It belongs to its thread.
    not_send: std::marker::PhantomData<*const ()>,
}

impl Drop for Scope {
    fn drop(&mut self) {
        OWN.set(self.before);
    }
}

/// Asks the guard; `what` describes the data and where it goes.
pub(crate) fn check(
    direction: Direction,
    intent: Intent,
    what: impl FnOnce() -> String,
) -> Result<()> {
    match (level(direction), intent) {
        (Level::Allow, _) | (Level::Log | Level::Disallow, Intent::Explicit) => Ok(()),
        (Level::Log | Level::LogExplicit, _) => {
            tracing::warn!("{direction} transfer: {}", what());
            Ok(())
        }
        (Level::Disallow | Level::DisallowExplicit, _) => {
            Err(messages::disallowed_transfer(direction, &what()))
        }
    }
}
