//! [`Registry`]: the arrays of a client that somebody still holds.
//!
//! It is written by every array that is made and dropped, and read next to never. So it is cut into
//! parts, each thread writes to one of them, and an entry is a place in a list.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use crate::sync::Lock;

/// The number of parts.
const PARTS: usize = 16;

/// Things that are held somewhere, found by whoever wants all of them.
#[derive(Debug)]
pub(crate) struct Registry<T> {
    parts: [Lock<Part<T>>; PARTS],
}

#[derive(Debug)]
struct Part<T> {
    entries: Vec<Option<Weak<T>>>,
    free: Vec<usize>,
}

/// The place of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    part: usize,
    entry: usize,
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            parts: std::array::from_fn(|_| {
                Lock::new(Part {
                    entries: Vec::new(),
                    free: Vec::new(),
                })
            }),
        }
    }
}

impl<T> Registry<T> {
    /// Notes something until [`Registry::remove`].
    pub(crate) fn add(&self, one: Weak<T>) -> Place {
        let part = own_part();
        let mut list = self.parts[part].lock();
        let entry = match list.free.pop() {
            Some(entry) => {
                list.entries[entry] = Some(one);
                entry
            }
            None => {
                list.entries.push(Some(one));
                list.entries.len() - 1
            }
        };
        Place { part, entry }
    }

    /// Forgets it. The reference is dropped by the caller of this, outside of the lock.
    pub(crate) fn remove(&self, place: Place) {
        let mut list = self.parts[place.part].lock();
        let removed = list.entries[place.entry].take();
        list.free.push(place.entry);
        drop(list);
        drop(removed);
    }

    /// Whatever is still held, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let mut all = Vec::new();
        for part in &self.parts {
            let list = part.lock();
            all.extend(list.entries.iter().flatten().filter_map(Weak::upgrade));
        }
        all
    }
}

/// The part that this thread writes to.
fn own_part() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed) % PARTS;
    }
    // While a thread ends it has no number any more.
    OWN.try_with(|own| *own).unwrap_or(0)
}

#[cfg(test)]
mod tests;
