//! The threads of a sink: one that works, one that watches it.

use std::io;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::{IS_WORKER, MAX_STUCK, STUCK_AFTER, Shared, State};

/// How long the worker naps before it looks for work again.
const NAP: Duration = Duration::from_millis(1);

/// The naps without work before it goes to sleep.
const NAPS: u32 = 2;

/// Starts the first worker.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    spawn(shared, "jax-delete", |shared| work(shared, 0))
}

fn spawn(shared: &Arc<Shared>, name: &str, run: fn(&Arc<Shared>)) -> io::Result<()> {
    let own = Arc::clone(shared);
    let result = Builder::new().name(name.into()).spawn(move || {
        IS_WORKER.set(true);
        run(&own);
    });
    result
        .inspect_err(|error| {
            tracing::error!(%error, "no thread for deleting arrays could be started");
        })
        .map(drop)
}

/// Takes jobs from the queue for as long as `number` is the present worker.
fn work(shared: &Arc<Shared>, number: u64) {
    let mut state = shared.state.lock();
    let mut naps = 0;
    while state.worker == number {
        let Some((job_number, job)) = state.queue.pop_front() else {
            if state.is_closed {
                return;
            }
            state = rest(shared, state, &mut naps);
            continue;
        };
        naps = NAPS;
        state.in_flight.push(job_number);
        state.busy_since = Some(Instant::now());
        let is_watched = std::mem::replace(&mut state.is_watched, true);
        let has_watchdog = std::mem::replace(&mut state.has_watchdog, true);
        drop(state);
        if !has_watchdog {
            let started = spawn(shared, "jax-delete-watch", watch).is_ok();
            shared.state.lock().has_watchdog = started;
        } else if !is_watched {
            shared.watch.notify_one();
        }

        job.run(shared);

        state = shared.state.lock();
        state.in_flight.retain(|other| *other != job_number);
        if state.worker == number {
            state.busy_since = None;
        }
        shared.done.notify_all();
    }
}

/// Waits for work: first in short naps that nobody has to end, then until somebody does.
///
/// Waking a thread is by far the most expensive part of a deletion for the one who asks for it.
/// Whoever deletes often finds the worker napping and pays nothing.
fn rest<'a>(
    shared: &Shared,
    mut state: MutexGuard<'a, State>,
    naps: &mut u32,
) -> MutexGuard<'a, State> {
    if let Some(left) = naps.checked_sub(1) {
        *naps = left;
        return shared
            .work
            .wait_timeout(state, NAP)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
    state.is_asleep = true;
    let mut state = shared
        .work
        .wait(state)
        .unwrap_or_else(PoisonError::into_inner);
    // A wakeup without a reason leaves the flag set; then nobody knows that we are awake.
    state.is_asleep = false;
    state
}

/// Replaces the worker when the runtime does not return and others wait behind it.
///
/// Looks at it every [`STUCK_AFTER`] while there is work, and sleeps otherwise.
fn watch(shared: &Arc<Shared>) {
    let mut state = shared.state.lock();
    let mut last_seen = state.next;
    while !state.is_closed {
        if let Some(number) = state.replace_stuck_worker() {
            drop(state);
            shared.counters.worker_replaced();
            tracing::warn!(
                "the runtime has not returned from a deletion for {STUCK_AFTER:?}; going on \
                 without it"
            );
            let own = Arc::clone(shared);
            let spawned = Builder::new().name("jax-delete".into()).spawn(move || {
                IS_WORKER.set(true);
                work(&own, number);
            });
            if let Err(error) = spawned {
                tracing::error!(%error, "no thread for deleting arrays could be started");
                // Somebody has to do the work: from now on this thread, unwatched.
                work(shared, number);
                return;
            }
            state = shared.state.lock();
        }
        let is_idle = state.busy_since.is_none() && state.next == last_seen;
        last_seen = state.next;
        state = if is_idle {
            sleep(shared, state)
        } else {
            shared
                .watch
                .wait_timeout(state, STUCK_AFTER)
                .unwrap_or_else(PoisonError::into_inner)
                .0
        };
    }
}

/// Sleeps until the worker has something to do.
fn sleep<'a>(shared: &Shared, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    state.is_watched = false;
    while !state.is_watched && !state.is_closed {
        state = shared
            .watch
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner);
    }
    state
}

impl State {
    /// Gives up the present worker if it is stuck; gives the number of its successor.
    fn replace_stuck_worker(&mut self) -> Option<u64> {
        let is_stuck = self
            .busy_since
            .is_some_and(|since| since.elapsed() >= STUCK_AFTER);
        if !is_stuck || self.queue.is_empty() || self.in_flight.len() > MAX_STUCK {
            return None;
        }
        self.busy_since = None;
        self.worker += 1;
        Some(self.worker)
    }
}
