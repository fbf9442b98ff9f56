//! [`Cell`]: whether one buffer is alive, and who is using it at this instant.
//!
//! All of it is one word: the state in the low bits, the number of pins above them. A pin is held
//! only while an operation is being enqueued. It keeps a concurrent deletion from reaching the
//! runtime between the check and the call; once the operation is enqueued, the runtime itself
//! keeps the memory for as long as it is needed.
//!
//! ```text
//!          begin_donation           end_donation(true)
//!   Live ------------------> Donating ---------------> Donated
//!    |  <------------------    |                          ^
//!    |   end_donation(false)   | condemn                  | end_donation(true)
//!    | condemn                 v                          |
//!    |                    DonatingDeleted ----------------+
//!    v                         | end_donation(false)
//!  Deleted <-------------------+
//! ```
//!
//! Pins exist only in `Live`, and in `Deleted` and `Donated` until the operations that came first
//! are enqueued. Nothing here waits: what has to happen later is left with the cell and done by
//! whoever makes it quiet.

use std::fmt;
use std::sync::Arc;

use crate::sync::cell::{AtomicUsize, Lock, Ordering};

/// The state of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Live,
    /// A call that may consume it is being enqueued.
    Donating,
    /// The same, and somebody asked for deletion meanwhile.
    DonatingDeleted,
    Donated,
    Deleted,
}

/// Why an operation cannot have a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::exhaustive_enums,
    reason = "there is no third way to lose a buffer"
)]
pub enum DeadReason {
    /// It was deleted.
    Deleted,
    /// It was donated to a call, or a call that takes it is being enqueued by another thread.
    Donated,
}

/// Whether a buffer could be taken for donation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// It is in state `Donating` and belongs to the caller until `end_donation`.
    Begun,
    /// Another operation is being enqueued with it, so it cannot be given away now.
    Busy,
    Dead(DeadReason),
}

/// Told once a condemned cell has become quiet: no pins, no donation in progress.
pub(crate) trait Settled: Send + Sync {
    fn settled(&self);
}

const STATE_MASK: usize = 0b111;
const ONE_PIN: usize = STATE_MASK + 1;

const LIVE: usize = 0;
const DONATING: usize = 1;
const DONATING_DELETED: usize = 2;
const DONATED: usize = 3;
const DELETED: usize = 4;
/// Deleted, and the runtime is being told by the one who found it in this state first.
const TOLD: usize = 5;

/// One buffer's life.
#[derive(Default)]
pub(crate) struct Cell {
    word: AtomicUsize,
    /// Who wants to know when the cell is quiet. Only filled while it is not.
    waiting: Lock<Vec<Arc<dyn Settled>>>,
}

impl Cell {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicUsize::new(LIVE),
            waiting: Lock::new(Vec::new()),
        }
    }

    pub(crate) fn state(&self) -> State {
        decode(self.word.load(Ordering::Acquire))
    }

    /// Why no operation can have the buffer; `None` for a live one.
    pub(crate) fn dead(&self) -> Option<DeadReason> {
        dead(self.state())
    }

    /// True once it is certain that the buffer is lost; a donation in progress may still fail.
    pub(crate) fn is_condemned(&self) -> bool {
        !matches!(self.state(), State::Live | State::Donating)
    }

    /// Keeps deletions away from the runtime until [`Cell::unpin`].
    pub(crate) fn pin(&self) -> Result<(), DeadReason> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if let Some(reason) = dead(decode(word)) {
                return Err(reason);
            }
            match self.exchange(word, word + ONE_PIN) {
                Ok(()) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    pub(crate) fn unpin(&self) {
        let before = self.word.fetch_sub(ONE_PIN, Ordering::AcqRel);
        debug_assert!(before >= ONE_PIN, "unpin without pin");
        if before / ONE_PIN == 1 && decode(before) != State::Live {
            self.notify();
        }
    }

    /// Takes the buffer for a call that may consume it.
    pub(crate) fn begin_donation(&self) -> Begin {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if let Some(reason) = dead(decode(word)) {
                return Begin::Dead(reason);
            }
            if word != LIVE {
                return Begin::Busy;
            }
            match self.exchange(LIVE, DONATING) {
                Ok(()) => return Begin::Begun,
                Err(now) => word = now,
            }
        }
    }

    /// Ends what [`Cell::begin_donation`] began; `consumed` says whether the runtime took it.
    pub(crate) fn end_donation(&self, consumed: bool) {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let next = match (consumed, decode(word)) {
                (true, _) => DONATED,
                (false, State::DonatingDeleted) => DELETED,
                (false, _) => LIVE,
            };
            match self.exchange(word, next) {
                Ok(()) => break,
                Err(now) => word = now,
            }
        }
        if word == DONATING_DELETED {
            self.notify();
        }
    }

    /// Notes that the runtime has consumed or deleted the buffer on its own.
    pub(crate) fn lost(&self) {
        let mut word = self.word.load(Ordering::Acquire);
        while decode(word) == State::Live {
            match self.exchange(word, word | DONATED) {
                Ok(()) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Makes the buffer unusable from now on. True if the runtime may be told at once; false if an
    /// operation is being enqueued with it, so that [`Cell::condemn_later`] is needed.
    pub(crate) fn condemn(&self) -> bool {
        match self.exchange(LIVE, DELETED) {
            Ok(()) => true,
            Err(word) => is_quiet(word),
        }
    }

    /// Makes the buffer unusable from now on and has `waiter` told when the cell is quiet. False
    /// if it already is; `waiter` is then not told.
    pub(crate) fn condemn_later(&self, waiter: &Arc<dyn Settled>) -> bool {
        // The lock is held from before the change until the waiter stands in the list, and the
        // last unpin takes it as well: it cannot miss the waiter.
        let mut waiting = self.waiting.lock();
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let next = match decode(word) {
                State::Live => word | DELETED,
                State::Donating => DONATING_DELETED,
                State::DonatingDeleted | State::Donated | State::Deleted => word,
            };
            match self.exchange(word, next) {
                Ok(()) if is_quiet(next) => return false,
                Ok(()) => {
                    waiting.push(Arc::clone(waiter));
                    return true;
                }
                Err(now) => word = now,
            }
        }
    }

    /// True for exactly one caller after a deletion: the one who has to tell the runtime.
    pub(crate) fn claim(&self) -> bool {
        self.exchange(DELETED, TOLD).is_ok()
    }

    fn exchange(&self, from: usize, to: usize) -> Result<(), usize> {
        self.word
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
    }

    fn notify(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        for waiter in waiting {
            waiter.settled();
        }
    }
}

/// True if nothing is in progress with a condemned buffer.
const fn is_quiet(word: usize) -> bool {
    matches!(word, DONATED | DELETED | TOLD)
}

const fn decode(word: usize) -> State {
    match word & STATE_MASK {
        LIVE => State::Live,
        DONATING => State::Donating,
        DONATING_DELETED => State::DonatingDeleted,
        DONATED => State::Donated,
        _ => State::Deleted,
    }
}

const fn dead(state: State) -> Option<DeadReason> {
    match state {
        State::Live => None,
        State::Donating | State::Donated => Some(DeadReason::Donated),
        State::DonatingDeleted | State::Deleted => Some(DeadReason::Deleted),
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Ordering::Acquire);
        f.debug_struct("Cell")
            .field("state", &decode(word))
            .field("pins", &(word / ONE_PIN))
            .finish()
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;
