//! The state shared by a promise and its completions.

use std::fmt;
use std::sync::PoisonError;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::sync::{Condvar, Mutex, MutexGuard, Once};
use crate::status::{Result, Status};

type Callback<T> = Box<dyn FnOnce(&Result<T>) + Send>;

pub(super) struct Shared<T> {
    /// Set once. Readers take no lock when it is there.
    result: Once<Result<T>>,
    waiting: Mutex<Waiting<T>>,
    ready: Condvar,
}

struct Waiting<T> {
    /// Set together with the result under the lock, so that nobody registers too late.
    done: bool,
    callbacks: Vec<Callback<T>>,
    wakers: Vec<Waker>,
    /// Threads that sleep until it is done. To wake nobody would cost a system call.
    sleepers: usize,
}

impl<T> Shared<T> {
    pub(super) fn new() -> Self {
        Self {
            result: Once::new(),
            waiting: Mutex::new(Waiting {
                done: false,
                callbacks: Vec::new(),
                wakers: Vec::new(),
                sleepers: 0,
            }),
            ready: Condvar::new(),
        }
    }

    /// No user code runs under this lock, so a poisoned one still holds a consistent state.
    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.result.is_set()
    }

    /// Called once, because a promise is consumed by setting it.
    pub(super) fn set(&self, result: Result<T>) {
        let (callbacks, wakers, sleepers) = {
            let mut waiting = self.lock();
            self.result.set(result);
            waiting.done = true;
            (
                std::mem::take(&mut waiting.callbacks),
                std::mem::take(&mut waiting.wakers),
                waiting.sleepers,
            )
        };
        if sleepers > 0 {
            self.ready.notify_all();
        }
        for waker in wakers {
            waker.wake();
        }
        if !callbacks.is_empty() {
            self.result.read(|result| {
                for callback in callbacks {
                    callback(result);
                }
            });
        }
    }

    pub(super) fn on_ready(&self, callback: Callback<T>) {
        if !self.result.is_set() {
            let mut waiting = self.lock();
            if !waiting.done {
                waiting.callbacks.push(callback);
                return;
            }
        }
        self.result.read(callback);
    }
}

impl<T: Clone> Shared<T> {
    pub(super) fn peek(&self) -> Option<Result<T>> {
        self.result.read(Clone::clone)
    }

    /// The result once it is known to be there.
    fn done(&self) -> Result<T> {
        self.peek()
            .unwrap_or_else(|| Err(Status::internal("a completion is done without a result")))
    }

    pub(super) fn wait(&self) -> Result<T> {
        if let Some(result) = self.peek() {
            return result;
        }
        let mut waiting = self.lock();
        waiting.sleepers += 1;
        while !waiting.done {
            waiting = self
                .ready
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(waiting);
        self.done()
    }

    #[cfg(not(loom))]
    pub(super) fn wait_timeout(&self, timeout: Duration) -> Option<Result<T>> {
        if let Some(result) = self.peek() {
            return Some(result);
        }
        let mut waiting = self.lock();
        waiting.sleepers += 1;
        let (mut waiting, outcome) = self
            .ready
            .wait_timeout_while(waiting, timeout, |waiting| !waiting.done)
            .unwrap_or_else(PoisonError::into_inner);
        waiting.sleepers -= 1;
        drop(waiting);
        if outcome.timed_out() {
            return self.peek();
        }
        Some(self.done())
    }

    /// Loom knows no time: it explores as if the time never passed.
    #[cfg(loom)]
    pub(super) fn wait_timeout(&self, _timeout: Duration) -> Option<Result<T>> {
        Some(self.wait())
    }

    pub(super) fn poll(&self, waker: &Waker) -> Poll<Result<T>> {
        if let Some(result) = self.peek() {
            return Poll::Ready(result);
        }
        let mut waiting = self.lock();
        if waiting.done {
            drop(waiting);
            return Poll::Ready(self.done());
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
