//! What the fake has instead of device memory.
//!
//! A buffer is one shard in one memory. Arrays share buffers: assembling, disassembling, remapping
//! and copying in place make new arrays of old buffers, and then deleting one array deletes the
//! shards of the other, as in the reference runtime. So it is the buffer that lives and dies.
//!
//! All lives stand under one lock, because donation must take all its buffers or none while other
//! threads delete them. No foreign code runs under that lock: data is dropped, promises are kept
//! and faults strike after it was released.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::fault::{FaultPlan, Op};
use super::task::{Contents, done};
use crate::completion::{Completion, Promise, join_all};
use crate::device::DeviceRef;
use crate::dtype::DType;
use crate::memory::MemoryRef;
use crate::shape::Shape;
use crate::status::{Result, Status};

/// What tells one buffer of a [`super::FakeClient`] from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(u64);

/// What tells one array from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ArrayId(u64);

/// Where a shard lives and what it is.
#[derive(Clone, Debug)]
pub(super) struct ShardSpec {
    pub(super) device: DeviceRef,
    pub(super) memory: MemoryRef,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    pub(super) bytes: u64,
}

/// One shard in one memory. Dropping the last reference frees it, which is not deletion.
pub(super) struct Buffer {
    pub(super) id: BufferId,
    pub(super) spec: ShardSpec,
    /// Ready when the data is.
    pub(super) ready: Completion,
    heap: Arc<Heap>,
}

/// The lives of all arrays and buffers of a client.
pub(super) struct Heap {
    capacity: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    arrays: HashMap<ArrayId, Life>,
    buffers: HashMap<BufferId, Slot>,
    live_bytes: u64,
    live_buffers: usize,
    deletes: HashMap<BufferId, u64>,
    total_deletes: u64,
    most_deletes: u64,
}

#[derive(Clone)]
enum Life {
    Live,
    Deleted(Completion),
    Donated,
}

struct Slot {
    life: Life,
    /// There while the buffer lives.
    contents: Option<Contents>,
    bytes: u64,
}

/// What the runtime was asked to delete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeleteCounts {
    /// Deletions of all buffers together.
    pub total: u64,
    /// The most deletions that a single buffer has seen; more than one is a mistake.
    pub most_of_one_buffer: u64,
}

/// An array in the eyes of the heap.
#[derive(Clone, Copy)]
pub(super) struct Holder<'a> {
    pub(super) id: ArrayId,
    pub(super) buffers: &'a [Arc<Buffer>],
}

/// Why arrays cannot be used; the number says which of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unusable {
    Dead(usize),
    DonatedTwice(usize),
}

