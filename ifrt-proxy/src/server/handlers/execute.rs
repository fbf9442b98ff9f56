//! Running executables, and forgetting them.
//!
//! A client does not know the outputs of an executable before it has run it once, so the first run
//! makes its handles on the server and describes the outputs. For later runs the client makes the
//! handles, waits for nothing, and needs no description.

use ifrt::serdes::{dtype_to_proto, execute_options_from_proto, shape_to_proto, sharding_to_proto};
use ifrt::{Array, ArrayRef, Completion, ExecuteOptions, ExecuteResult, Result, Status};

use crate::proto::xla::ifrt::proxy::loaded_executable_execute_response::Output;
use crate::proto::xla::ifrt::proxy::{
    LoadedExecutableDeleteRequest, LoadedExecutableDeleteResponse, LoadedExecutableDestructRequest,
    LoadedExecutableDestructResponse, LoadedExecutableExecuteRequest,
    LoadedExecutableExecuteResponse, LoadedExecutableIsDeletedRequest,
    LoadedExecutableIsDeletedResponse,
};
use crate::server::handlers::copy::device_list;
use crate::server::handlers::results::{check_handles, store, store_failure};
use crate::server::session::Call;
use crate::server::session::context::Outcome;
use crate::server::session::deleter::Doomed;
use crate::server::session::tables::{FutureKind, KnownFuture};

/// Enqueues a run.
pub(crate) fn execute(
    call: &Call,
    request: &LoadedExecutableExecuteRequest,
) -> Outcome<LoadedExecutableExecuteResponse> {
    let (handles, status_handle) = (&request.result_array_handle, request.result_status_handle);
    let tables = &call.session.tables;
    let status_kind = call.session.execute_status_kind();
    let status_checked = match status_handle {
        0 => Ok(()),
        handle => tables.check_new_future(status_kind, handle),
    };
    let handles_checked = check_handles(call, handles);
    let has_handles = handles_checked.is_ok();
    let ran = status_checked
        .clone()
        .and(handles_checked)
        .and_then(|()| call.isolated(|| run(call, request)));
    match ran {
        Ok(run) => Ok(store_run(call, request, run)),
        Err(failure) => {
            let failure = failure.caused_by(call.context.as_ref());
            if has_handles {
                store_failure(call, handles, &failure);
            }
            if status_handle != 0 && status_checked.is_ok() {
                let completion = Completion::ready(Err(failure.status().clone()));
                let context = call.context.clone();
                let future = KnownFuture {
                    completion,
                    context,
                };
                tables.insert_future(status_kind, status_handle, future);
            }
            Err(failure)
        }
    }
}

/// A run that is under way.
struct Run {
    status: Option<Completion>,
    outputs: Vec<ArrayRef>,
    /// What the outputs are; empty if the client knows.
    described: Vec<Output>,
}

fn run(call: &Call, request: &LoadedExecutableExecuteRequest) -> Outcome<Run> {
    let tables = &call.session.tables;
    let executable = tables.executable(request.loaded_executable_handle)?;
    let args = tables.arrays(&request.args_handles)?;
    let options = match &request.execute_options {
        Some(options) => execute_options_from_proto(options)?,
        None => ExecuteOptions::default(),
    };
    if request.result_status_handle != 0 && !options.fill_status {
        return Err(Status::internal(
            "the request has a handle for the status of the run but does not ask for the status",
        )
        .into());
    }
    let devices = device_list(call, &request.device_ids)?;
    let result = executable.execute(&args, &options, devices.as_ref())?;
    let ExecuteResult {
        status, outputs, ..
    } = result;
    let status = match (options.fill_status, status) {
        (false, _) => None,
        (true, Some(status)) => Some(status),
        (true, None) => {
            return Err(Status::internal("the runtime gave no status of the run").into());
        }
    };
    let handles = &request.result_array_handle;
    if !handles.is_empty() && handles.len() != outputs.len() {
        return Err(Status::invalid_argument(format!(
            "the request has {} handles for the {} outputs of {}",
            handles.len(),
            outputs.len(),
            executable.name()
        ))
        .into());
    }
    let described = if handles.is_empty() {
        outputs
            .iter()
            .map(|output| describe(call, &**output))
            .collect::<Result<_>>()?
    } else {
        Vec::new()
    };
    Ok(Run {
        status,
        outputs,
        described,
    })
}

fn describe(call: &Call, output: &dyn Array) -> Result<Output> {
    Ok(Output {
        dtype: Some(dtype_to_proto(output.dtype())),
        shape: Some(shape_to_proto(output.shape())),
        sharding: Some(sharding_to_proto(output.sharding(), call.session.serdes())?),
        array_handle: 0,
    })
}

fn store_run(
    call: &Call,
    request: &LoadedExecutableExecuteRequest,
    run: Run,
) -> LoadedExecutableExecuteResponse {
    let tables = &call.session.tables;
    let kind = call.session.execute_status_kind();
    let status_handle = match (run.status, request.result_status_handle) {
        (None, _) => 0,
        (Some(completion), handle) => {
            let context = call.context.clone();
            let future = KnownFuture {
                completion,
                context,
            };
            if handle == 0 {
                tables.add_future(kind, future)
            } else {
                tables.insert_future(kind, handle, future);
                handle
            }
        }
    };
    let handles = store(call, &request.result_array_handle, run.outputs);
    let mut outputs = run.described;
    for (output, handle) in outputs.iter_mut().zip(handles) {
        output.array_handle = handle;
    }
    LoadedExecutableExecuteResponse {
        status_handle,
        outputs,
    }
}

/// The contract has no deletion of executables any more; the future says so.
pub(crate) fn delete(
    call: &Call,
    request: LoadedExecutableDeleteRequest,
) -> Outcome<LoadedExecutableDeleteResponse> {
    let tables = &call.session.tables;
    drop(tables.executable(request.loaded_executable_handle)?);
    let future = KnownFuture {
        completion: Completion::ready(Err(Status::unimplemented(
            "executables are not deleted; they go when their last user does",
        ))),
        context: call.context.clone(),
    };
    Ok(LoadedExecutableDeleteResponse {
        future_handle: tables.add_future(FutureKind::Future, future),
    })
}

/// An executable that has a handle is not deleted.
pub(crate) fn is_deleted(
    call: &Call,
    request: LoadedExecutableIsDeletedRequest,
) -> Outcome<LoadedExecutableIsDeletedResponse> {
    let tables = &call.session.tables;
    drop(tables.executable(request.loaded_executable_handle)?);
    Ok(LoadedExecutableIsDeletedResponse { is_deleted: false })
}

/// Forgets an executable. Runs that are under way keep it alive.
pub(crate) fn destruct(
    call: &Call,
    request: LoadedExecutableDestructRequest,
) -> Outcome<LoadedExecutableDestructResponse> {
    let executable = call
        .session
        .tables
        .destruct_executable(request.loaded_executable_handle)?;
    call.session.deleter.push([Doomed::Executable(executable)]);
    Ok(LoadedExecutableDestructResponse {})
}
