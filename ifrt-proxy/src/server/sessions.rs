//! The sessions of a server.

use std::collections::HashMap;
use std::sync::Arc;

use ifrt::{Result, Status};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::server::introduction::Introduction;
use crate::server::session::{Session, SessionEnds, Shared};
use crate::server::sync::Lock;

#[derive(Debug)]
struct Open {
    /// Set when the server stops: no new sessions.
    stopped: bool,
    /// The number of the next session, in the order of their beginning.
    next_number: u64,
    /// By the secret that the client was told.
    sessions: HashMap<u64, Arc<Session>>,
}

/// The sessions of a server.
#[derive(Debug)]
pub(crate) struct Sessions {
    shared: Arc<Shared>,
    open: Lock<Open>,
    /// The number of sessions whose memory is not yet free.
    unfreed: watch::Sender<usize>,
}

impl Sessions {
    pub(crate) fn new(shared: Shared) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::new(shared),
            open: Lock::new(Open {
                stopped: false,
                next_number: 1,
                sessions: HashMap::new(),
            }),
            unfreed: watch::Sender::new(0),
        })
    }

    /// Opens a session; its blocking work runs on `background`.
    ///
    /// # Errors
    /// UNAUTHENTICATED without the token of the server; those of
    /// [`SharedDirectory::below`](crate::server::shared_directory::SharedDirectory::below) for the
    /// client's directory; UNAVAILABLE when the server stops; RESOURCE_EXHAUSTED beyond the limit of sessions or
    /// without threads; INTERNAL if the system has no random numbers.
    pub(crate) fn open(
        &self,
        introduction: &Introduction,
        background: Handle,
    ) -> Result<(Arc<Session>, SessionEnds)> {
        introduction.authenticate(self.shared.token.as_ref())?;
        let directory = match (&self.shared.directory, &introduction.directory) {
            (Some(shared), Some(name)) => Some(shared.below(name)?),
            (shared, _) => shared.clone(),
        };
        let mut open = self.open.lock();
        if open.stopped {
            return Err(stopping());
        }
        let limit = self.shared.limits.max_sessions;
        if open.sessions.len() >= limit {
            return Err(Status::resource_exhausted(format!(
                "the server has its limit of {limit} sessions"
            )));
        }
        let version = introduction.version;
        let secret = new_secret(&open.sessions)?;
        let number = open.next_number;
        let started = Session::start(number, secret, version, directory, &self.shared, background);
        let (session, ends) = started.map_err(|error| {
            Status::resource_exhausted(format!("the server cannot start a session: {error}"))
        })?;
        open.next_number += 1;
        open.sessions.insert(secret, Arc::clone(&session));
        self.unfreed.send_modify(|count| *count += 1);
        drop(open);
        tracing::info!("session {number} opened: {version}");
        Ok((session, ends))
    }

    /// The session whose client was told this id.
    ///
    /// # Errors
    /// NOT_FOUND if there is none (any more).
    pub(crate) fn get(&self, secret: u64) -> Result<Arc<Session>> {
        self.open
            .lock()
            .sessions
            .get(&secret)
            .cloned()
            .ok_or_else(|| Status::not_found(format!("Session id {secret} does not exist")))
    }

    /// Ends a session. Only the first call for it does anything.
    pub(crate) fn end(self: &Arc<Self>, session: &Arc<Session>, reason: Result<()>) {
        let known = self.open.lock().sessions.remove(&session.secret);
        drop(known);
        let sessions = Arc::clone(self);
        session.end(reason, move || {
            sessions.unfreed.send_modify(|count| *count -= 1);
        });
    }

    /// Ends all sessions and lets no new one begin.
    pub(crate) fn stop(self: &Arc<Self>) {
        let mut open = self.open.lock();
        open.stopped = true;
        let sessions: Vec<_> = open.sessions.values().cloned().collect();
        drop(open);
        for session in sessions {
            self.end(&session, Err(stopping()));
        }
    }

    /// Completes when the memory of all sessions is free.
    pub(crate) async fn until_freed(&self) {
        let mut unfreed = self.unfreed.subscribe();
        // The sender lives as long as this.
        drop(unfreed.wait_for(|count| *count == 0).await);
    }
}

/// An id that no other client can guess: uploads and downloads name their session by nothing else.
fn new_secret(taken: &HashMap<u64, Arc<Session>>) -> Result<u64> {
    loop {
        let secret = getrandom::u64().map_err(|error| {
            Status::internal(format!("the system has no random numbers: {error}"))
        })?;
        if secret != 0 && !taken.contains_key(&secret) {
            return Ok(secret);
        }
    }
}

fn stopping() -> Status {
    Status::unavailable("the server is shutting down")
}
