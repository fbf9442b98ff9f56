//! What the worker of a sink does, and what it counts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ifrt::{ArrayRef, Result, Status, ValueRef};

use super::Shared;
use crate::array::HostParts;

/// Something to be done with the runtime away from the user's thread.
#[derive(Debug)]
pub(crate) enum Job {
    /// Delete the array with this number.
    Delete(ArrayRef, u64),
    /// Delete several with one call.
    DeleteAll(Vec<(ArrayRef, u64)>),
    /// Drop the handle, which may take long.
    Release(ArrayRef),
    /// Drop a copy on the host, which may take long as well.
    Forget(HostParts),
}

/// What has become of the deletions of a client so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeletionStats {
    /// Arrays whose deletion was asked for and not already under way.
    pub requested: u64,
    /// Arrays whose deletion the runtime has been told.
    pub told: u64,
    /// Deletions that the runtime has reported as failed, panics included.
    pub failed: u64,
    /// Handles that were dropped away from the user's thread.
    pub released: u64,
    /// Jobs that wait or are with the runtime.
    pub pending: usize,
    /// Workers that were given up because the runtime did not return.
    pub replaced_workers: u64,
    /// The time that the runtime took for all calls together.
    pub runtime_time: Duration,
    /// The time that the runtime took for the longest call.
    pub longest_call: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    requested: AtomicU64,
    told: AtomicU64,
    failed: AtomicU64,
    released: AtomicU64,
    replaced_workers: AtomicU64,
    runtime_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl Counters {
    pub(super) fn requested(&self, job: &Job) {
        self.requested.fetch_add(job.deletions(), Ordering::Relaxed);
    }

    pub(super) fn stats(&self, pending: usize) -> DeletionStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        DeletionStats {
            requested: get(&self.requested),
            told: get(&self.told),
            failed: get(&self.failed),
            released: get(&self.released),
            pending,
            replaced_workers: get(&self.replaced_workers),
            runtime_time: Duration::from_nanos(get(&self.runtime_ns)),
            longest_call: Duration::from_nanos(get(&self.longest_ns)),
        }
    }

    pub(super) fn worker_replaced(&self) {
        self.replaced_workers.fetch_add(1, Ordering::Release);
    }

    fn took(&self, elapsed: Duration) {
        let ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.runtime_ns.fetch_add(ns, Ordering::Relaxed);
        self.longest_ns.fetch_max(ns, Ordering::Relaxed);
    }
}

impl Job {
    fn deletions(&self) -> u64 {
        match self {
            Self::Delete(..) => 1,
            Self::DeleteAll(batch) => u64::try_from(batch.len()).unwrap_or(u64::MAX),
            Self::Release(_) | Self::Forget(_) => 0,
        }
    }

    /// Does it. Whatever the runtime does, this returns when the runtime does.
    pub(super) fn run(self, shared: &Arc<Shared>) {
        let counters = &shared.counters;
        let deletions = self.deletions();
        let ids = self.ids();
        let began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.call(shared)));
        counters.took(began.elapsed());
        if outcome.is_err() {
            failed(
                shared,
                &ids,
                &Status::internal("the runtime panicked when it was asked to delete an array"),
            );
        }
        counters.told.fetch_add(deletions, Ordering::Release);
    }

    fn ids(&self) -> Vec<u64> {
        match self {
            Self::Delete(_, id) => vec![*id],
            Self::DeleteAll(batch) => batch.iter().map(|(_, id)| *id).collect(),
            Self::Release(_) | Self::Forget(_) => Vec::new(),
        }
    }

    fn call(self, shared: &Arc<Shared>) {
        let ids = self.ids();
        let completion = match self {
            Self::Release(handle) => {
                drop(handle);
                shared.counters.released.fetch_add(1, Ordering::Release);
                return;
            }
            Self::Forget(parts) => {
                drop(parts);
                return;
            }
            Self::Delete(handle, _) => handle.delete(),
            Self::DeleteAll(batch) => {
                let values: Vec<ValueRef> = batch
                    .into_iter()
                    .map(|(handle, _)| handle as ValueRef)
                    .collect();
                let Some(first) = values.first() else {
                    return;
                };
                first.client().delete_values(&values)
            }
        };
        let reported = Arc::clone(shared);
        completion.on_ready(move |result: &Result<()>| {
            if let Err(status) = result {
                failed(&reported, &ids, status);
            }
        });
    }
}

/// Nobody waits for a deletion, so this is where its failure ends: in one line and a count.
fn failed(shared: &Shared, ids: &[u64], status: &Status) {
    shared.counters.failed.fetch_add(1, Ordering::Release);
    tracing::warn!(
        array = ?ids,
        code = status.code().name(),
        "the runtime failed to delete an array: {status}"
    );
}
