//! The host buffers of a session: bytes that were uploaded and not used yet, or read from an array
//! and not fetched yet.
//!
//! An upload and the request that uses it travel on different streams, so either may come first.
//! A problem of an upload is stored under its handle and shows at the array, not as an error of
//! the upload: a released client ends its whole session when an upload fails.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/server/host_buffer.cc`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use ifrt::{Result, Status};

use crate::server::session::tables::check_client_handle;
use crate::server::session::upload::UploadMemory;

#[derive(Debug)]
enum Slot {
    /// The upload is under way. `wanted` is false if its user is gone.
    Arriving {
        size: u64,
        wanted: bool,
    },
    Ready(Bytes),
    Failed(Status),
    /// The user is gone before the upload came; its bytes are not kept.
    Unwanted,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<u64, Slot>,
    /// The bytes of all slots, announced or there.
    bytes: u64,
    ended: bool,
}

/// The host buffers of a session.
#[derive(Debug)]
pub(crate) struct HostBuffers {
    state: Mutex<State>,
    changed: Condvar,
    max_bytes: u64,
}

impl HostBuffers {
    pub(crate) fn new(max_bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            max_bytes,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an upload of `size` bytes.
    ///
    /// # Errors
    /// ALREADY_EXISTS if the handle is in use; INVALID_ARGUMENT for a handle or a size that cannot
    /// be.
    pub(crate) fn begin_upload(self: &Arc<Self>, handle: u64, size: i64) -> Result<Upload> {
        check_client_handle(handle).map_err(|failure| failure.status().clone())?;
        let size = u64::try_from(size).map_err(|_| {
            Status::invalid_argument(format!("a host buffer cannot have {size} bytes"))
        })?;
        let mut state = self.lock();
        if state.ended {
            return Err(ended());
        }
        let fits = self.check_room(&state, size);
        let kept = if fits.is_ok() { size } else { 0 };
        let wanted = match state.slots.entry(handle) {
            Entry::Vacant(entry) => {
                entry.insert(Slot::Arriving {
                    size: kept,
                    wanted: true,
                });
                true
            }
            Entry::Occupied(mut entry) if matches!(entry.get(), Slot::Unwanted) => {
                entry.insert(Slot::Arriving {
                    size: kept,
                    wanted: false,
                });
                false
            }
            Entry::Occupied(_) => return Err(exists(handle)),
        };
        state.bytes += kept;
        drop(state);
        let memory = if wanted {
            fits.and_then(|()| UploadMemory::new(usize::try_from(size).unwrap_or(usize::MAX)))
        } else {
            Err(Status::cancelled(
                "the array that needs this host buffer failed",
            ))
        };
        Ok(Upload {
            buffers: Arc::clone(self),
            handle,
            size,
            received: 0,
            memory: Some(memory),
        })
    }

    fn check_room(&self, state: &State, size: u64) -> Result<()> {
        match state.bytes.checked_add(size) {
            Some(total) if total <= self.max_bytes => Ok(()),
            _ => Err(Status::resource_exhausted(format!(
                "a host buffer of {size} bytes does not fit beside {} bytes of other host buffers \
                 of this session: the limit is {} bytes",
                state.bytes, self.max_bytes
            ))),
        }
    }

    fn finish_upload(&self, handle: u64, outcome: Result<Bytes>) {
        let mut state = self.lock();
        let unused = match state.slots.remove(&handle) {
            Some(Slot::Arriving { size, wanted: true }) => match outcome {
                Ok(bytes) => {
                    state.slots.insert(handle, Slot::Ready(bytes));
                    None
                }
                Err(error) => {
                    state.bytes -= size;
                    state.slots.insert(handle, Slot::Failed(error));
                    None
                }
            },
            Some(Slot::Arriving { size, .. }) => {
                state.bytes -= size;
                Some(outcome)
            }
            Some(other) => {
                state.slots.insert(handle, other);
                Some(outcome)
            }
            None => Some(outcome),
        };
        drop(state);
        self.changed.notify_all();
        drop(unused);
    }

    /// Stores bytes for the client to fetch.
    ///
    /// # Errors
    /// ALREADY_EXISTS if the handle is in use; RESOURCE_EXHAUSTED beyond the limit.
    pub(crate) fn put(&self, handle: u64, bytes: Bytes) -> Result<()> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let mut state = self.lock();
        if state.ended {
            return Err(ended());
        }
        self.check_room(&state, size)?;
        match state.slots.entry(handle) {
            Entry::Vacant(entry) => {
                entry.insert(Slot::Ready(bytes));
            }
            Entry::Occupied(_) => return Err(exists(handle)),
        }
        state.bytes += size;
        Ok(())
    }

    /// Checks that [`HostBuffers::put`] may use the handle.
    pub(crate) fn check_new(&self, handle: u64) -> Result<()> {
        check_client_handle(handle).map_err(|failure| failure.status().clone())?;
        if self.lock().slots.contains_key(&handle) {
            return Err(exists(handle));
        }
        Ok(())
    }

