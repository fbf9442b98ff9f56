//! Locks that ignore poison, and the primitives of the deletion cell, which a model check replaces
//! by those of loom.
//!
//! Locks of this crate are leaves: no call into a backend, no callback and no second lock happens
//! while one is held. A panic can therefore not leave the data behind a lock half changed, and a
//! poisoned lock is used like any other.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex that ignores poison.
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

/// What the deletion cell is made of.
#[cfg(not(loom))]
pub(crate) mod cell {
    pub(crate) use super::Lock;
    pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};
}

/// What the deletion cell is made of.
#[cfg(loom)]
pub(crate) mod cell {
    pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::sync::{Mutex, MutexGuard};
    use std::sync::PoisonError;

    /// A mutex that ignores poison.
    #[derive(Debug, Default)]
    pub(crate) struct Lock<T>(Mutex<T>);

    impl<T> Lock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
