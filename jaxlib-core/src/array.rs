//! [`Array`]: an array on devices, with JAX's rules.
//!
//! What is not here: making arrays (`device_put`, `executable`).
//!
//! # Mirrors
//! `jaxlib/py_array.cc`, `jax/_src/array.py`.

mod read;
mod shards;

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use ifrt::{ArrayRef, Completion, DType, Result, Shape, Status};

use crate::aval::Aval;
use crate::client::Client;
use crate::deletion::{BufferSet, Cells, DeadReason};
use crate::live::Place;
use crate::messages;
use crate::sharding::Sharding;

pub(crate) use read::HostParts;
pub use read::HostRead;
pub use shards::Shard;

/// An array on devices. A clone is the same array.
///
/// # Deletion
/// [`Array::delete`] works on buffers: every clone, shard and alias of the array is dead with it.
/// What still works on a dead array is what needs no data: shape, element type, sharding, printing,
/// [`Array::is_deleted`], deleting it again. Everything else is an error that says so.
#[derive(Clone)]
#[must_use = "an array that nobody keeps is released at once"]
pub struct Array(Arc<Inner>);

pub(crate) struct Inner {
    aval: Aval,
    weak_type: bool,
    committed: bool,
    sharding: Sharding,
    /// The dimensions as sizes in memory; computed when somebody asks.
    dims: OnceLock<Box<[usize]>>,
    buffers: Arc<BufferSet>,
    /// Where it stands in the list of the client.
    place: Place,
}

/// What JAX knows of an array and the runtime does not.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    pub(crate) sharding: Sharding,
    pub(crate) committed: bool,
    pub(crate) weak_type: bool,
}

impl Array {
    /// An array of the runtime. Its buffers must not be part of another [`Array`], or neither
    /// would notice when the other is deleted.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if its sharding is of a kind that JAX does not have.
    pub fn from_runtime(client: &Client, handle: ArrayRef, committed: bool) -> Result<Self> {
        let sharding = Sharding::from_runtime(handle.sharding()).ok_or_else(|| {
            Status::invalid_argument(format!(
                "an array with sharding {:?} has no counterpart in JAX",
                handle.sharding()
            ))
        })?;
        Ok(Self::new(
            client,
            handle,
            Meta {
                sharding,
                committed,
                weak_type: false,
            },
        ))
    }

    /// A new array with buffers of its own.
    pub(crate) fn new(client: &Client, handle: ArrayRef, meta: Meta) -> Self {
        let cells = Cells::new(meta.sharding.devices().addressable().len());
        Self::with_cells(client, handle, meta, cells)
    }

    pub(crate) fn with_cells(client: &Client, handle: ArrayRef, meta: Meta, cells: Cells) -> Self {
        let aval = Aval::new(handle.dtype(), handle.shape().clone());
        let copies = if meta.sharding.is_fully_replicated() {
            u64::try_from(cells.len()).unwrap_or(u64::MAX)
        } else {
            1
        };
        let bytes = aval.byte_size().saturating_mul(copies);
        let buffers = Arc::new(BufferSet::new(client.clone(), handle, cells, bytes));
        Self::with_buffers(aval, meta, buffers)
    }

    fn with_buffers(aval: Aval, meta: Meta, buffers: Arc<BufferSet>) -> Self {
        Self(Arc::new_cyclic(|this| Inner {
            aval,
            weak_type: meta.weak_type,
            committed: meta.committed,
            sharding: meta.sharding,
            dims: OnceLock::new(),
            place: buffers.client().live().add(Weak::clone(this)),
            buffers,
        }))
    }

    /// The arrays of a client that somebody holds and that are not dead, in no order.
    pub(crate) fn all_of(client: &Client) -> Vec<Self> {
        let held = client.live().all().into_iter().map(Self);
        held.filter(|array| !array.is_deleted()).collect()
    }

    /// Another array over the same buffers.
    pub(crate) fn alias(&self, sharding: Sharding, committed: bool) -> Self {
        let meta = Meta {
            sharding,
            committed,
            weak_type: self.0.weak_type,
        };
        Self::with_buffers(self.0.aval.clone(), meta, Arc::clone(&self.0.buffers))
    }

    /// The client that the array belongs to.
    pub fn client(&self) -> &Client {
        self.0.buffers.client()
    }

    /// Shape and element type.
    pub fn aval(&self) -> &Aval {
        &self.0.aval
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.0.aval.dtype
    }

    /// The dimensions.
    pub fn shape(&self) -> &Shape {
        &self.0.aval.shape
    }