    /// Waits for the upload and takes its bytes out.
    ///
    /// # Errors
    /// The problem of the upload; CANCELLED when the session ends.
    pub(crate) fn take(&self, handle: u64) -> Result<Bytes> {
        let mut state = self.lock();
        loop {
            if state.ended {
                return Err(ended());
            }
            match state.slots.remove(&handle) {
                Some(Slot::Ready(bytes)) => {
                    state.bytes -= u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    return Ok(bytes);
                }
                Some(Slot::Failed(error)) => return Err(error),
                Some(other) => {
                    state.slots.insert(handle, other);
                }
                None => {}
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Says that nobody will take this buffer.
    pub(crate) fn abandon(&self, handle: u64) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        let gone = match state.slots.entry(handle) {
            Entry::Vacant(entry) => {
                entry.insert(Slot::Unwanted);
                None
            }
            Entry::Occupied(mut entry) => match entry.get_mut() {
                Slot::Arriving { wanted, .. } => {
                    *wanted = false;
                    None
                }
                Slot::Unwanted => None,
                Slot::Ready(_) | Slot::Failed(_) => Some(entry.remove()),
            },
        };
        if let Some(Slot::Ready(bytes)) = &gone {
            state.bytes -= u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        }
        drop(state);
        drop(gone);
    }

    /// The bytes under `handle`, which stay.
    ///
    /// # Errors
    /// NOT_FOUND if there are none.
    pub(crate) fn get(&self, handle: u64) -> Result<Bytes> {
        match self.lock().slots.get(&handle) {
            Some(Slot::Ready(bytes)) => Ok(bytes.clone()),
            Some(Slot::Failed(error)) => Err(error.clone()),
            _ => Err(not_found(handle)),
        }
    }

    /// Removes a buffer and hands out its bytes.
    ///
    /// # Errors
    /// NOT_FOUND if there is none.
    pub(crate) fn remove(&self, handle: u64) -> Result<Bytes> {
        let mut state = self.lock();
        match state.slots.remove(&handle) {
            Some(Slot::Ready(bytes)) => {
                state.bytes -= u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                Ok(bytes)
            }
            Some(Slot::Failed(_)) => Ok(Bytes::new()),
            Some(other) => {
                state.slots.insert(handle, other);
                Err(not_found(handle))
            }
            None => Err(not_found(handle)),
        }
    }

    /// Ends all waiting for good, and hands out the bytes that are left.
    pub(crate) fn end(&self) -> Vec<Bytes> {
        let mut state = self.lock();
        state.ended = true;
        let slots = std::mem::take(&mut state.slots);
        state.bytes = 0;
        drop(state);
        self.changed.notify_all();
        slots
            .into_values()
            .filter_map(|slot| match slot {
                Slot::Ready(bytes) => Some(bytes),
                _ => None,
            })
            .collect()
    }
}

/// An upload that is under way. Dropped unfinished it fails the buffer.
#[derive(Debug)]
pub(crate) struct Upload {
    buffers: Arc<HostBuffers>,
    handle: u64,
    size: u64,
    received: u64,
    /// Where the bytes go, or why they are not kept.
    memory: Option<Result<UploadMemory>>,
}

impl Upload {
    /// Adds the next bytes.
    ///
    /// # Errors
    /// DATA_LOSS if there are more than announced.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let added = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.received = self.received.saturating_add(added);
        if self.received > self.size {
            return Err(self.wrong_size("at least "));
        }
        if let Some(Ok(memory)) = &mut self.memory {
            memory.push(bytes);
        }
        Ok(())
    }

    /// The announced bytes.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Reads all of the upload from a file, and ends it. Blocks meanwhile.
    pub(crate) fn finish_from(mut self, file: impl io::Read) {
        let Some(memory) = self.memory.take() else {
            return;
        };
        let outcome = memory.and_then(|mut memory| match memory.push_from(file.take(self.size)) {
            Ok(read) if read == self.size => Ok(memory.finish()),
            Ok(read) => Err(self.size_error("", read)),
            Err(error) => Err(Status::data_loss(format!(
                "Host buffer handle {}: reading its file failed: {error}",
                self.handle
            ))),
        });
        self.buffers.finish_upload(self.handle, outcome);
    }

    /// Ends the upload with an error for whoever uses the buffer.
    pub(crate) fn fail(mut self, error: Status) {
        if self.memory.take().is_some() {
            self.buffers.finish_upload(self.handle, Err(error));
        }
    }

    /// Ends the upload.
    ///
    /// # Errors
    /// DATA_LOSS if bytes are missing.
    pub(crate) fn finish(mut self) -> Result<()> {
        if self.received != self.size {
            return Err(self.wrong_size(""));
        }
        if let Some(memory) = self.memory.take() {
            self.buffers
                .finish_upload(self.handle, memory.map(UploadMemory::finish));
        }
        Ok(())
    }

    /// The user of the buffer gets the same error as the sender.
    fn wrong_size(&mut self, at_least: &str) -> Status {
        let error = self.size_error(at_least, self.received);
        self.memory = None;
        self.buffers.finish_upload(self.handle, Err(error.clone()));
        error
    }

    fn size_error(&self, at_least: &str, received: u64) -> Status {
        Status::data_loss(format!(
            "Host buffer handle {}: {} bytes were announced, but {at_least}{received} arrived",
            self.handle, self.size
        ))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.memory.take().is_some() {
            let error = Status::cancelled(format!(
                "the upload of host buffer {} broke off after {} of {} bytes",
                self.handle, self.received, self.size
            ));
            self.buffers.finish_upload(self.handle, Err(error));
        }
    }
}

fn ended() -> Status {
    Status::cancelled("the session has ended")
}

fn exists(handle: u64) -> Status {
    Status::already_exists(format!("Host buffer handle {handle} already exists"))
}

fn not_found(handle: u64) -> Status {
    Status::not_found(format!("Host buffer handle {handle} not found"))
}

#[cfg(test)]
mod tests;
