//! [`Sink`]: where handles go to be deleted, so that nobody has to wait for it.
//!
//! One queue and one worker thread per client. The worker hands deletions to the runtime in the
//! order in which they were asked for. The runtime is not trusted to be quick: freeing a large
//! array is a system call of milliseconds on some, a hang on others. A second thread watches the
//! worker; when one call takes longer than [`STUCK_AFTER`] and others wait behind it, the worker
//! is left alone with that call and a new one goes on with the queue. At most [`MAX_STUCK`] workers
//! are given up like that; beyond it the queue has to wait.
//!
//! The queue has no bound, since `delete` can neither wait nor fail. What stands in it is small.
//!
//! When the client goes away the queue is emptied, for at most [`SHUTDOWN_DEADLINE`]. After that
//! the threads are left to themselves: a runtime that hangs keeps its memory, not its user.

mod jobs;
mod worker;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, PoisonError};
use std::time::{Duration, Instant};

pub use jobs::DeletionStats;
pub(crate) use jobs::Job;

use jobs::Counters;

use crate::sync::Lock;

/// A deletion that takes longer than this does not hold up the others any more.
pub(crate) const STUCK_AFTER: Duration = Duration::from_millis(50);

/// The number of workers that may be stuck in the runtime at one time.
pub(crate) const MAX_STUCK: usize = 64;

/// How long dropping a client waits for the deletions that were asked for.
pub(crate) const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(2);

thread_local! {
    /// True on the threads of sinks, which must not wait for themselves.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Where handles go to be deleted.
#[derive(Debug)]
pub(crate) struct Sink(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Lock<State>,
    started: AtomicBool,
    /// For the worker: there is work, or the end has come.
    work: Condvar,
    /// For the watchdog: the worker has begun to work, or the end has come.
    watch: Condvar,
    /// For those who wait until something is done.
    done: Condvar,
    counters: Counters,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<(u64, Job)>,
    /// The number of the next job.
    next: u64,
    /// What is with the runtime now: by the present worker and by those that were given up.
    in_flight: Vec<u64>,
    /// When the present worker began its call.
    busy_since: Option<Instant>,
    /// The number of the present worker; others end when they come back.
    worker: u64,
    is_asleep: bool,
    /// The watchdog thread exists.
    has_watchdog: bool,
    /// The watchdog is awake.
    is_watched: bool,
    is_closed: bool,
}

impl State {
    /// True if every job with a number below `before` is done.
    fn is_done(&self, before: u64) -> bool {
        let waiting = self.queue.front().map_or(u64::MAX, |(number, _)| *number);
        let first = self.in_flight.iter().copied().min().unwrap_or(u64::MAX);
        waiting.min(first) >= before
    }
}

impl Sink {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared {
            state: Lock::default(),
            started: AtomicBool::new(false),
            work: Condvar::new(),
            watch: Condvar::new(),
            done: Condvar::new(),
            counters: Counters::default(),
        }))
    }

    /// Starts the threads unless they run. Called when the first array is made, so that no deletion
    /// has to pay for it.
    pub(crate) fn start(&self) {
        if self.0.started.load(Ordering::Relaxed) || self.0.started.swap(true, Ordering::AcqRel) {
            return;
        }
        if worker::start(&self.0).is_err() {
            // The next array tries again; until then the queue waits.
            self.0.started.store(false, Ordering::Release);
        }
    }

    /// Leaves a job for the worker. Neither waits nor fails.
    pub(crate) fn push(&self, job: Job) {
        self.start();
        self.0.counters.requested(&job);
        let wake = {
            let mut state = self.0.state.lock();
            let number = state.next;
            state.next += 1;
            state.queue.push_back((number, job));
            std::mem::take(&mut state.is_asleep)
        };
        if wake {
            self.0.work.notify_one();
        }
    }

    /// Waits until the runtime has been told of everything that was pushed before; false if
    /// `timeout` passes first, or on a thread that would wait for itself.
    pub(crate) fn drain(&self, timeout: Duration) -> bool {
        let mut state = self.0.state.lock();
        let before = state.next;
        let deadline = Instant::now() + timeout;
        while !state.is_done(before) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || IS_WORKER.get() {
                return false;
            }
            self.0.work.notify_one();
            state = self
                .0
                .done
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }

    /// True if something was pushed that the runtime has not been told yet.
    pub(crate) fn is_pending(&self) -> bool {
        let state = self.0.state.lock();
        !state.is_done(state.next)
    }

    pub(crate) fn stats(&self) -> DeletionStats {
        let pending = {
            let state = self.0.state.lock();
            state.queue.len() + state.in_flight.len()
        };
        self.0.counters.stats(pending)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if !self.drain(SHUTDOWN_DEADLINE) {
            tracing::warn!(
                pending = self.stats().pending,
                "the runtime did not finish deleting arrays before its client went away"
            );
        }
        self.0.state.lock().is_closed = true;
        self.0.work.notify_all();
        self.0.watch.notify_all();
    }
}
