//! [`BufferSet`]: the runtime's handle of an array, and the cells of the buffers behind it.
//!
//! Handles and buffers are not the same. An array over eight devices has one handle and eight
//! buffers; a shard of it has another handle for one of these buffers. Deletion and donation are
//! facts about buffers, so they stand in cells, and whoever shares a buffer shares its cell. An
//! array is dead as soon as one of its cells is.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use ifrt::{ArrayRef, Completion};

use super::cell::{Cell, DeadReason, Settled};
use super::sink::Job;
use crate::array::HostParts;
use crate::client::Client;
use crate::sync::Lock;

/// The cells of an array, in the order of its addressable shards.
#[derive(Clone, Debug)]
pub(crate) enum Cells {
    /// The buffers that one operation made together.
    Whole(Arc<[Cell]>),
    /// One of them.
    One(Arc<[Cell]>, usize),
    /// Buffers from anywhere, put together to one array.
    Assembled(Arc<[Self]>),
}

impl Cells {
    pub(crate) fn new(count: usize) -> Self {
        Self::Whole((0..count).map(|_| Cell::new()).collect())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(cells) => cells.len(),
            Self::One(..) => 1,
            Self::Assembled(parts) => parts.len(),
        }
    }

    /// The cell of one shard; `None` outside the range.
    pub(crate) fn get(&self, shard: usize) -> Option<&Cell> {
        match self {
            Self::Whole(cells) => cells.get(shard),
            Self::One(cells, position) if shard == 0 => cells.get(*position),
            Self::One(..) => None,
            Self::Assembled(parts) => parts.get(shard).and_then(|part| part.get(0)),
        }
    }

    /// The cells of one shard, shared with this array; `None` outside the range.
    pub(crate) fn shard(&self, shard: usize) -> Option<Self> {
        match self {
            Self::Whole(cells) if shard < cells.len() => Some(Self::One(Arc::clone(cells), shard)),
            Self::One(..) if shard == 0 => Some(self.clone()),
            Self::Assembled(parts) => parts.get(shard).cloned(),
            Self::Whole(_) | Self::One(..) => None,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cell> {
        (0..self.len()).filter_map(|shard| self.get(shard))
    }

    /// True if the runtime does not yet know that one of the buffers was deleted. Whoever gets this
    /// answer has to tell it.
    fn claim_any(&self) -> bool {
        // All of them are claimed, not only the first.
        self.iter().filter(|cell| cell.claim()).count() > 0
    }
}

/// The runtime's handle of an array, and the cells of the buffers behind it.
pub(crate) struct BufferSet {
    client: Client,
    id: u64,
    bytes: u64,
    cells: Cells,
    /// The handle; taken out by the first deletion.
    value: Lock<Option<ArrayRef>>,
    /// A copy on the host that somebody asked for in advance.
    host: Lock<Option<HostParts>>,
}

impl BufferSet {
    /// `bytes` is about what the array takes on all its devices together.
    pub(crate) fn new(client: Client, value: ArrayRef, cells: Cells, bytes: u64) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        client.sink().start();
        Self {
            client,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            bytes,
            cells,
            value: Lock::new(Some(value)),
            host: Lock::new(None),
        }
    }

    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// A number that tells this set from every other in the process.
    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    pub(crate) const fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Why no operation can have the array, as far as is known without asking the runtime.
    pub(crate) fn dead(&self) -> Option<DeadReason> {
        self.cells.iter().find_map(Cell::dead)
    }

    /// True if the array was deleted or donated, or the runtime says so.
    pub(crate) fn is_deleted(&self) -> bool {
        if self.cells.iter().any(Cell::is_condemned) {
            self.forget_host_copy();
            return true;
        }
        let handle = self.value.lock().clone();
        let Some(handle) = handle else {
            // Taken by a deletion, which condemns first: seen half way.
            return true;
        };
        if !self.runtime_says_deleted(&handle) {
            return false;
        }
        self.cells.iter().for_each(Cell::lost);
        self.forget_host_copy();
        true
    }

    /// The copy on the host, if there is one.
    pub(crate) fn host_copy(&self) -> Option<HostParts> {
        self.host.lock().clone()
    }

    /// Keeps a copy on the host for as long as the buffers live.
    pub(crate) fn keep_host_copy(&self, parts: HostParts) {
        *self.host.lock() = Some(parts);
        // A deletion that came in between has found nothing to forget.
        if self.cells.iter().any(Cell::is_condemned) {
            self.forget_host_copy();
        }
    }

    /// Freeing a lot of memory takes long, so that is done by the thread of the sink.
    fn forget_host_copy(&self) {
        let forgotten = self.host.lock().take();
        if let Some(parts) = forgotten {
            self.client.sink().push(Job::Forget(parts));
        }
    }

    /// Why an operation that the runtime has just refused may have been refused: the runtime may
    /// have lost the array in a way that we do not see.
    pub(crate) fn dead_after_refusal(&self) -> Option<DeadReason> {
        if self.is_deleted() {
            Some(self.dead().unwrap_or(DeadReason::Donated))
        } else {
            None
        }
    }

    /// What the runtime says. A runtime that panics over the question has not said "deleted".
    pub(crate) fn runtime_says_deleted(&self, handle: &ArrayRef) -> bool {
        catch_unwind(AssertUnwindSafe(|| handle.is_deleted())).unwrap_or_else(|_| {
            tracing::error!(array = self.id, "the runtime panicked in is_deleted");
            false
        })
    }

    /// The handle, with deletions kept away from the runtime for as long as the result lives.
    pub(crate) fn pin(&self) -> Result<Pinned<'_>, DeadReason> {
        let mut pinned = Pinned {
            set: self,
            pins: 0,
            handle: None,
        };
        for cell in self.cells.iter() {
            cell.pin()?;
            pinned.pins += 1;
        }
        pinned.handle.clone_from(&self.value.lock());
        if pinned.handle.is_none() {
            return Err(self.dead().unwrap_or(DeadReason::Deleted));
        }
        Ok(pinned)
    }

    /// The handle if it is still there, without any protection.
    pub(crate) fn handle(&self) -> Option<ArrayRef> {
        self.value.lock().clone()
    }

    /// Deletes the buffers: total, silent, without waiting.
    pub(crate) fn delete(&self) {
        if let Some(handle) = self.condemn() {
            self.client.sink().push(Job::Delete(handle, self.id));
        }
    }

    /// Deletes the buffers of several arrays, with one call per client where nothing is in the way.
    pub(crate) fn delete_all<'a>(sets: impl Iterator<Item = &'a Self>) {
        let mut batches: Vec<(Client, Vec<(ArrayRef, u64)>)> = Vec::new();
        for set in sets {
            let Some(handle) = set.condemn() else {
                continue;
            };
            let known = batches
                .iter_mut()
                .find(|(client, _)| client.is_same(&set.client));
            match known {
                Some((_, batch)) => batch.push((handle, set.id)),
                None => batches.push((set.client.clone(), vec![(handle, set.id)])),
            }
        }
        for (client, mut batch) in batches {
            match (batch.len(), batch.pop()) {
                (1, Some((handle, id))) => client.sink().push(Job::Delete(handle, id)),
                (_, Some(last)) => {
                    batch.push(last);
                    client.sink().push(Job::DeleteAll(batch));
                }
                (_, None) => {}
            }
        }
    }

    /// Makes the buffers unusable; gives the handle if the runtime is to be told now. Where an
    /// operation is still being enqueued, the one who ends it tells the runtime.
    fn condemn(&self) -> Option<ArrayRef> {
        let mut disposal: Option<Arc<Disposal>> = None;
        for cell in self.cells.iter() {
            if cell.condemn() {
                continue;
            }
            let disposal = disposal.get_or_insert_with(|| Arc::new(Disposal::new(self)));
            let waiter: Arc<dyn Settled> = Arc::clone(disposal) as _;
            disposal.open.fetch_add(1, Ordering::Relaxed);
            if !cell.condemn_later(&waiter) {
                disposal.open.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.forget_host_copy();
        let handle = self.value.lock().take();
        match (disposal, handle) {
            (_, None) => None,
            (None, Some(handle)) if self.cells.claim_any() => Some(handle),
            // Donated, or deleted through another handle; dropping this one may take long.
            (None, Some(handle)) => {
                self.client.sink().push(Job::Release(handle));
                None
            }
            (Some(disposal), Some(handle)) => {
                *disposal.handle.lock() = Some(handle);
                disposal.settled();
                None
            }
        }
    }

    /// Drops the handle, for an array that the runtime has consumed or that nobody has any more.
    /// Freeing a lot of memory takes long, so that is done by the thread of the sink.
    pub(crate) fn release(&self) {
        self.forget_host_copy();
        let Some(handle) = self.value.lock().take() else {
            return;
        };
        if self.bytes >= RELEASE_ELSEWHERE_BYTES {
            self.client.sink().push(Job::Release(handle));
        } else if catch_unwind(AssertUnwindSafe(|| drop(handle))).is_err() {
            tracing::error!(
                array = self.id,
                "the runtime panicked when it released an array"
            );
        }
    }
}

/// Dropping the last reference releases the handle; it is not a deletion.
impl Drop for BufferSet {
    fn drop(&mut self) {
        self.release();
    }
}

/// From this size on allocators give memory back to the system instead of keeping it, which is
/// what makes freeing slow (128 KiB in glibc).
const RELEASE_ELSEWHERE_BYTES: u64 = 128 << 10;

impl fmt::Debug for BufferSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferSet")
            .field("id", &self.id)
            .field("cells", &self.cells)
            .finish_non_exhaustive()
    }
}