impl Heap {
    pub(super) fn new(capacity: u64) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            state: Mutex::default(),
        })
    }

    /// Checks that buffers of so many bytes fit.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if they do not.
    pub(super) fn check_room(&self, bytes: u64) -> Result<()> {
        let live = self.lock().live_bytes;
        if live.checked_add(bytes).is_some_and(|n| n <= self.capacity) {
            return Ok(());
        }
        Err(Status::resource_exhausted(format!(
            "Out of memory allocating {bytes} bytes: {live} of {} bytes are in use",
            self.capacity
        )))
    }

    /// A new live buffer with this data.
    pub(super) fn allocate(self: &Arc<Self>, spec: ShardSpec, contents: Contents) -> Arc<Buffer> {
        let ready = done(&contents);
        let mut state = self.lock();
        let id = BufferId(state.next_id());
        state.live_bytes = state.live_bytes.saturating_add(spec.bytes);
        state.live_buffers += 1;
        let slot = Slot {
            life: Life::Live,
            contents: Some(contents),
            bytes: spec.bytes,
        };
        state.buffers.insert(id, slot);
        drop(state);
        Arc::new(Buffer {
            id,
            spec,
            ready,
            heap: Arc::clone(self),
        })
    }

    /// A new live array.
    pub(super) fn register_array(&self) -> ArrayId {
        let mut state = self.lock();
        let id = ArrayId(state.next_id());
        state.arrays.insert(id, Life::Live);
        id
    }

    pub(super) fn forget_array(&self, id: ArrayId) {
        let life = self.lock().arrays.remove(&id);
        drop(life);
    }

    /// True if the array and all its buffers live.
    pub(super) fn is_live(&self, holder: Holder<'_>) -> bool {
        self.lock().is_live(holder)
    }

    /// The data of live arrays, buffer by buffer. Those with `true` are donated: they are dead when
    /// this returns. All arrays are usable or none changes.
    pub(super) fn take(
        &self,
        arrays: &[(Holder<'_>, bool)],
    ) -> Result<Vec<Vec<Contents>>, Unusable> {
        let mut state = self.lock();
        for (number, (holder, _)) in arrays.iter().enumerate() {
            if !state.is_live(*holder) {
                return Err(Unusable::Dead(number));
            }
        }
        check_donated_once(arrays)?;
        let taken = arrays.iter().map(|(holder, donate)| {
            if *donate {
                state.arrays.insert(holder.id, Life::Donated);
            }
            let contents = holder.buffers.iter().filter_map(|buffer| {
                let slot = state.buffers.get_mut(&buffer.id)?;
                if !*donate {
                    return slot.contents.clone();
                }
                slot.life = Life::Donated;
                let (bytes, contents) = (slot.bytes, slot.contents.take());
                state.freed(bytes);
                contents
            });
            contents.collect()
        });
        Ok(taken.collect())
    }

    /// Deletes an array and its buffers, each of them once.
    pub(super) fn delete(&self, holder: Holder<'_>, faults: &FaultPlan) -> Completion {
        let begun = self.lock().begin_delete(holder);
        let Deletion {
            promise,
            completion,
            buffers,
            mut pending,
            data,
        } = match begun {
            Ok(deletion) => deletion,
            Err(earlier) => return earlier,
        };
        drop(data);
        for (id, promise) in buffers {
            self.count_delete(id);
            let strike = faults.strike_completion(Op::Delete);
            let permit = strike.permit();
            permit.on_ready(move |result| promise.set(result.clone()));
            pending.push(permit);
        }
        join_all(pending).on_ready(move |result| promise.set(result.clone()));
        completion
    }

    fn count_delete(&self, id: BufferId) {
        let mut state = self.lock();
        let count = state.deletes.entry(id).or_default();
        *count += 1;
        let count = *count;
        state.total_deletes += 1;
        state.most_deletes = state.most_deletes.max(count);
    }

    pub(super) fn live_bytes(&self) -> u64 {
        self.lock().live_bytes
    }

    pub(super) fn live_buffers(&self) -> usize {
        self.lock().live_buffers
    }

    pub(super) fn delete_counts(&self) -> DeleteCounts {
        let state = self.lock();
        DeleteCounts {
            total: state.total_deletes,
            most_of_one_buffer: state.most_deletes,
        }
    }

    pub(super) fn deletes_of(&self, id: BufferId) -> u64 {
        self.lock().deletes.get(&id).copied().unwrap_or(0)
    }

    /// No foreign code runs under this lock, so a poisoned one still holds a consistent state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A deletion that has begun under the lock and goes on without it.
struct Deletion {
    promise: Promise,
    completion: Completion,
    /// Buffers that die by this deletion.
    buffers: Vec<(BufferId, Promise)>,
    /// Deletions of buffers that were begun by others.
    pending: Vec<Completion>,
    data: Vec<Contents>,
}

impl State {
    fn next_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn is_live(&self, holder: Holder<'_>) -> bool {
        let live = |life: &Life| matches!(life, Life::Live);
        self.arrays.get(&holder.id).is_some_and(live)
            && holder.buffers.iter().all(|buffer| {
                let slot = self.buffers.get(&buffer.id);
                slot.is_some_and(|slot| live(&slot.life))
            })
    }

    fn freed(&mut self, bytes: u64) {
        self.live_bytes = self.live_bytes.saturating_sub(bytes);
        self.live_buffers = self.live_buffers.saturating_sub(1);
    }

    /// Marks everything as deleted, or gives the deletion that was there before.
    fn begin_delete(&mut self, holder: Holder<'_>) -> Result<Deletion, Completion> {
        match self.arrays.get(&holder.id) {
            Some(Life::Live) => {}
            Some(Life::Deleted(earlier)) => return Err(earlier.clone()),
            Some(Life::Donated) | None => return Err(Completion::done()),
        }
        let (mut buffers, mut pending, mut data) = (Vec::new(), Vec::new(), Vec::new());
        for buffer in holder.buffers {
            let Some(slot) = self.buffers.get_mut(&buffer.id) else {
                continue;
            };
            match &slot.life {
                Life::Donated => {}
                Life::Deleted(earlier) => pending.push(earlier.clone()),
                Life::Live => {
                    let (promise, completion) = Completion::pair();
                    slot.life = Life::Deleted(completion);
                    data.extend(slot.contents.take());
                    let bytes = slot.bytes;
                    self.freed(bytes);
                    buffers.push((buffer.id, promise));
                }
            }
        }
        let (promise, completion) = Completion::pair();
        let life = Life::Deleted(completion.clone());
        self.arrays.insert(holder.id, life);
        Ok(Deletion {
            promise,
            completion,
            buffers,
            pending,
            data,
        })
    }
}

/// A donated array or buffer may appear once among the arrays of a call.
fn check_donated_once(arrays: &[(Holder<'_>, bool)]) -> Result<(), Unusable> {
    let mut seen: HashMap<u64, bool> = HashMap::new();
    for (number, (holder, donate)) in arrays.iter().enumerate() {
        // An array may hold one buffer several times, so each array counts once per buffer.
        let mut ids: Vec<u64> = holder.buffers.iter().map(|buffer| buffer.id.0).collect();
        ids.push(holder.id.0);
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            if let Some(donated) = seen.insert(id, *donate)
                && (donated || *donate)
            {
                return Err(Unusable::DonatedTwice(number));
            }
        }
    }
    Ok(())
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut state = self.heap.lock();
        state.deletes.remove(&self.id);
        let slot = state.buffers.remove(&self.id);
        if let Some(slot) = &slot
            && matches!(slot.life, Life::Live)
        {
            state.freed(slot.bytes);
        }
        drop(state);
        drop(slot);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("id", &self.id.0)
            .field("device", &self.spec.device.id().0)
            .field("memory", &self.spec.memory.id().0)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
