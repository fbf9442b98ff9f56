//! [`Buffer`]: one shard on one device, and how it is used, deleted and freed.
//!
//! A buffer knows its dtype and shape from whoever made it: some plugins abort when they are asked
//! for the dimensions of a token.

mod copy;
mod from_host;
mod promised;
mod to_host;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use ifrt::dtype::DType;
use ifrt::shape::Shape;
use ifrt::value::READY_ON_DELETED;
use ifrt::{Completion, Result, Status};

use super::client::{Client, Counters};
use super::event::{Event, completion_of, missing};
use super::handle::Handle;
use super::pin::{Leave, PinState, Refused};
use crate::messages::GONE;
use crate::sys::api::{
    BufferDestroy, BufferIsDeleted, BufferOnDeviceSizeInBytes, BufferReadyEvent,
};
use crate::sys::buffer::{
    BufferDestroyArgs, BufferIsDeletedArgs, BufferOnDeviceSizeInBytesArgs, BufferReadyEventArgs,
};
use crate::sys::{self, Function};
use ifrt::layout::Layout;

/// A buffer up to this size is freed where its last user is, if the platform is known to take less
/// than a microsecond for it. Handing it to another thread would cost more.
const CHEAP_BYTES: u64 = 64 * 1024;

/// What the shards of one array have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShardSpec {
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    /// The order of the elements on the device; `None` is the default of the plugin.
    pub(crate) layout: Option<Layout>,
}

impl ShardSpec {
    /// The bytes that the elements take when packed; 0 for types without a size.
    pub(crate) fn packed_bytes(&self) -> u64 {
        let elements = u64::try_from(self.shape.num_elements()).unwrap_or(0);
        let bits = self
            .dtype
            .bit_size()
            .and_then(|bits| u64::try_from(bits).ok())
            .unwrap_or(0);
        elements.saturating_mul(bits).div_ceil(8)
    }
}

/// Where a buffer lives: positions in the lists of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Placement {
    pub(crate) device: usize,
    /// `None` if the plugin knows no memories.
    pub(crate) memory: Option<usize>,
}

/// One shard on one device.
#[derive(Debug)]
pub(crate) struct Buffer {
    client: Client,
    raw: Handle<sys::Buffer>,
    spec: Arc<ShardSpec>,
    placement: Placement,
    pins: PinState,
    /// Whether freeing it takes next to nothing.
    is_cheap: bool,
    ready: OnceLock<Completion>,
    /// S12: somebody holds the one external reference that there may be at a time.
    is_referenced: AtomicBool,
}

impl Buffer {
    /// Takes a buffer that a call gave.
    pub(super) fn new(
        client: &Client,
        raw: Handle<sys::Buffer>,
        spec: Arc<ShardSpec>,
        placement: Placement,
    ) -> Self {
        Counters::count(&client.counters().made);
        let is_cheap = client.is_cpu() && spec.packed_bytes() <= CHEAP_BYTES;
        Self {
            client: client.clone(),
            raw,
            spec,
            placement,
            pins: PinState::default(),
            is_cheap,
            ready: OnceLock::new(),
            is_referenced: AtomicBool::new(false),
        }
    }

    /// Takes a buffer that `F` should have given.
    pub(super) fn from_raw<F: Function>(
        client: &Client,
        raw: *mut sys::Buffer,
        spec: Arc<ShardSpec>,
        placement: Placement,
    ) -> Result<Arc<Self>> {
        let raw = Handle::new_opt(raw).ok_or_else(|| missing(F::NAME, "buffer"))?;
        Ok(Arc::new(Self::new(client, raw, spec, placement)))
    }

    pub(crate) fn spec(&self) -> &Arc<ShardSpec> {
        &self.spec
    }

    pub(crate) fn placement(&self) -> Placement {
        self.placement
    }

    /// What tells this buffer from others while both are alive.
    pub(crate) fn address(&self) -> usize {
        self.raw.as_ptr().addr()
    }

