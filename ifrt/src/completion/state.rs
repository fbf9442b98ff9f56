//! The state shared by a promise and its completions.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::status::Result;

type Callback<T> = Box<dyn FnOnce(&Result<T>) + Send>;

pub(super) struct Shared<T> {
    /// Set once. Readers take no lock when it is there.
    result: OnceLock<Result<T>>,
    waiting: Mutex<Waiting<T>>,
    ready: Condvar,
}

struct Waiting<T> {
    /// Set together with the result under the lock, so that nobody registers too late.
    done: bool,
    callbacks: Vec<Callback<T>>,
    wakers: Vec<Waker>,
}

impl<T> Shared<T> {
    pub(super) fn new() -> Self {
        Self {
            result: OnceLock::new(),
            waiting: Mutex::new(Waiting {
                done: false,
                callbacks: Vec::new(),
                wakers: Vec::new(),
            }),
            ready: Condvar::new(),
        }
    }

    /// No user code runs under this lock, so a poisoned one still holds a consistent state.
    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.result.get().is_some()
    }

    pub(super) fn set(&self, result: Result<T>) {
        let (callbacks, wakers) = {
            let mut waiting = self.lock();
            if waiting.done {
                return;
            }
            // A promise is consumed by setting it, so this is the first and only value.
            let result = self.result.get_or_init(|| result);
            debug_assert!(result.is_ok() || result.is_err());
            waiting.done = true;
            (
                std::mem::take(&mut waiting.callbacks),
                std::mem::take(&mut waiting.wakers),
            )
        };
        self.ready.notify_all();
        for waker in wakers {
            waker.wake();
        }
        if let Some(result) = self.result.get() {
            for callback in callbacks {
                callback(result);
            }
        }
    }

    pub(super) fn on_ready(&self, callback: Callback<T>) {
        if self.result.get().is_none() {
            let mut waiting = self.lock();
            if !waiting.done {
                waiting.callbacks.push(callback);
                return;
            }
        }
        if let Some(result) = self.result.get() {
            callback(result);
        }
    }
}

impl<T: Clone> Shared<T> {
    pub(super) fn peek(&self) -> Option<Result<T>> {
        self.result.get().cloned()
    }

    pub(super) fn wait(&self) -> Result<T> {
        loop {
            // The condition variable may wake early; a century is only a number that never passes.
            if let Some(result) = self.wait_timeout(Duration::from_secs(100 * 365 * 24 * 3600)) {
                return result;
            }
        }
    }

    pub(super) fn wait_timeout(&self, timeout: Duration) -> Option<Result<T>> {
        if let Some(result) = self.peek() {
            return Some(result);
        }
        let deadline = Instant::now().checked_add(timeout);
        let mut waiting = self.lock();
        while !waiting.done {
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => timeout,
            };
            if left.is_zero() {
                return None;
            }
            waiting = self
                .ready
                .wait_timeout(waiting, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        drop(waiting);
        self.peek()
    }

    pub(super) fn poll(&self, waker: &Waker) -> Poll<Result<T>> {
        if let Some(result) = self.peek() {
            return Poll::Ready(result);
        }
        let mut waiting = self.lock();
        if waiting.done {
            drop(waiting);
            return self.peek().map_or(Poll::Pending, Poll::Ready);
        }
        if !waiting.wakers.iter().any(|known| known.will_wake(waker)) {
            waiting.wakers.push(waker.clone());
        }
        Poll::Pending
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("ready", &self.is_ready())
            .finish_non_exhaustive()
    }
}
