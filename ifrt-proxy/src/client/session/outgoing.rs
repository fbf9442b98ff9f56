//! [`Outgoing`]: the queue of a session, as the stream that the transport writes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_stream::Stream;

use super::Session;
use crate::proto::xla::ifrt::proxy::IfrtRequest;

/// The requests of a session in order. Ends with the session.
#[derive(Debug)]
pub(in crate::client) struct Outgoing(pub(in crate::client) Arc<Session>);

impl Stream for Outgoing {
    type Item = IfrtRequest;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<IfrtRequest>> {
        let mut state = self.0.lock();
        if state.ended.is_some() {
            return Poll::Ready(None);
        }
        if let Some(request) = state.queue.pop_front() {
            return Poll::Ready(Some(request));
        }
        state.writer = Some(cx.waker().clone());
        Poll::Pending
    }
}
