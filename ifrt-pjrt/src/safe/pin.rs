//! [`PinState`]: who uses a buffer, and whether it is to go.
//!
//! `PJRT_Buffer_Delete` waits for a call that is inside `Execute` with the buffer, which may take
//! as long as an execution. And some plugins crash when an argument of such a call vanishes between
//! the check and the use. So every use of a buffer holds a *pin*: a deletion only marks the buffer,
//! and whoever leaves last frees it.
//!
//! An execution that donates a buffer pins it *exclusively*, so that no other call finds it alive
//! and hands it to C after it was donated.
//!
//! The whole state is one atomic word, so that pinning costs two atomic operations. Only a donation
//! that finds the buffer in use takes a lock, to wait.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// The buffer is to go, or has been donated. Never reset.
const DEAD: u32 = 1 << 31;
/// A donating call is under way.
const EXCLUSIVE: u32 = 1 << 30;
/// Somebody waits for the number of pins or the exclusive call to go.
const WAITED_FOR: u32 = 1 << 29;
const COUNT: u32 = WAITED_FOR - 1;

/// Why a pin was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The buffer was deleted or donated.
    Dead,
    /// The buffer is in use in a way that excludes this one: wait and try again.
    Busy,
}

/// What the one who leaves has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the last one to leave a dead buffer frees it"]
pub(crate) enum Leave {
    /// Nothing.
    Nothing,
    /// Free the buffer. Said exactly once.
    Free,
}

/// The pins of a buffer and its end.
#[derive(Debug, Default)]
pub(crate) struct PinState(AtomicU32);

impl PinState {
    /// Pins the buffer for a use that may share it.
    pub(crate) fn pin(&self) -> Result<(), Refused> {
        self.try_update(|state| match state {
            _ if state & DEAD != 0 => Err(Refused::Dead),
            _ if state & EXCLUSIVE != 0 || state & COUNT == COUNT => Err(Refused::Busy),
            _ => Ok(state + 1),
        })
    }

    /// Pins the buffer for a question that a donating call does not mind.
    pub(crate) fn pin_to_look(&self) -> Result<(), Refused> {
        self.try_update(|state| match state {
            _ if state & DEAD != 0 => Err(Refused::Dead),
            _ if state & COUNT == COUNT => Err(Refused::Busy),
            _ => Ok(state + 1),
        })
    }

    /// Pins the buffer for a call that may donate it.
    pub(crate) fn pin_exclusively(&self) -> Result<(), Refused> {
        self.try_update(|state| match state {
            _ if state & DEAD != 0 => Err(Refused::Dead),
            _ if state & (EXCLUSIVE | COUNT) != 0 => Err(Refused::Busy),
            _ => Ok((state | EXCLUSIVE) + 1),
        })
    }

    /// Ends [`PinState::pin`] or [`PinState::pin_to_look`].
    pub(crate) fn unpin(&self) -> Leave {
        self.left(self.0.fetch_sub(1, Ordering::AcqRel) - 1)
    }

    /// Ends [`PinState::pin_exclusively`]. `donated` tells whether the call took the buffer.
    pub(crate) fn unpin_exclusively(&self, donated: bool) -> Leave {
        let mut next = 0;
        let update = |state: u32| {
            next = (state & !EXCLUSIVE) - 1;
            if donated {
                next |= DEAD;
            }
            Some(next)
        };
        // The closure always gives a value, so this cannot fail.
        let updated = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, update);
        debug_assert!(updated.is_ok());
        self.left(next)
    }

    /// Marks the buffer as deleted. Never waits.
    pub(crate) fn kill(&self) -> Leave {
        let before = self.0.fetch_or(DEAD, Ordering::AcqRel);
        if before & (DEAD | COUNT) == 0 {
            Leave::Free
        } else {
            Leave::Nothing
        }
    }

    /// True once the buffer is to go or was donated through here.
    pub(crate) fn is_dead(&self) -> bool {
        self.0.load(Ordering::Acquire) & DEAD != 0
    }

    /// Blocks until a [`Refused::Busy`] may have changed. Must be called without holding any pin,
    /// so that two waiting calls cannot wait for each other.
    pub(crate) fn wait_while_busy(&self) {
        let mut guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        // The mark is set under the lock that the waker takes, so no wake-up falls in between.
        let marked = self.try_update(|state| {
            let busy = state & (EXCLUSIVE | COUNT) != 0 && state & DEAD == 0;
            if busy {
                Ok(state | WAITED_FOR)
            } else {
                Err(Refused::Dead)
            }
        });
        if marked.is_err() {
            return;
        }
        while self.0.load(Ordering::Acquire) & WAITED_FOR != 0 {
            guard = LEFT.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn left(&self, now: u32) -> Leave {
        if now & WAITED_FOR != 0 && now & (EXCLUSIVE | COUNT) == 0 {
            let guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.fetch_and(!WAITED_FOR, Ordering::AcqRel);
            drop(guard);
            LEFT.notify_all();
        }
        if now & DEAD != 0 && now & COUNT == 0 {
            Leave::Free
        } else {
            Leave::Nothing
        }
    }

    fn try_update(&self, f: impl Fn(u32) -> Result<u32, Refused>) -> Result<(), Refused> {
        let mut state = self.0.load(Ordering::Acquire);
        loop {
            let next = f(state)?;
            match self
                .0
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Ok(()),
                Err(now) => state = now,
            }
        }
    }
}

/// All waiting happens here: it is rare and short, so one lock for all buffers is enough.
static LOCK: Mutex<()> = Mutex::new(());
static LEFT: Condvar = Condvar::new();

#[cfg(test)]
mod tests;
