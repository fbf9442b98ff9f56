//! The handle tables of a session.
//!
//! Clients make most handles themselves, below 2^48, so that they can use a result before they
//! have heard of it; the server makes the others. A table never drops a value under its lock: what
//! leaves it is returned, because the last reference to a large array may take a while to go.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/server/ifrt_backend.cc` (`ArrayStore`, `HandleGenerator`).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use ifrt::{ArrayRef, Completion, LoadedExecutableRef, Status, value};

use crate::server::session::context::{ContextRef, Failure, Outcome};
use crate::server::sync::Lock;

/// The first handle that the server makes; those of clients are below.
pub(crate) const FIRST_SERVER_HANDLE: u64 = 1 << 48;

/// The future of every deletion: it stands in no table and is always ready and successful.
pub(crate) const DELETION_DONE: u64 = FIRST_SERVER_HANDLE;

/// The future of every executable: loaded when the client learns its handle.
pub(crate) const EXECUTABLE_READY: u64 = FIRST_SERVER_HANDLE + 1;

const FIRST_FREE_SERVER_HANDLE: u64 = FIRST_SERVER_HANDLE + 2;

/// What a client gets that uses an array after its deletion.
const DELETED: &str = "Array has been deleted.";

/// Handles count up, so any mixing will do; a client can only harm its own session.
#[derive(Default)]
struct HandleHasher(u64);

impl Hasher for HandleHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

type Table<T> = HashMap<u64, T, BuildHasherDefault<HandleHasher>>;

#[derive(Debug)]
enum ArrayState {
    Live(ArrayRef),
    Failed(Failure),
    /// Deleted and not yet destructed; the array itself is in the hands of the deletion thread.
    Deleted,
}

#[derive(Debug)]
struct ArraySlot {
    state: ArrayState,
    context: Option<ContextRef>,
}

/// An array and the request that made it.
#[derive(Clone, Debug)]
pub(crate) struct KnownArray {
    pub(crate) array: ArrayRef,
    pub(crate) context: Option<ContextRef>,
}

/// A future and the request that it belongs to.
#[derive(Debug)]
pub(crate) struct KnownFuture {
    pub(crate) completion: Completion,
    pub(crate) context: Option<ContextRef>,
}

/// The two tables of futures; which one an execution uses depends on the protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FutureKind {
    Future,
    ExecuteResult,
}

/// What a session held at its end.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    pub(crate) arrays: Vec<ArrayRef>,
    pub(crate) executables: Vec<LoadedExecutableRef>,
}

#[derive(Debug)]
struct Inner {
    /// Set when the session ends: what work that is still under way brings is not kept.
    closed: bool,
    next_handle: u64,
    arrays: Table<ArraySlot>,
    executables: Table<LoadedExecutableRef>,
    futures: Table<KnownFuture>,
    execute_results: Table<KnownFuture>,
}

impl Inner {
    fn next_handle(&mut self) -> u64 {
        let handle = self.next_handle;
        self.next_handle += 1;
        handle
    }

    fn futures(&mut self, kind: FutureKind) -> &mut Table<KnownFuture> {
        match kind {
            FutureKind::Future => &mut self.futures,
            FutureKind::ExecuteResult => &mut self.execute_results,
        }
    }
}

/// The handle tables of a session.
#[derive(Debug)]
pub(crate) struct Tables(Lock<Inner>);

impl Tables {
    pub(crate) fn new() -> Self {
        Self(Lock::new(Inner {
            closed: false,
            next_handle: FIRST_FREE_SERVER_HANDLE,
            arrays: Table::default(),
            executables: Table::default(),
            futures: Table::default(),
            execute_results: Table::default(),
        }))
    }

    /// Checks that a client may use `handle` for a new array.
    pub(crate) fn check_new_array(&self, handle: u64) -> Outcome<()> {
        check_client_handle(handle)?;
        if self.0.lock().arrays.contains_key(&handle) {
            return Err(in_use("array", handle));
        }
        Ok(())
    }

