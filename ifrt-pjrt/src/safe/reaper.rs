//! [`Reaper`]: the thread that frees what may take long to free.
//!
//! Freeing 64 MiB is a system call of milliseconds; destroying a client waits for all running work.
//! Neither is acceptable in `delete()`, in a destructor or in a callback of the plugin, where
//! destroying the client would even deadlock. So they are handed to one thread per client, which
//! frees in the order of arrival and ends with the client.
//!
//! Waking a thread costs the one who wakes it more than all the rest of a deletion, and on a busy
//! machine the woken thread may take its place for as long as it has work. So the thread looks for
//! jobs by itself for a while before it sleeps, and never begins one at the moment it is woken.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ifrt::{Result, Status};

use super::exit::Pass;

type Job = Box<dyn FnOnce() + Send>;

/// How long the thread waits before it looks for jobs again.
const PAUSE: Duration = Duration::from_millis(1);

/// How often it looks before it sleeps until it is woken.
const LOOKS: u32 = 20;

/// Hands jobs to a thread of their own.
#[derive(Debug)]
pub(crate) struct Reaper(Arc<Queue>);

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// The last job has been given.
    closed: bool,
    /// The thread sleeps until it is woken; otherwise it looks for jobs by itself.
    asleep: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: impl FnOnce() + Send + 'static, close: bool) {
        let Some(pass) = Pass::take() else {
            // The process is ending. What the job owns must not be destroyed here either.
            let _kept = std::mem::ManuallyDrop::new(job);
            return;
        };
        let job = move || {
            job();
            drop(pass);
        };
        let mut state = self.lock();
        state.jobs.push_back(Box::new(job));
        state.closed |= close;
        let asleep = std::mem::take(&mut state.asleep);
        drop(state);
        if asleep {
            self.arrived.notify_one();
        }
    }

    /// All waiting jobs; `None` if there will be no more.
    fn take(&self) -> Option<VecDeque<Job>> {
        let mut looks = LOOKS;
        let mut state = self.lock();
        loop {
            if !state.jobs.is_empty() {
                return Some(std::mem::take(&mut state.jobs));
            }
            if state.closed {
                return None;
            }
            if looks == 0 {
                state.asleep = true;
                while state.asleep {
                    state = self
                        .arrived
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                looks = LOOKS;
            }
            looks -= 1;
            drop(state);
            // Also after being woken: the system may have put this thread in the place of the one
            // that handed over the job, which should go on first.
            thread::sleep(PAUSE);
            state = self.lock();
        }
    }
}

impl Reaper {
    /// Starts the thread.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the system gives no thread.
    pub(crate) fn start() -> Result<Self> {
        let queue = Arc::new(Queue::default());
        let own = Arc::clone(&queue);
        // The thread is not joined: it ends after the job that destroys the client.
        thread::Builder::new()
            .name("pjrt-reaper".to_owned())
            .spawn(move || {
                while let Some(jobs) = own.take() {
                    jobs.into_iter().for_each(run);
                }
            })
            .map(drop)
            .map_err(|error| {
                Status::resource_exhausted(format!(
                    "cannot start the thread that frees device memory: {error}"
                ))
            })?;
        Ok(Self(queue))
    }

    /// Hands over a job. Never blocks.
    pub(crate) fn push(&self, job: impl FnOnce() + Send + 'static) {
        self.0.push(job, false);
    }

    /// Hands over the last job; the thread ends after it.
    pub(crate) fn close(&self, job: impl FnOnce() + Send + 'static) {
        self.0.push(job, true);
    }
}

/// One bad job must not keep the memory behind it.
fn run(job: Job) {
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("a job of the reaper thread panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn jobs_run_in_order_on_one_other_thread_and_survive_panics() {
        let reaper = Reaper::start().unwrap();
        let (sender, receiver) = mpsc::channel();
        for number in 0..100 {
            let sender = sender.clone();
            reaper.push(move || {
                sender.send((number, thread::current().id())).unwrap();
                assert!(number % 10 != 3, "a job that panics");
            });
        }
        reaper.close(move || drop(sender));
        let seen: Vec<_> = receiver.iter().collect();
        assert!(seen.iter().map(|(number, _)| *number).eq(0..100));
        assert!(
            seen.iter()
                .all(|(_, id)| *id == seen[0].1 && *id != thread::current().id())
        );
    }

    /// The thread holds the queue; once it has ended, only the reaper does.
    #[test]
    fn the_thread_ends_with_the_last_job() {
        let reaper = Reaper::start().unwrap();
        let queue = Arc::downgrade(&reaper.0);
        reaper.close(|| {});
        drop(reaper);
        while queue.strong_count() > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn a_slow_job_does_not_block_the_giver() {
        let reaper = Reaper::start().unwrap();
        let (hold, held) = mpsc::channel::<()>();
        let (done, finished) = mpsc::channel();
        reaper.push(move || held.recv().unwrap());
        for _ in 0..1000 {
            let done = done.clone();
            reaper.push(move || done.send(()).unwrap());
        }
        assert_eq!(finished.try_recv(), Err(mpsc::TryRecvError::Empty));
        hold.send(()).unwrap();
        reaper.close(|| {});
        drop(done);
        assert_eq!(finished.iter().count(), 1000);
    }
}
