//! Host callbacks: programs that call back into the client.
//!
//! Released clients refuse them before they send anything, so no program with callbacks is
//! compiled here and no handle of a callback exists.

use ifrt::Status;

use crate::proto::xla::ifrt::proxy::{
    LoadedHostCallbackPollRequest, LoadedHostCallbackPollResponse, LoadedHostCallbackReturnRequest,
    LoadedHostCallbackReturnResponse,
};
use crate::server::session::context::Outcome;

/// Why a program with callbacks is not compiled.
pub(crate) fn unsupported(count: usize) -> Status {
    Status::unimplemented(format!(
        "the program has {count} host callbacks, which this server does not run; move calls such \
         as jax.pure_callback, io_callback and debug.print out of the compiled function"
    ))
}

/// Answers a client that waits for a callback to be called.
pub(crate) fn poll(
    request: LoadedHostCallbackPollRequest,
) -> Outcome<LoadedHostCallbackPollResponse> {
    Err(Status::not_found(format!(
        "Unknown loaded host callback handle: {}",
        request.loaded_host_callback_handle
    ))
    .into())
}

/// Answers a client that brings the result of a callback.
pub(crate) fn give_back(
    request: &LoadedHostCallbackReturnRequest,
) -> Outcome<LoadedHostCallbackReturnResponse> {
    Err(Status::not_found(format!(
        "Unknown host callback execution handle: {}",
        request.host_callback_execution_handle
    ))
    .into())
}
