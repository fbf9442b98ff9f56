//! [`Lifecycle`]: the rules of deletion, kept once.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::completion::Completion;

/// What a value owns while it lives, and what became of it.
///
/// A value goes from live to deleted or to donated and never back. Whoever takes it there gets the
/// resources; everybody else learns that they are gone. Nothing that is handed in runs under the
/// lock.
///
/// # Examples
/// ```
/// use ifrt::Completion;
/// use ifrt::value::Lifecycle;
///
/// let life = Lifecycle::new("buffers");
/// assert_eq!(life.get(), Some("buffers"));
/// let first = life.delete(|buffers| {
///     assert_eq!(buffers, "buffers");
///     Completion::done() // what the runtime answered
/// });
/// let second = life.delete(|_| unreachable!("the runtime hears of one deletion"));
/// assert_eq!(first.wait(), second.wait());
/// assert_eq!(life.get(), None);
/// ```
pub struct Lifecycle<T>(Mutex<State<T>>);

enum State<T> {
    Live(T),
    Deleted(Completion),
    Donated,
}

impl<T> Lifecycle<T> {
    /// A live value that owns these resources.
    pub const fn new(resources: T) -> Self {
        Self(Mutex::new(State::Live(resources)))
    }

    /// True until the value is deleted or donated.
    pub fn is_live(&self) -> bool {
        matches!(&*self.lock(), State::Live(_))
    }

    /// Deletes the value: the first caller's `enqueue` gets the resources and asks the runtime.
    ///
    /// Every caller gets the result of that one deletion, also those that come while `enqueue` is
    /// still running. For a donated value there is nothing to do, successfully. If `enqueue`
    /// panics, all callers get INTERNAL.
    ///
    /// # Blocking
    /// Never, if `enqueue` does not.
    pub fn delete(&self, enqueue: impl FnOnce(T) -> Completion) -> Completion {
        let (promise, completion) = Completion::pair();
        let resources = {
            let mut state = self.lock();
            match &*state {
                State::Deleted(earlier) => return earlier.clone(),
                State::Donated => return Completion::done(),
                State::Live(_) => {}
            }
            let deleted = State::Deleted(completion.clone());
            std::mem::replace(&mut *state, deleted)
        };
        if let State::Live(resources) = resources {
            enqueue(resources).on_ready(move |result| promise.set(result.clone()));
        }
        completion
    }

    /// Donates the value: the caller gets the resources. `None` if they are gone.
    pub fn donate(&self) -> Option<T> {
        let mut state = self.lock();
        if !matches!(&*state, State::Live(_)) {
            return None;
        }
        match std::mem::replace(&mut *state, State::Donated) {
            State::Live(resources) => Some(resources),
            State::Deleted(_) | State::Donated => None,
        }
    }

    /// No foreign code runs under this lock, so a poisoned one still holds a consistent state.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Lifecycle<T> {
    /// The resources while the value lives.
    pub fn get(&self) -> Option<T> {
        match &*self.lock() {
            State::Live(resources) => Some(resources.clone()),
            State::Deleted(_) | State::Donated => None,
        }
    }
}

impl<T> fmt::Debug for Lifecycle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.lock() {
            State::Live(_) => "live",
            State::Deleted(_) => "deleted",
            State::Donated => "donated",
        })
    }
}

#[cfg(test)]
mod tests;
