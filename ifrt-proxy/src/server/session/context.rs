//! The user context of a request, and the news of its end.
//!
//! A client names with a request the place in its user's program that the request came from, and
//! keeps the traceback of that place until the server has told it that nothing refers to the
//! request any more. It counts: each request that named an id must be reported exactly once, and a
//! report too many aborts the client. Here one [`RequestContext`] stands for one request; whatever
//! lives on because of the request (arrays, stored errors, running work) holds a reference, and the
//! last one to go makes the report.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/server/ifrt_backend_user_context.h`.

use std::fmt;
use std::sync::Arc;

use ifrt::user_context::{USER_CONTEXT_PAYLOAD, UserContext, UserContextRef};
use ifrt::{Code, Status};

use crate::server::sync::Lock;

/// The ids of the contexts that have ended and were not reported yet.
#[derive(Debug, Default)]
pub(crate) struct EndedContexts(Lock<Vec<u64>>);

impl EndedContexts {
    /// Takes the ids to report them.
    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// The user context of one request.
pub(crate) struct RequestContext {
    id: u64,
    ended: Arc<EndedContexts>,
}

/// A shared [`RequestContext`].
pub(crate) type ContextRef = Arc<RequestContext>;

impl RequestContext {
    /// The context of a request that names `id`; `None` for 0, which stands for no context.
    pub(crate) fn of_request(id: u64, ended: &Arc<EndedContexts>) -> Option<ContextRef> {
        (id != 0).then(|| {
            Arc::new(Self {
                id,
                ended: Arc::clone(ended),
            })
        })
    }

    /// The same context as the runtime takes it.
    pub(crate) fn to_user_context(context: Option<&ContextRef>) -> Option<UserContextRef> {
        context.map(|context| Arc::clone(context) as UserContextRef)
    }
}

impl UserContext for RequestContext {
    fn id(&self) -> u64 {
        self.id
    }

    fn debug_string(&self) -> String {
        format!("user context {} of an IFRT proxy client", self.id)
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestContext({})", self.id)
    }
}

impl Drop for RequestContext {
    fn drop(&mut self) {
        self.ended.0.lock().push(self.id);
    }
}

/// An error together with the request that caused it.
///
/// The client finds the traceback of that request by the id in the status, so the context must not
/// end as long as the error may be reported again.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    status: Status,
    cause: Option<ContextRef>,
}

/// The result of a handler.
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// Remembers `context` as the cause, unless a cause is known already.
    pub(crate) fn caused_by(mut self, context: Option<&ContextRef>) -> Self {
        if self.cause.is_none() {
            self.cause = context.cloned();
        }
        self
    }

    /// The same error with its cause named in the status.
    ///
    /// For the answers to those who wait for a value: JAX puts the traceback of the cause into
    /// their errors. From other answers it would show the bare number.
    pub(crate) fn naming_cause(mut self) -> Self {
        if let Some(cause) = &self.cause
            && self.status.payload(USER_CONTEXT_PAYLOAD).is_none()
        {
            let id = cause.id.to_string().into_bytes();
            self.status = self.status.with_payload(USER_CONTEXT_PAYLOAD, id);
        }
        self
    }

    pub(crate) const fn status(&self) -> &Status {
        &self.status
    }

    pub(crate) fn code(&self) -> Code {
        self.status.code()
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self {
            status,
            cause: None,
        }
    }
}

#[cfg(test)]
mod tests;
