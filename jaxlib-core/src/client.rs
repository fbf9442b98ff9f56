//! [`Client`]: a runtime, and what this crate keeps for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ifrt::{Code, DeviceRef, Result};

use crate::array::{self, Array};
use crate::deletion::{DeletionStats, Sink};
use crate::live::Registry;

/// A runtime, and what this crate keeps for it. A cheap clone.
///
/// Arrays and executables keep their client alive. When the last of them goes away, the deletions
/// that were asked for are handed to the runtime; that is waited for, but not for longer than two
/// seconds.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    // Dropped first: what waits in the sink belongs to the runtime.
    sink: Sink,
    live: Registry<array::Inner>,
    runtime: Arc<dyn ifrt::Client>,
}

impl Client {
    /// A client of this runtime.
    pub fn new(runtime: Arc<dyn ifrt::Client>) -> Self {
        Self(Arc::new(Inner {
            sink: Sink::new(),
            live: Registry::default(),
            runtime,
        }))
    }

    /// The runtime.
    pub fn runtime(&self) -> &Arc<dyn ifrt::Client> {
        &self.0.runtime
    }

    /// True if both are clones of one client.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The device that data without a place of its own goes to: the first that can be reached.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if this process can reach no device.
    pub fn default_device(&self) -> Result<DeviceRef> {
        self.runtime()
            .addressable_devices()
            .first()
            .cloned()
            .ok_or_else(|| {
                ifrt::Status::failed_precondition(format!(
                    "platform {} has no device that this process can reach",
                    self.runtime().platform_name()
                ))
            })
    }

    /// What has become of the deletions so far.
    pub fn deletion_stats(&self) -> DeletionStats {
        self.0.sink.stats()
    }

    /// Waits until the runtime has been told of every deletion that was asked for; false if
    /// `timeout` passes first.
    ///
    /// Nothing needs this for being right. It is for programs that want to know how much memory is
    /// free.
    ///
    /// # Blocking
    /// For as long as the runtime takes to hear of them, at most `timeout`.
    pub fn drain_deletions(&self, timeout: Duration) -> bool {
        self.0.sink.drain(timeout)
    }

    /// The arrays that somebody holds and that are neither deleted nor donated, in no order.
    ///
    /// Aliases and shards are arrays of their own: each is listed for as long as it is held, and all
    /// that share a buffer are gone from the list with it.
    ///
    /// # Blocking
    /// Asks the runtime about each array, which is a matter of microseconds or of a round trip.
    ///
    /// # Mirrors
    /// `jax.live_arrays`.
    pub fn live_arrays(&self) -> Vec<Array> {
        Array::all_of(self)
    }

    pub(crate) fn live(&self) -> &Registry<array::Inner> {
        &self.0.live
    }

    pub(crate) fn sink(&self) -> &Sink {
        &self.0.sink
    }

    /// Does something that takes memory on devices. If there is none, but deletions are still on
    /// their way to the runtime, they are waited for and it is tried once more: whoever deletes an
    /// array and then makes another one of its size expects that to work.
    pub(crate) fn with_memory<T>(&self, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        match attempt() {
            Err(status) if status.code() == Code::ResourceExhausted && self.0.sink.is_pending() => {
                tracing::debug!("out of memory with deletions under way: trying again after them");
                self.0.sink.drain(FOR_MEMORY);
                attempt()
            }
            result => result,
        }
    }
}

/// How long an operation that found no memory waits for deletions.
const FOR_MEMORY: Duration = Duration::from_secs(1);

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("platform", &self.runtime().platform_name())
            .field("devices", &self.runtime().devices().len())
            .finish_non_exhaustive()
    }
}
