//! A mutex that does not care about panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex whose users leave the data consistent at every point where they could panic.
///
/// Handlers run under `catch_unwind`, so a panic in one of them must not turn every later request
/// into one.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
