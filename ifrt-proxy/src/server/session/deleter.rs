//! The thread that gives memory back.
//!
//! Deleting an array, or dropping the last reference to a large one, may take milliseconds, fail,
//! panic or never return, as the runtime pleases. None of that may delay the next request, so the
//! ordered worker only hands things over to this thread.
//!
//! Waking a sleeping thread costs the one who wakes it as much as several requests. After its last
//! item the thread therefore looks for new ones a few times before it sleeps for good, and is woken
//! only from that sleep: a client that deletes all the time wakes nobody.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

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

/// How long to wait before looking for new items.
const PAUSE: Duration = Duration::from_millis(1);

/// How many times to look before sleeping for good.
const LOOKS: u32 = 10;

#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<Doomed>,
    /// The thread sleeps until it is woken.
    asleep: bool,
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
    pub(crate) fn start(session: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        thread::Builder::new()
            .name(format!("delete-{session}"))
            .spawn(move || run(&of_thread))?;
        Ok(Self(shared))
    }

    /// Hands things over; never waits for what becomes of them.
    pub(crate) fn push(&self, items: impl IntoIterator<Item = Doomed>) {
        let mut queue = self.0.lock();
        queue.items.extend(items);
        let wake = queue.asleep && !queue.items.is_empty();
        if wake {
            queue.asleep = false;
        }
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
    while let Some(item) = next(shared) {
        dispose(item);
    }
}

/// Waits for an item; `None` at the end.
fn next(shared: &Shared) -> Option<Doomed> {
    for _ in 0..LOOKS {
        let mut queue = shared.lock();
        let item = queue.items.pop_front();
        if item.is_some() || queue.ended {
            return item;
        }
        drop(queue);
        thread::sleep(PAUSE);
    }
    let mut queue = shared.lock();
    loop {
        let item = queue.items.pop_front();
        if item.is_some() || queue.ended {
            queue.asleep = false;
            return item;
        }
        queue.asleep = true;
        queue = shared
            .filled
            .wait(queue)
            .unwrap_or_else(PoisonError::into_inner);
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
