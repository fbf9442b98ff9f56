//! Futures: whether something that was started is done.

use crate::proto::xla::ifrt::proxy::ifrt_response::Response;
use crate::proto::xla::ifrt::proxy::{
    CheckFutureRequest, CheckFutureResponse, LoadedExecutableFetchExecuteResultRequest,
    LoadedExecutableFetchExecuteResultResponse,
};
use crate::server::session::Call;
use crate::server::session::context::Failure;
use crate::server::session::reply::Reply;
use crate::server::session::tables::{DELETION_DONE, EXECUTABLE_READY, FutureKind};

/// Answers when the future is ready. A future is read once.
pub(crate) fn check_future(call: &Call, request: CheckFutureRequest, reply: Reply) {
    let response = || Response::CheckFutureResponse(CheckFutureResponse {});
    match request.future_handle {
        DELETION_DONE | EXECUTABLE_READY => reply.send(Ok(response())),
        handle => answer_when_ready(call, FutureKind::Future, handle, response, reply),
    }
}

/// Answers when the execution is done.
pub(crate) fn fetch_execute_result(
    call: &Call,
    request: LoadedExecutableFetchExecuteResultRequest,
    reply: Reply,
) {
    let response = || {
        Response::LoadedExecutableFetchExecuteResultResponse(
            LoadedExecutableFetchExecuteResultResponse::default(),
        )
    };
    let handle = request.result_status_handle;
    answer_when_ready(call, FutureKind::ExecuteResult, handle, response, reply);
}

fn answer_when_ready(
    call: &Call,
    kind: FutureKind,
    handle: u64,
    response: impl FnOnce() -> Response + Send + 'static,
    reply: Reply,
) {
    match call.session.tables.take_future(kind, handle) {
        Err(failure) => reply.send(Err(failure)),
        Ok(future) => {
            let context = future.context;
            future.completion.on_ready(move |result| {
                reply.send(match result {
                    Ok(()) => Ok(response()),
                    Err(error) => Err(Failure::from(error.clone())
                        .caused_by(context.as_ref())
                        .naming_cause()),
                });
            });
        }
    }
}
