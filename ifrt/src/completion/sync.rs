//! The primitives that completions are made of, which loom replaces when it explores them.

#[cfg(loom)]
pub(super) use self::explored::Once;
#[cfg(not(loom))]
pub(super) use self::real::Once;
#[cfg(loom)]
pub(super) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
#[cfg(not(loom))]
pub(super) use std::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};

#[cfg(not(loom))]
mod real {
    use std::sync::OnceLock;

    /// A value that is set once and then read without a lock.
    pub(in crate::completion) struct Once<T>(OnceLock<T>);

    impl<T> Once<T> {
        pub(in crate::completion) const fn new() -> Self {
            Self(OnceLock::new())
        }

        /// Sets the value. One that is there stays.
        pub(in crate::completion) fn set(&self, value: T) {
            drop(self.0.set(value));
        }

        pub(in crate::completion) fn is_set(&self) -> bool {
            self.0.get().is_some()
        }

        /// What `read` makes of the value, if it is there.
        pub(in crate::completion) fn read<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
            self.0.get().map(read)
        }
    }
}

#[cfg(loom)]
mod explored {
    use loom::sync::Mutex;

    /// Loom has no such cell. This one is as strong: who sees the value also sees what was done
    /// before it was set.
    pub(in crate::completion) struct Once<T>(Mutex<Option<std::sync::Arc<T>>>);

    impl<T> Once<T> {
        pub(in crate::completion) fn new() -> Self {
            Self(Mutex::new(None))
        }

        pub(in crate::completion) fn set(&self, value: T) {
            self.lock()
                .get_or_insert_with(|| std::sync::Arc::new(value));
        }

        pub(in crate::completion) fn is_set(&self) -> bool {
            self.lock().is_some()
        }

        pub(in crate::completion) fn read<R>(&self, read: impl FnOnce(&T) -> R) -> Option<R> {
            // The lock is released before foreign code runs, as there is none in reality.
            let value = self.lock().clone();
            value.map(|value| read(&value))
        }

        fn lock(&self) -> loom::sync::MutexGuard<'_, Option<std::sync::Arc<T>>> {
            self.0
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }
}