    /// Stores an array or the error in its place. The handle must be new.
    pub(crate) fn insert_array(
        &self,
        handle: u64,
        array: Outcome<ArrayRef>,
        context: Option<&ContextRef>,
    ) {
        let slot = ArraySlot {
            state: match array {
                Ok(array) => ArrayState::Live(array),
                Err(failure) => ArrayState::Failed(failure),
            },
            context: context.cloned(),
        };
        let mut inner = self.0.lock();
        let refused = if inner.closed {
            Some(slot)
        } else {
            inner.arrays.insert(handle, slot)
        };
        drop(inner);
        drop(refused);
    }

    /// Stores an array under a handle of the server.
    pub(crate) fn add_array(&self, array: ArrayRef, context: Option<&ContextRef>) -> u64 {
        let handle = self.0.lock().next_handle();
        self.insert_array(handle, Ok(array), context);
        handle
    }

    /// The array under `handle`.
    pub(crate) fn array(&self, handle: u64) -> Outcome<KnownArray> {
        self.live_array(handle, DELETED)
    }

    /// The array under `handle`, for a client that waits for it to be ready.
    pub(crate) fn array_to_await(&self, handle: u64) -> Outcome<KnownArray> {
        self.live_array(handle, value::READY_ON_DELETED)
    }

    fn live_array(&self, handle: u64, deleted: &str) -> Outcome<KnownArray> {
        let inner = self.0.lock();
        let slot = inner
            .arrays
            .get(&handle)
            .ok_or_else(|| unknown("array", handle))?;
        match &slot.state {
            ArrayState::Live(array) => Ok(KnownArray {
                array: array.clone(),
                context: slot.context.clone(),
            }),
            ArrayState::Failed(failure) => Err(failure.clone()),
            ArrayState::Deleted => Err(Status::invalid_argument(deleted).into()),
        }
    }

    /// The arrays under `handles`, or the error of the first that has none.
    pub(crate) fn arrays(&self, handles: &[u64]) -> Outcome<Vec<ArrayRef>> {
        handles
            .iter()
            .map(|handle| self.array(*handle).map(|known| known.array))
            .collect()
    }

    /// The array under `handle` for the question whether it is deleted; `None` means yes.
    pub(crate) fn array_unless_deleted(&self, handle: u64) -> Outcome<Option<ArrayRef>> {
        let inner = self.0.lock();
        match inner.arrays.get(&handle).map(|slot| &slot.state) {
            None => Err(unknown("array", handle)),
            Some(ArrayState::Live(array)) => Ok(Some(array.clone())),
            Some(ArrayState::Failed(failure)) => Err(failure.clone()),
            Some(ArrayState::Deleted) => Ok(None),
        }
    }

    /// Marks arrays as deleted and hands them out. Handles without a live array are skipped.
    pub(crate) fn delete_arrays(&self, handles: &[u64]) -> Vec<ArrayRef> {
        let mut contexts = Vec::new();
        let mut deleted = Vec::new();
        let mut inner = self.0.lock();
        for handle in handles {
            let Some(slot) = inner.arrays.get_mut(handle) else {
                continue;
            };
            if matches!(slot.state, ArrayState::Live(_)) {
                contexts.extend(slot.context.take());
                if let ArrayState::Live(array) =
                    std::mem::replace(&mut slot.state, ArrayState::Deleted)
                {
                    deleted.push(array);
                }
            }
        }
        drop(inner);
        drop(contexts);
        deleted
    }

    /// Forgets arrays. Those that were live are handed out.
    pub(crate) fn destruct_arrays(&self, handles: &[u64]) -> Vec<ArrayRef> {
        let mut inner = self.0.lock();
        let slots: Vec<ArraySlot> = handles
            .iter()
            .filter_map(|handle| inner.arrays.remove(handle))
            .collect();
        drop(inner);
        slots
            .into_iter()
            .filter_map(|slot| match slot.state {
                ArrayState::Live(array) => Some(array),
                ArrayState::Failed(_) | ArrayState::Deleted => None,
            })
            .collect()
    }

