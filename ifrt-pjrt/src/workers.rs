//! [`Workers`]: threads for work that takes long, such as compiling.
//!
//! There are as many as the machine has processors, they are started when there is something to do,
//! and end when there is nothing left.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// Compilers recurse deeply over large programs. Only what is used is taken from the system.
const STACK_BYTES: usize = 64 << 20;

/// Runs jobs on threads of their own, in the order of arrival as far as there are threads.
pub(crate) struct Workers {
    name: &'static str,
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    running: usize,
}

impl Workers {
    pub(crate) fn new(name: &'static str) -> Arc<Self> {
        let limit = thread::available_parallelism().map_or(1, usize::from);
        Arc::new(Self {
            name,
            limit,
            state: Mutex::default(),
        })
    }

    /// Hands over a job and returns. Only a system that gives no thread makes it run here.
    pub(crate) fn submit(self: &Arc<Self>, job: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.jobs.push_back(Box::new(job));
        if state.running >= self.limit {
            return;
        }
        state.running += 1;
        drop(state);
        let own = Arc::clone(self);
        let spawned = thread::Builder::new()
            .name(self.name.to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || own.work());
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread for work that takes long: it runs in the caller");
            self.work();
        }
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            // What a job promised is broken by the unwinding, so its receiver learns of it.
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("a job of {} panicked", self.name);
            }
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        let job = state.jobs.pop_front();
        if job.is_none() {
            state.running -= 1;
        }
        job
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn all_jobs_run_on_a_bounded_number_of_threads_and_survive_panics() {
        let workers = Workers::new("test-worker");
        let (sender, receiver) = mpsc::channel();
        for number in 0..200 {
            let sender = sender.clone();
            workers.submit(move || {
                sender.send((number, thread::current().id())).unwrap();
                assert!(number % 50 != 7, "a job that panics");
            });
        }
        drop(sender);
        let mut seen: Vec<_> = receiver.iter().collect();
        assert!(seen.iter().all(|(_, id)| *id != thread::current().id()));
        seen.sort_by_key(|(number, _)| *number);
        assert!(seen.iter().map(|(number, _)| *number).eq(0..200));
    }
}