/// A handle that no deletion reaches until this is dropped.
#[derive(Debug)]
pub(crate) struct Pinned<'a> {
    set: &'a BufferSet,
    pins: usize,
    handle: Option<ArrayRef>,
}

impl Pinned<'_> {
    /// Calls the runtime with the handle, and lets deletions through again afterwards.
    pub(crate) fn with<T>(self, f: impl FnOnce(&ArrayRef) -> ifrt::Result<T>) -> ifrt::Result<T> {
        match &self.handle {
            Some(handle) => f(handle),
            None => Err(ifrt::Status::internal("a pinned array has no handle")),
        }
    }

    /// The same for a call that answers through a completion.
    pub(crate) fn with_completion<T>(
        self,
        f: impl FnOnce(&ArrayRef) -> Completion<T>,
    ) -> Completion<T> {
        match &self.handle {
            Some(handle) => f(handle),
            None => Completion::ready(Err(ifrt::Status::internal("a pinned array has no handle"))),
        }
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.set.cells.iter().take(self.pins).for_each(Cell::unpin);
    }
}

/// A deletion that waits until all cells of its array are quiet.
struct Disposal {
    client: Client,
    id: u64,
    cells: Cells,
    /// Cells that are not quiet, and one for the deletion itself until it has left the handle here.
    open: AtomicUsize,
    handle: Lock<Option<ArrayRef>>,
}

impl Disposal {
    fn new(set: &BufferSet) -> Self {
        Self {
            client: set.client.clone(),
            id: set.id,
            cells: set.cells.clone(),
            open: AtomicUsize::new(1),
            handle: Lock::new(None),
        }
    }
}

impl Settled for Disposal {
    fn settled(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let Some(handle) = self.handle.lock().take() else {
            return;
        };
        let job = if self.cells.claim_any() {
            Job::Delete(handle, self.id)
        } else {
            Job::Release(handle)
        };
        self.client.sink().push(job);
    }
}
