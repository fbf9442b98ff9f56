//! The thread that gives memory back.
//!
//! Deleting an array, or dropping the last reference to a large one, may take milliseconds, fail,
//! panic or never return, as the runtime pleases. None of that may delay the next request, so the
//! ordered worker only hands things over to this thread.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use bytes::Bytes;
use ifrt::{ArrayRef, LoadedExecutableRef};

/// Something that is to go.
#[derive(Debug)]
pub(crate) enum Doomed {
    /// An array to be deleted, whoever else holds it.
    Delete(ArrayRef),
    /// A reference to an array.
    Array(ArrayRef),
    /// A reference to an executable.
    Executable(LoadedExecutableRef),
    /// A host buffer.
    HostBuffer(Bytes),
}

#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<Doomed>,
    ended: bool,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queue of one session's deletion thread.
#[derive(Debug)]
pub(crate) struct Deleter(Arc<Shared>);

impl Deleter {
    /// Starts the thread.
    pub(crate) fn start(session_id: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        thread::Builder::new()
            .name(format!("delete-{session_id}"))
            .spawn(move || run(&of_thread))?;
        Ok(Self(shared))
    }

    /// Hands things over; never waits for what becomes of them.
    pub(crate) fn push(&self, items: impl IntoIterator<Item = Doomed>) {
        let mut queue = self.0.lock();
        let was_empty = queue.items.is_empty();
        queue.items.extend(items);
        let wake = was_empty && !queue.items.is_empty();
        drop(queue);
        if wake {
            self.0.filled.notify_one();
        }
    }

    /// Ends the thread after the item that it works on, and hands out what is left.
    pub(crate) fn end(&self) -> VecDeque<Doomed> {
        let mut queue = self.0.lock();
        queue.ended = true;
        let left = std::mem::take(&mut queue.items);
        drop(queue);
        self.0.filled.notify_one();
        left
    }
}

fn run(shared: &Shared) {
    loop {
        let mut queue = shared.lock();
        let item = loop {
            if let Some(item) = queue.items.pop_front() {
                break item;
            }
            if queue.ended {
                return;
            }
            queue = shared
                .filled
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        };
        drop(queue);
        dispose(item);
    }
}

/// Deletes or drops one thing, whatever the runtime does.
pub(crate) fn dispose(item: Doomed) {
    let result = catch_unwind(AssertUnwindSafe(|| match item {
        Doomed::Delete(array) => array.delete().on_ready(|result| {
            if let Err(error) = result {
                tracing::warn!("a runtime failed to delete an array: {error}");
            }
        }),
        Doomed::Array(array) => drop(array),
        Doomed::Executable(executable) => drop(executable),
        Doomed::HostBuffer(bytes) => drop(bytes),
    }));
    if let Err(panic) = result {
        tracing::error!(
            "a runtime panicked when an object was to go: {}",
            super::panic_text(&*panic)
        );
    }
}
