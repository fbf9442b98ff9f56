//! The two directions of a session's stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ifrt::{Result, Status};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Streaming;

use crate::proto::xla::ifrt::proxy::{IfrtRequest, IfrtResponse};
use crate::server::service::{from_grpc, to_grpc};
use crate::server::session::reply::Outgoing;
use crate::server::session::{Inbox, Session, SessionEnds};
use crate::server::sessions::Sessions;

/// What the server sends on the stream of a session. Dropped, it ends the session.
#[derive(Debug)]
pub(crate) struct SessionStream {
    responses: mpsc::UnboundedReceiver<Outgoing>,
    session: Arc<Session>,
    sessions: Arc<Sessions>,
}

impl SessionStream {
    /// Serves a new session with the requests of its client.
    pub(super) fn new(
        sessions: &Arc<Sessions>,
        session: Arc<Session>,
        ends: SessionEnds,
        requests: Streaming<IfrtRequest>,
    ) -> Self {
        tokio::spawn(read(
            Arc::clone(sessions),
            Arc::clone(&session),
            requests,
            ends.requests,
        ));
        Self {
            responses: ends.responses,
            session,
            sessions: Arc::clone(sessions),
        }
    }
}

/// Moves requests from the stream into the queue of the session, and does nothing else: HTTP/2
/// ends connections on which too many small messages lie unread.
async fn read(
    sessions: Arc<Sessions>,
    session: Arc<Session>,
    mut requests: Streaming<IfrtRequest>,
    inbox: Inbox,
) {
    let receive = async {
        loop {
            match requests.message().await {
                Ok(Some(request)) => {
                    let size = request.encoded_len();
                    if !inbox.push(request, size).await {
                        return Err(Status::internal("the worker of the session is gone"));
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(from_grpc(&error)),
            }
        }
    };
    tokio::select! {
        reason = receive => {
            tracing::debug!(session = session.number, "the requests ended: {reason:?}");
            sessions.end(&session, reason);
        }
        () = session.until_end() => {}
    }
}

impl Stream for SessionStream {
    type Item = Result<IfrtResponse, tonic::Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let outgoing = ready!(self.responses.poll_recv(cx));
        Poll::Ready(match outgoing {
            // The room that the request took in the queue is free from here on.
            Some(Outgoing::Response(response, _room)) => Some(Ok(*response)),
            Some(Outgoing::End(reason)) => {
                self.responses.close();
                reason.err().map(|status| Err(to_grpc(&status)))
            }
            None => None,
        })
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        self.sessions
            .end(&self.session, Err(Status::cancelled("the client is gone")));
    }
}
