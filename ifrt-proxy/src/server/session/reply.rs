//! Responses: exactly one per request, through one writer.
//!
//! The writer numbers the responses. A client applies the reports of ended user contexts in the
//! order of these numbers, and waits at a number until the response with it is no longer in use.
//! It never acknowledges the response to `init`, which it keeps, nor those to the requests that it
//! sends in batches. Only responses that it acknowledges get a number, so the reports flow.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client/rpc_helper.cc`, which is the reader of the numbers.

use std::sync::Arc;

use ifrt::serdes::status_to_proto;
use ifrt::{Result, Status};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use crate::proto::xla::ifrt::proxy::ifrt_response::Response;
use crate::proto::xla::ifrt::proxy::{IfrtResponse, ResponseMetadata};
use crate::server::session::context::{ContextRef, EndedContexts, Failure, Outcome};
use crate::server::session::tables::DELETION_DONE;
use crate::server::sync::Lock;

/// What the stream of responses carries.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// A response, and the room that its request took in the queue.
    Response(Box<IfrtResponse>, Option<OwnedSemaphorePermit>),
    /// The end of the stream, with an error unless the client wanted it.
    End(Result<()>),
}

/// The one writer of a session.
#[derive(Debug)]
pub(crate) struct Responder {
    sender: mpsc::UnboundedSender<Outgoing>,
    /// The number of the next response. Held while reports are taken, so that a context which ends
    /// after a response was numbered is reported under a higher number.
    next_number: Lock<i64>,
    ended: Arc<EndedContexts>,
}

/// Whether a response takes part in the numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbering {
    /// The client keeps it as long as the session.
    Kept,
    /// The client acknowledges it.
    Numbered,
    /// The client never acknowledges it.
    Batched,
}

impl Numbering {
    fn of(request: Option<&Request>) -> Self {
        match request {
            Some(Request::InitRequest(_)) => Self::Kept,
            Some(Request::DeleteArrayRequest(_) | Request::DestructArrayRequest(_)) => {
                Self::Batched
            }
            Some(Request::CheckFutureRequest(check)) if check.future_handle == DELETION_DONE => {
                Self::Batched
            }
            _ => Self::Numbered,
        }
    }
}

impl Responder {
    pub(crate) fn new(
        sender: mpsc::UnboundedSender<Outgoing>,
        ended: Arc<EndedContexts>,
    ) -> Arc<Self> {
        Arc::new(Self {
            sender,
            next_number: Lock::new(0),
            ended,
        })
    }

    /// Ends the stream of responses.
    pub(crate) fn end(&self, reason: Result<()>) {
        self.deliver(Outgoing::End(reason));
    }

    fn send(
        &self,
        mut response: IfrtResponse,
        numbering: Numbering,
        room: Option<OwnedSemaphorePermit>,
    ) {
        let has_body = response.response.is_some();
        if let Some(metadata) = &mut response.response_metadata {
            match numbering {
                Numbering::Kept => metadata.seq_num = -1,
                Numbering::Numbered if has_body => {
                    (metadata.seq_num, metadata.destroyed_user_context_ids) = self.number();
                }
                Numbering::Numbered | Numbering::Batched => {}
            }
        }
        self.deliver(Outgoing::Response(Box::new(response), room));
    }

    /// The number of the next response and the reports that go with it.
    fn number(&self) -> (i64, Vec<u64>) {
        let mut next_number = self.next_number.lock();
        let number = *next_number;
        *next_number += 1;
        (number, self.ended.take())
    }

    fn deliver(&self, outgoing: Outgoing) {
        // The receiver is gone when the client is; then nobody waits for the response.
        if self.sender.send(outgoing).is_err() {
            tracing::trace!("a response was dropped because the client is gone");
        }
    }
}

/// The obligation to answer one request.
///
/// Dropped unanswered it answers INTERNAL, so that no client waits for ever.
#[derive(Debug)]
pub(crate) struct Reply(Option<Pending>);

#[derive(Debug)]
struct Pending {
    responder: Arc<Responder>,
    op_id: u64,
    context: Option<ContextRef>,
    numbering: Numbering,
    room: Option<OwnedSemaphorePermit>,
}

impl Reply {
    pub(crate) fn new(
        responder: &Arc<Responder>,
        op_id: u64,
        context: Option<ContextRef>,
        request: Option<&Request>,
        room: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self(Some(Pending {
            responder: Arc::clone(responder),
            op_id,
            context,
            numbering: Numbering::of(request),
            room,
        }))
    }

    /// Answers the request.
    pub(crate) fn send(mut self, outcome: Outcome<Response>) {
        if let Some(pending) = self.0.take() {
            pending.send(outcome);
        }
    }
}

impl Pending {
    fn send(self, outcome: Outcome<Response>) {
        let (status, response) = match outcome {
            Ok(response) => (None, Some(response)),
            Err(failure) => {
                tracing::debug!(op_id = self.op_id, code = %failure.code(), "{}", failure.status().message());
                (Some(status_to_proto(failure.status())), None)
            }
        };
        let response = IfrtResponse {
            response_metadata: Some(ResponseMetadata {
                op_id: self.op_id,
                status,
                seq_num: 0,
                destroyed_user_context_ids: Vec::new(),
            }),
            response,
        };
        self.responder.send(response, self.numbering, self.room);
        // The context ends only now, so a client never learns of its end before the error that
        // names it.
        drop(self.context);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(pending) = self.0.take() {
            let why = if std::thread::panicking() {
                "the server panicked while it handled this request"
            } else {
                "the server gave up this request without an answer"
            };
            pending.send(Err(Failure::from(Status::internal(why))));
        }
    }
}