    /// Stores an executable under a handle of the server.
    pub(crate) fn add_executable(&self, executable: LoadedExecutableRef) -> u64 {
        let mut inner = self.0.lock();
        let handle = inner.next_handle();
        let refused = if inner.closed {
            Some(executable)
        } else {
            inner.executables.insert(handle, executable)
        };
        drop(inner);
        drop(refused);
        handle
    }

    /// The executable under `handle`.
    pub(crate) fn executable(&self, handle: u64) -> Outcome<LoadedExecutableRef> {
        let inner = self.0.lock();
        inner
            .executables
            .get(&handle)
            .cloned()
            .ok_or_else(|| unknown("loaded executable", handle))
    }

    /// Forgets an executable and hands it out.
    pub(crate) fn destruct_executable(&self, handle: u64) -> Outcome<LoadedExecutableRef> {
        self.0
            .lock()
            .executables
            .remove(&handle)
            .ok_or_else(|| unknown("loaded executable", handle))
    }

    /// Checks that a client may use `handle` for a new future.
    pub(crate) fn check_new_future(&self, kind: FutureKind, handle: u64) -> Outcome<()> {
        check_client_handle(handle)?;
        if self.0.lock().futures(kind).contains_key(&handle) {
            return Err(in_use("future", handle));
        }
        Ok(())
    }

    /// Stores a future; the handle must be new.
    pub(crate) fn insert_future(&self, kind: FutureKind, handle: u64, future: KnownFuture) {
        let mut inner = self.0.lock();
        let refused = if inner.closed {
            Some(future)
        } else {
            inner.futures(kind).insert(handle, future)
        };
        drop(inner);
        drop(refused);
    }

    /// Stores a future under a handle of the server.
    pub(crate) fn add_future(&self, kind: FutureKind, future: KnownFuture) -> u64 {
        let handle = self.0.lock().next_handle();
        self.insert_future(kind, handle, future);
        handle
    }

    /// Takes a future out; each is read once.
    pub(crate) fn take_future(&self, kind: FutureKind, handle: u64) -> Outcome<KnownFuture> {
        let what = match kind {
            FutureKind::Future => "future",
            FutureKind::ExecuteResult => "execute result",
        };
        self.0
            .lock()
            .futures(kind)
            .remove(&handle)
            .ok_or_else(|| unknown(what, handle))
    }

    /// Empties the tables for good and hands out what held memory.
    pub(crate) fn close(&self) -> Remains {
        let mut inner = self.0.lock();
        inner.closed = true;
        let arrays = std::mem::take(&mut inner.arrays);
        let executables = std::mem::take(&mut inner.executables);
        let futures = std::mem::take(&mut inner.futures);
        let execute_results = std::mem::take(&mut inner.execute_results);
        drop(inner);
        drop((futures, execute_results));
        Remains {
            arrays: arrays
                .into_values()
                .filter_map(|slot| match slot.state {
                    ArrayState::Live(array) => Some(array),
                    ArrayState::Failed(_) | ArrayState::Deleted => None,
                })
                .collect(),
            executables: executables.into_values().collect(),
        }
    }
}

/// Checks that a handle is one that a client may make.
pub(crate) fn check_client_handle(handle: u64) -> Outcome<()> {
    if (1..FIRST_SERVER_HANDLE).contains(&handle) {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "handle {handle} cannot name a new object: clients use 1 to {}",
        FIRST_SERVER_HANDLE - 1
    ))
    .into())
}

fn in_use(what: &str, handle: u64) -> Failure {
    Status::invalid_argument(format!("{what} handle {handle} is already in use")).into()
}

fn unknown(what: &str, handle: u64) -> Failure {
    Status::not_found(format!("Unknown {what} handle: {handle}")).into()
}