    /// Keeps the buffer for a call. Waits while an execution that donates it is being enqueued, so
    /// hold no other pin meanwhile.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it was deleted or donated.
    pub(crate) fn pin(&self) -> Result<Pinned<'_>> {
        loop {
            match self.try_pin(Use::Shared) {
                Ok(pinned) => return Ok(pinned),
                Err(Refused::Dead) => return Err(Status::invalid_argument(GONE)),
                Err(Refused::Busy) => self.pins.wait_while_busy(),
            }
        }
    }

    /// Keeps the buffer alone for a call that consumes it. Waits for its users.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it was deleted or donated.
    fn pin_exclusively(&self) -> Result<Pinned<'_>> {
        loop {
            match self.try_pin(Use::Exclusive) {
                Ok(pinned) => return Ok(pinned),
                Err(Refused::Dead) => return Err(Status::invalid_argument(GONE)),
                Err(Refused::Busy) => self.pins.wait_while_busy(),
            }
        }
    }

    pub(super) fn try_pin(&self, how: Use) -> std::result::Result<Pinned<'_>, Refused> {
        match how {
            Use::Shared => self.pins.pin(),
            Use::Look => self.pins.pin_to_look(),
            Use::Exclusive => self.pins.pin_exclusively(),
        }?;
        let pinned = Pinned {
            buffer: self,
            how,
            donated: false,
        };
        // The plugin may have consumed it in a way that nobody here took part in.
        if how != Use::Look && pinned.is_consumed() {
            self.kill();
            return Err(Refused::Dead);
        }
        Ok(pinned)
    }

    /// Blocks until what made [`Buffer::try_pin`] say *busy* may have changed.
    pub(super) fn wait_while_busy(&self) {
        self.pins.wait_while_busy();
    }

    /// Deletes the buffer. Never waits: not for users, not for the plugin.
    pub(crate) fn delete(&self) {
        self.kill();
    }

    /// True once the buffer was deleted or donated. Never waits.
    pub(crate) fn is_deleted(&self) -> bool {
        if self.pins.is_dead() {
            return true;
        }
        match self.try_pin(Use::Look) {
            Ok(pinned) => {
                let consumed = pinned.is_consumed();
                if consumed {
                    self.kill();
                }
                consumed
            }
            Err(refused) => refused == Refused::Dead,
        }
    }

    /// Ready when the data is there or has failed.
    pub(crate) fn ready(&self) -> Completion {
        let gone = || Completion::ready(Err(Status::invalid_argument(READY_ON_DELETED)));
        if self.is_deleted() {
            return gone();
        }
        if let Some(ready) = self.ready.get() {
            return ready.clone();
        }
        let Ok(pinned) = self.try_pin(Use::Look) else {
            return gone();
        };
        match pinned.ready_event() {
            Ok(event) => {
                let ready = completion_of(event);
                // Another thread may have been first; both completions tell the same.
                self.ready.get_or_init(|| ready).clone()
            }
            Err(status) => Completion::ready(Err(status)),
        }
    }

    /// The bytes that the buffer takes on its device.
    ///
    /// # Errors
    /// Those of the plugin; INVALID_ARGUMENT if the buffer is gone.
    pub(crate) fn on_device_bytes(&self) -> Result<u64> {
        let pinned = self.pin()?;
        let mut args = BufferOnDeviceSizeInBytesArgs {
            buffer: pinned.raw(),
            ..BufferOnDeviceSizeInBytesArgs::NEW
        };
        // SAFETY: S3, S4 and S6.
        unsafe {
            self.client
                .api()
                .call::<BufferOnDeviceSizeInBytes>(&mut args)
        }?;
        u64::try_from(args.on_device_size_in_bytes)
            .map_err(|_| Status::internal("the plugin gave a size that is no size"))
    }

    fn kill(&self) {
        if self.pins.kill() == Leave::Free {
            self.free(self.is_cheap);
        }
    }

    /// Destroys the C buffer. S6: called once, when the state has said so.
    fn free(&self, is_cheap: bool) {
        let (api, raw) = (self.client.api(), self.raw);
        let destroy = move || {
            let mut args = BufferDestroyArgs {
                buffer: raw.as_ptr(),
                ..BufferDestroyArgs::NEW
            };
            // SAFETY: S3, S4 and S6.
            if let Err(status) = unsafe { api.call::<BufferDestroy>(&mut args) } {
                tracing::warn!(%status, "a buffer cannot be freed");
            }
        };
        if is_cheap {
            destroy();
            Counters::count(&self.client.counters().freed_in_place);
        } else {
            let counters = Arc::clone(self.client.counters());
            self.client.reap(move || {
                destroy();
                Counters::count(&counters.freed_by_reaper);
            });
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a call uses a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Together with others.
    Shared,
    /// Only a question, also during a donating call.
    Look,
    /// Alone, because the call may donate it.
    Exclusive,
}

/// A buffer that stays until this is dropped.
#[derive(Debug)]
pub(crate) struct Pinned<'a> {
    buffer: &'a Buffer,
    how: Use,
    donated: bool,
}

impl Pinned<'_> {
    pub(super) fn raw(&self) -> *mut sys::Buffer {
        self.buffer.raw.as_ptr()
    }

    /// Asks the plugin whether a call that has just succeeded took the buffer.
    pub(super) fn note_donation(&mut self) {
        self.donated = self.how == Use::Exclusive && self.is_consumed();
    }

    /// Whether the plugin says that the buffer is gone.
    fn is_consumed(&self) -> bool {
        let mut args = BufferIsDeletedArgs {
            buffer: self.raw(),
            ..BufferIsDeletedArgs::NEW
        };
        // SAFETY: S3, S4 and S6.
        match unsafe { self.buffer.client.api().call::<BufferIsDeleted>(&mut args) } {
            Ok(()) => args.is_deleted.get(),
            Err(status) => {
                tracing::warn!(%status, "the plugin does not tell whether a buffer is deleted");
                false
            }
        }
    }

    fn ready_event(&self) -> Result<Option<Event>> {
        let api = self.buffer.client.api();
        let mut args = BufferReadyEventArgs {
            buffer: self.raw(),
            ..BufferReadyEventArgs::NEW
        };
        // SAFETY: S3, S4 and S6.
        unsafe { api.call::<BufferReadyEvent>(&mut args) }?;
        Ok(Event::from_raw(api, args.event))
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        let pins = &self.buffer.pins;
        let leave = match self.how {
            Use::Exclusive => pins.unpin_exclusively(self.donated),
            Use::Shared | Use::Look => pins.unpin(),
        };
        if leave == Leave::Free {
            // A donated buffer has no memory left, so freeing the rest is cheap where small ones are.
            let is_cheap = self.buffer.is_cheap || self.donated && self.buffer.client.is_cpu();
            self.buffer.free(is_cheap);
        }
    }
}
