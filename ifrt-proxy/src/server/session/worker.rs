//! The thread that handles the requests of a session in order.

use std::sync::{Arc, mpsc};
use std::{io, thread};

use crate::server::dispatch::{self, dispatch};
use crate::server::session::context::RequestContext;
use crate::server::session::reply::Reply;
use crate::server::session::{Call, Queued, Session};

pub(super) fn start(session: &Arc<Session>, requests: mpsc::Receiver<Queued>) -> io::Result<()> {
    let session = Arc::clone(session);
    thread::Builder::new()
        .name(format!("session-{}", session.number))
        .spawn(move || {
            for queued in requests {
                if session.is_ending() {
                    return;
                }
                handle(&session, queued);
            }
        })
        .map(drop)
}

fn handle(session: &Arc<Session>, queued: Queued) {
    let metadata = queued.request.request_metadata.unwrap_or_default();
    let request = queued.request.request;
    let context = RequestContext::of_request(metadata.user_context_id, &session.ended_contexts);
    let _span = tracing::debug_span!(
        "proxy.server.request",
        session = session.number,
        op_id = metadata.op_id,
        op = dispatch::name(request.as_ref()),
        user_context = metadata.user_context_id,
    )
    .entered();
    let reply = Reply::new(
        &session.responder,
        metadata.op_id,
        context.clone(),
        request.as_ref(),
        Some(queued.room),
    );
    let call = Call {
        session: Arc::clone(session),
        context,
    };
    // A handler that panics drops its reply, which answers INTERNAL.
    let outcome = call.isolated(|| {
        dispatch(&call, request, reply);
        Ok(())
    });
    if outcome.is_err() {
        tracing::error!(
            session = session.number,
            op_id = metadata.op_id,
            "the session goes on"
        );
    }
}
