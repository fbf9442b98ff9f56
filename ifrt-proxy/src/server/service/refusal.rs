//! What a client gets that may not have a session.
//!
//! A released client shows its user the answer to its first request, but not the error with which a
//! stream ends. So that request is answered with the reason, and then the stream ends with it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ifrt::Status;
use ifrt::serdes::status_to_proto;
use tokio::time::Sleep;
use tokio_stream::Stream;
use tonic::Streaming;

use crate::proto::xla::ifrt::proxy::{IfrtRequest, IfrtResponse, ResponseMetadata};
use crate::server::service::to_grpc;

/// How long a refused client may take to ask something. A stranger must not hold on to streams.
const DEADLINE: Duration = Duration::from_secs(10);

/// The stream of a session that was refused.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Gone when the first request is answered.
    requests: Option<Streaming<IfrtRequest>>,
    /// Gone when the stream has ended.
    reason: Option<Status>,
    deadline: Pin<Box<Sleep>>,
}

impl Refusal {
    pub(super) fn new(requests: Streaming<IfrtRequest>, reason: Status) -> Self {
        Self {
            requests: Some(requests),
            reason: Some(reason),
            deadline: Box::pin(tokio::time::sleep(DEADLINE)),
        }
    }
}

impl Stream for Refusal {
    type Item = Result<IfrtResponse, tonic::Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let (Some(requests), Some(reason)) = (&mut this.requests, &this.reason) {
            let request = match Pin::new(requests).poll_next(cx) {
                Poll::Ready(request) => request,
                Poll::Pending => {
                    ready!(this.deadline.as_mut().poll(cx));
                    None
                }
            };
            let response = request.and_then(Result::ok).map(|request| IfrtResponse {
                response_metadata: Some(ResponseMetadata {
                    op_id: request.request_metadata.unwrap_or_default().op_id,
                    status: Some(status_to_proto(reason)),
                    seq_num: -1,
                    destroyed_user_context_ids: Vec::new(),
                }),
                response: None,
            });
            this.requests = None;
            if let Some(response) = response {
                return Poll::Ready(Some(Ok(response)));
            }
        }
        Poll::Ready(this.reason.take().map(|reason| Err(to_grpc(&reason))))
    }
}