    /// The dimensions as sizes in memory.
    pub fn dims(&self) -> &[usize] {
        self.0.dims.get_or_init(|| {
            let dims = self.shape().dims().iter();
            // A dimension that exceeds the address space cannot be indexed anyway.
            dims.map(|dim| usize::try_from(*dim).unwrap_or(usize::MAX))
                .collect()
        })
    }

    /// Where its parts are.
    pub fn sharding(&self) -> &Sharding {
        &self.0.sharding
    }

    /// True if the array stays where it is. Others follow them to their devices.
    pub fn is_committed(&self) -> bool {
        self.0.committed
    }

    /// True if its element type yields to that of others in type promotion.
    pub fn weak_type(&self) -> bool {
        self.0.weak_type
    }

    /// True if each device has the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        self.0.sharding.is_fully_replicated()
    }

    /// A number that tells the buffers of this array from those of others; it stands in log lines.
    pub fn id(&self) -> u64 {
        self.0.buffers.id()
    }

    /// Deletes the array: its memory is given back as soon as no accepted operation needs it.
    ///
    /// Total and silent: it cannot fail, and deleting again does nothing. If the runtime fails to
    /// delete, that is logged and counted ([`Client::deletion_stats`]), and the array is dead all
    /// the same.
    ///
    /// # Blocking
    /// Never, whatever the runtime does.
    ///
    /// # Mirrors
    /// `jax.Array.delete`.
    pub fn delete(&self) {
        self.0.buffers.delete();
    }

    /// Deletes several arrays. The runtime hears of those of one client in one call.
    ///
    /// # Blocking
    /// Never.
    pub fn delete_all<'a>(arrays: impl IntoIterator<Item = &'a Self>) {
        BufferSet::delete_all(arrays.into_iter().map(|array| &*array.0.buffers));
    }

    /// True once the array was deleted or donated, here or under another alias. Never becomes
    /// false again.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Mirrors
    /// `jax.Array.is_deleted`.
    pub fn is_deleted(&self) -> bool {
        self.0.buffers.is_deleted()
    }

    /// Ready when the data is there or has failed.
    ///
    /// # Errors
    /// Through the completion: for a dead array that it is dead; the error of what made the array.
    pub fn ready(&self) -> Completion {
        let pinned = match self.buffers().pin() {
            Ok(pinned) => pinned,
            Err(reason) => {
                return Completion::ready(Err(messages::wait_on_deleted(self.aval(), reason)));
            }
        };
        let ready = pinned.with_completion(|handle| handle.ready());
        match ready.peek() {
            Some(Ok(())) => ready,
            _ => {
                let own = self.clone();
                ready.then(move |result| {
                    messages::explain(result.clone(), || {
                        let reason = own.buffers().dead_after_refusal()?;
                        Some(messages::wait_on_deleted(own.aval(), reason))
                    })
                })
            }
        }
    }

    /// True if the data is there or has failed.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a dead array.
    ///
    /// # Mirrors
    /// `jax.Array.is_ready`.
    pub fn is_ready(&self) -> Result<bool> {
        let pinned = self
            .buffers()
            .pin()
            .map_err(|reason| self.deleted(reason))?;
        Ok(pinned.with_completion(|handle| handle.ready()).is_ready())
    }

    /// Waits until the data is there.
    ///
    /// # Blocking
    /// Until then.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a dead array; the error of what made the array.
    ///
    /// # Mirrors
    /// `jax.Array.block_until_ready`.
    pub fn block_until_ready(&self) -> Result<()> {
        self.ready().wait()
    }

    pub(crate) fn buffers(&self) -> &BufferSet {
        &self.0.buffers
    }

    /// The error for using this array if it is dead.
    pub(crate) fn deleted(&self, reason: DeadReason) -> Status {
        messages::array_deleted(self.aval(), reason)
    }

    /// Fails if the array is known to be dead.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a dead array.
    pub fn check_alive(&self) -> Result<()> {
        match self.buffers().dead() {
            Some(reason) => Err(self.deleted(reason)),
            None => Ok(()),
        }
    }

    fn state(&self) -> &'static str {
        match self.buffers().dead() {
            None => "live",
            Some(DeadReason::Deleted) => "deleted",
            Some(DeadReason::Donated) => "donated",
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.buffers.client().live().remove(self.place);
    }
}

/// Says nothing about the contents and never waits; `Array(float32[16], deleted)`.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.buffers().dead() {
            None => write!(f, "Array({})", self.aval()),
            Some(_) => write!(f, "Array({}, {})", self.aval(), self.state()),
        }
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array")
            .field("id", &self.id())
            .field("aval", &format_args!("{}", self.aval()))
            .field("sharding", self.sharding())
            .field("committed", &self.is_committed())
            .field("state", &format_args!("{}", self.state()))
            .finish()
    }
}
