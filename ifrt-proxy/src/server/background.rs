//! [`Background`]: a server in a program that has no executor.

use std::fmt;
use std::thread::{self, JoinHandle};

use ifrt::{Result, Status};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::{ListenAddress, Listener, Server};

/// A server that runs until this is dropped or stopped.
#[must_use = "the server stops when this is dropped"]
pub struct Background {
    address: ListenAddress,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Server {
    /// Serves clients at `address` on threads of its own.
    ///
    /// # Blocking
    /// Until the server listens.
    ///
    /// # Errors
    /// Those of [`Listener::bind`]; RESOURCE_EXHAUSTED if the system has no thread left.
    pub fn in_background(self, address: &ListenAddress) -> Result<Background> {
        let failed = |error: std::io::Error| {
            Status::resource_exhausted(format!("the server cannot be started: {error}"))
        };
        let runtime = Runtime::new().map_err(failed)?;
        let listener = runtime.block_on(Listener::bind(address))?;
        let address = listener.address().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new()
            .name("ifrt-proxy-server".to_owned())
            .spawn(move || {
                runtime.block_on(self.serve(vec![listener], async {
                    // An error is the sign that the sender is gone, which is the signal too.
                    drop(stopped.await);
                }))
            })
            .map_err(failed)?;
        Ok(Background {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Background {
    /// Where clients find the server.
    pub const fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// Ends all sessions and waits until what they had is freed, as long as the limits of the server
    /// say.
    ///
    /// # Errors
    /// INTERNAL if serving has failed.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        drop(self.stop.take());
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(served)) => served,
            Some(Err(_panic)) => Err(Status::internal("the thread of the server has panicked")),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Err(status) = self.end() {
            tracing::warn!(%status, "the server did not end well");
        }
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
