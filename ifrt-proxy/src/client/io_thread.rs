//! Threads that do nothing but input and output.
//!
//! The control stream and the host data have a thread and a connection each: otherwise a large
//! transfer would make every small message wait.

use std::thread::{self, ThreadId};

use ifrt::{Result, Status};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A thread with an executor, until this is dropped. Nobody waits for its end.
#[derive(Debug)]
pub(super) struct IoThread {
    handle: Handle,
    id: ThreadId,
    /// Dropping it stops the thread.
    _stop: oneshot::Sender<()>,
}

impl IoThread {
    /// # Errors
    /// RESOURCE_EXHAUSTED if the system has no thread left.
    pub(super) fn start(name: &str) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Status::resource_exhausted(format!("the thread {name} cannot be started: {error}"))
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                // An error is the sign that the sender is gone, which is the signal.
                runtime.block_on(async { drop(stopped.await) });
                // A name that is still being resolved must not hold the thread.
                runtime.shutdown_background();
            })
            .map_err(failed)?;
        Ok(Self {
            handle,
            id: thread.thread().id(),
            _stop: stop,
        })
    }

    pub(super) const fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(super) const fn id(&self) -> ThreadId {
        self.id
    }
}
