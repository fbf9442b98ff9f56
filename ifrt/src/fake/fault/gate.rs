//! [`Gate`]: what holds back slow results and blocked calls.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::completion::Promise;
use crate::status::{Result, Status};

/// Holds back results and calls until it is opened. A cheap clone of one gate.
#[derive(Clone, Default)]
pub struct Gate(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    open: bool,
    results: VecDeque<Promise>,
    blocked: usize,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the gate for good. Results that waited come now, on this thread, in the order in which
    /// they were held back; blocked calls go on.
    pub fn open(&self) {
        let results = {
            let mut state = self.lock();
            state.open = true;
            std::mem::take(&mut state.results)
        };
        self.0.changed.notify_all();
        for result in results {
            result.set(Ok(()));
        }
    }

    /// Opens the gate when the guard is dropped, so that a test which fails while a thread is
    /// blocked ends and does not hang.
    pub fn open_on_drop(&self) -> GateGuard {
        GateGuard(self.clone())
    }

    /// Lets the oldest result through; false if none waits.
    pub fn step(&self) -> bool {
        let result = self.lock().results.pop_front();
        result.map(|result| result.set(Ok(()))).is_some()
    }

    /// True once the gate was opened.
    pub fn is_open(&self) -> bool {
        self.lock().open
    }

    /// The number of results and calls that are held back now.
    pub fn held(&self) -> usize {
        let state = self.lock();
        state.results.len() + state.blocked
    }

    /// Blocks until at least `count` results and calls are held back.
    ///
    /// # Errors
    /// DEADLINE_EXCEEDED after `timeout`.
    pub fn wait_until_held(&self, count: usize, timeout: Duration) -> Result<()> {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        while state.results.len() + state.blocked < count {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Status::deadline_exceeded(format!(
                    "{} of {count} calls came to the gate in {timeout:?}",
                    state.results.len() + state.blocked
                )));
            }
            state = self.wait(state, left);
        }
        Ok(())
    }

    /// Fulfils the promise when the gate is open.
    pub(super) fn hold(&self, promise: Promise) {
        let mut state = self.lock();
        if state.open {
            drop(state);
            promise.set(Ok(()));
            return;
        }
        state.results.push_back(promise);
        drop(state);
        self.0.changed.notify_all();
    }

    /// Blocks the thread until the gate is open.
    pub(super) fn block(&self) {
        let mut state = self.lock();
        state.blocked += 1;
        self.0.changed.notify_all();
        while !state.open {
            state = self.wait(state, Duration::from_secs(3600));
        }
        state.blocked -= 1;
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, timeout: Duration) -> MutexGuard<'a, State> {
        self.0
            .changed
            .wait_timeout(state, timeout)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    /// No user code runs under this lock, so a poisoned one still holds a consistent state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a [`Gate`] when it is dropped.
#[derive(Debug)]
#[must_use = "the gate opens when the guard is dropped"]
pub struct GateGuard(Gate);

impl Drop for GateGuard {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("open", &self.is_open())
            .field("held", &self.held())
            .finish()
    }
}
