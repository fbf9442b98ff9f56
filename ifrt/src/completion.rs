//! [`Completion`]: the result of work that is already under way.
//!
//! A Rust future does nothing until it is polled and is cancelled by dropping it. The futures of
//! IFRT are the opposite: a method that returns one has enqueued its work, nobody has to poll it,
//! and dropping it cancels nothing. JAX relies on that (`Array.delete()` throws the future away),
//! so this crate has a type of its own. It also implements [`Future`], so that it can be awaited
//! in any executor; it needs none.
//!
//! What is not here: executors, threads, timers. Callbacks and wakers run on the thread that
//! fulfils the promise, after the internal lock was released, so a callback may use the completion
//! again, delete arrays or register further callbacks.
//!
//! # Model check
//! Loom explores every interleaving of the threads that share a completion:
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p ifrt --release --lib loom
//! ```

mod join;
mod state;
mod sync;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

pub use join::join_all;
use state::Shared;
use sync::Arc;

use crate::status::{Result, Status};

/// The result of work that is already under way; see the module for how it differs from a future.
///
/// All clones see the same result. Dropping a completion never cancels the work.
///
/// # Mirrors
/// `xla/tsl/concurrency/future.h`, `tsl::Future`.
#[derive(Clone)]
#[must_use = "await it, wait() on it, or call detach() if the result does not matter"]
pub struct Completion<T = ()>(Repr<T>);

#[derive(Clone)]
enum Repr<T> {
    /// Known from the start: no allocation, no lock.
    Ready(Result<T>),
    Shared(Arc<Shared<T>>),
}

impl<T> Completion<T> {
    /// A completion that is ready from the start.
    pub const fn ready(result: Result<T>) -> Self {
        Self(Repr::Ready(result))
    }

    /// A promise and the completion that it fulfils.
    pub fn pair() -> (Promise<T>, Self) {
        let shared = Arc::new(Shared::new());
        (
            Promise(Some(Arc::clone(&shared))),
            Self(Repr::Shared(shared)),
        )
    }

    /// True once the result is there; never blocks.
    pub fn is_ready(&self) -> bool {
        match &self.0 {
            Repr::Ready(_) => true,
            Repr::Shared(shared) => shared.is_ready(),
        }
    }

    /// Says that the result does not matter. The work goes on.
    pub fn detach(self) {}

    /// Calls `f` with the result exactly once: inline if it is there, else on the thread that
    /// fulfils the promise. `f` should not block, since that thread belongs to the runtime.
    pub fn on_ready(&self, f: impl FnOnce(&Result<T>) + Send + 'static) {
        match &self.0 {
            Repr::Ready(result) => f(result),
            Repr::Shared(shared) => shared.on_ready(Box::new(f)),
        }
    }
}

impl Completion {
    /// A completion that is ready and successful.
    pub const fn done() -> Self {
        Self::ready(Ok(()))
    }
}

impl<T: Clone> Completion<T> {
    /// The result if it is there; never blocks.
    pub fn peek(&self) -> Option<Result<T>> {
        match &self.0 {
            Repr::Ready(result) => Some(result.clone()),
            Repr::Shared(shared) => shared.peek(),
        }
    }

    /// Blocks the thread until the result is there.
    ///
    /// For threads of the user; inside an async executor await the completion instead.
    ///
    /// # Errors
    /// The error of the work.
    pub fn wait(&self) -> Result<T> {
        match &self.0 {
            Repr::Ready(result) => result.clone(),
            Repr::Shared(shared) => shared.wait(),
        }
    }

    /// Blocks the thread until the result is there or `timeout` has passed; `None` means the latter.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Result<T>> {
        match &self.0 {
            Repr::Ready(result) => Some(result.clone()),
            Repr::Shared(shared) => shared.wait_timeout(timeout),
        }
    }
}

impl<T: Send + Sync + 'static> Completion<T> {
    /// A completion of `f` applied to the result, errors included. `f` runs like a callback of
    /// [`Completion::on_ready`], whether or not the new completion is kept.
    pub fn then<U: Send + Sync + 'static>(
        &self,
        f: impl FnOnce(&Result<T>) -> Result<U> + Send + 'static,
    ) -> Completion<U> {
        if let Repr::Ready(result) = &self.0 {
            return Completion::ready(f(result));
        }
        let (promise, completion) = Completion::pair();
        self.on_ready(move |result| promise.set(f(result)));
        completion
    }
}

impl<T> From<Result<T>> for Completion<T> {
    fn from(result: Result<T>) -> Self {
        Self::ready(result)
    }
}

impl<T: Clone> Future for Completion<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &self.0 {
            Repr::Ready(result) => Poll::Ready(result.clone()),
            Repr::Shared(shared) => shared.poll(cx.waker()),
        }
    }
}

// The type has no self references: nothing in it is pinned.
impl<T> Unpin for Completion<T> {}

impl<T> fmt::Debug for Completion<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_ready() {
            "Completion(ready)"
        } else {
            "Completion(pending)"
        })
    }
}

/// The side that fulfils a [`Completion`].
///
/// Dropped unset it fulfils the completion with INTERNAL, so that no receiver hangs.
#[derive(Debug)]
#[must_use = "a promise that is dropped fails its completion"]
pub struct Promise<T = ()>(Option<Arc<Shared<T>>>);

impl<T> Promise<T> {
    /// Fulfils the completion and runs its callbacks on this thread.
    pub fn set(mut self, result: Result<T>) {
        if let Some(shared) = self.0.take() {
            shared.set(result);
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.set(Err(Status::internal("Promise destroyed without being set")));
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
