//! Executions.
//!
//! # Donation
//! A donated argument counts as deleted from the moment in which the execution is sent. An execution
//! that is waited for donates when the server has taken it, so one that is refused leaves its
//! arguments as they were.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client/executable.cc`, `LoadedExecutable::Execute`.

use std::sync::Arc;

use ifrt::serdes::{
    dtype_from_proto, execute_options_to_proto, shape_from_proto, sharding_from_proto,
};
use ifrt::{
    ArrayRef, ArraySpec, Completion, DeviceList, ExecuteOptions, ExecuteResult, Result, Status,
};

use super::super::array::ProxyArray;
use super::super::life::Use;
use super::super::make::make;
use super::super::response::body;
use super::ProxyExecutable;
use super::plan::Plan;
use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use crate::proto::xla::ifrt::proxy::loaded_executable_execute_response::Output;
use crate::proto::xla::ifrt::proxy::{
    CheckFutureRequest, LoadedExecutableExecuteRequest, LoadedExecutableExecuteResponse,
    LoadedExecutableFetchExecuteResultRequest,
};
use crate::version::FETCH_EXECUTE_RESULT;

const OPERATION: &str = "Execute";

/// The handles of the outputs that the server may make. No program has as many.
const MAX_OUTPUTS: usize = 1 << 20;

/// See [`ifrt::LoadedExecutable::execute`].
pub(super) fn execute(
    executable: &ProxyExecutable,
    args: &[ArrayRef],
    options: &ExecuteOptions,
    devices: Option<&DeviceList>,
) -> Result<ExecuteResult> {
    let client = &executable.client;
    let inputs = ProxyArray::all_of(client, args)?;
    match (&executable.devices, devices) {
        (Some(_), Some(_)) => {
            return Err(Status::invalid_argument(
                "only portable executables take devices for a run",
            ));
        }
        (None, None) => {
            return Err(Status::invalid_argument(
                "a portable executable needs devices for a run",
            ));
        }
        (None, Some(devices)) => client.check_devices(devices)?,
        (Some(_), None) => {}
    }
    let metadata = executable.metadata()?;
    let donatable = match &metadata.donatable_input_indices {
        Ok(indices) => indices.as_slice(),
        // Nobody can say what is donated. Then nothing is.
        Err(_) => &[],
    };
    let mut options_proto = execute_options_to_proto(options)?;
    if metadata.donatable_input_indices.is_err() {
        options_proto.non_donatable_input_indices = (0_i32..).take(inputs.len()).collect();
    }
    let uses: Vec<Use<'_>> = inputs
        .iter()
        .enumerate()
        .map(|(number, input)| {
            let donated = donatable.binary_search(&number).is_ok()
                && !options.non_donatable_input_indices.contains(&number);
            (input.cells(), donated)
        })
        .collect();
    let request = LoadedExecutableExecuteRequest {
        loaded_executable_handle: executable.handle,
        args_handles: inputs.iter().map(|input| input.handle()).collect(),
        execute_options: Some(options_proto),
        device_ids: devices
            .map(|devices| devices.ids().map(|id| id.0).collect())
            .unwrap_or_default(),
        result_array_handle: Vec::new(),
        result_status_handle: 0,
    };
    match executable.plans.find(&inputs, devices) {
        Some(plan) => run_as_planned(executable, request, options, &uses, &plan),
        None => run_and_see(executable, request, options, &uses, &inputs, devices),
    }
}

/// Sends an execution whose outputs are known, and waits for nothing.
fn run_as_planned(
    executable: &ProxyExecutable,
    mut request: LoadedExecutableExecuteRequest,
    options: &ExecuteOptions,
    uses: &[Use<'_>],
    plan: &Plan,
) -> Result<ExecuteResult> {
    let client = &executable.client;
    let session = client.session();
    client.donations().take(OPERATION, uses)?;
    let handles: Vec<u64> = plan.outputs.iter().map(|_| session.new_handle()).collect();
    if options.fill_status {
        request.result_status_handle = session.new_handle();
    }
    let status_handle = request.result_status_handle;
    request.result_array_handle.clone_from(&handles);
    session.send_ignored(
        "an execution",
        Request::LoadedExecutableExecuteRequest(request),
    );
    let outputs = handles.into_iter().zip(&plan.outputs);
    Ok(ExecuteResult {
        status: (status_handle != 0).then(|| status(executable, status_handle)),
        outputs: outputs
            .map(|(handle, spec)| make(client, handle, spec.clone()))
            .collect(),
        cancellation_handle: None,
    })
}

/// Sends an execution and waits for what the server says of its outputs.
fn run_and_see(
    executable: &ProxyExecutable,
    request: LoadedExecutableExecuteRequest,
    options: &ExecuteOptions,
    uses: &[Use<'_>],
    inputs: &[&ProxyArray],
    devices: Option<&DeviceList>,
) -> Result<ExecuteResult> {
    let client = &executable.client;
    client.donations().check(OPERATION, uses)?;
    let request = Request::LoadedExecutableExecuteRequest(request);
    let response = client.session().round_trip(request, |response| {
        body!(response, LoadedExecutableExecuteResponse)
    })?;
    for (cells, _) in uses.iter().filter(|(_, donated)| *donated) {
        cells.kill();
    }
    let specs = describe(executable, &response);
    let specs = match specs.and_then(|specs| check_status(&response, options).map(|()| specs)) {
        Ok(specs) => specs,
        Err(error) => {
            give_back(executable, &response);
            return Err(error);
        }
    };
    let outputs = response.outputs.iter().zip(&specs);
    let outputs = outputs
        .map(|(output, spec)| make(client, output.array_handle, spec.clone()))
        .collect();
    executable.plans.keep(Plan::new(inputs, devices, specs));
    Ok(ExecuteResult {
        status: options
            .fill_status
            .then(|| status(executable, response.status_handle)),
        outputs,
        cancellation_handle: None,
    })
}

/// Lets the server forget what it made but could not tell.
fn give_back(executable: &ProxyExecutable, response: &LoadedExecutableExecuteResponse) {
    for output in response.outputs.iter().take(MAX_OUTPUTS) {
        if output.array_handle != 0 {
            executable
                .client
                .session()
                .destruct(output.array_handle, true);
        }
    }
    if response.status_handle != 0 {
        status(executable, response.status_handle).detach();
    }
}

fn check_status(
    response: &LoadedExecutableExecuteResponse,
    options: &ExecuteOptions,
) -> Result<()> {
    if options.fill_status == (response.status_handle != 0) {
        return Ok(());
    }
    Err(Status::internal(
        "the server gave a status of an execution that nobody asked for, or none that was asked \
         for",
    ))
}

/// The outputs as the server describes them.
fn describe(
    executable: &ProxyExecutable,
    response: &LoadedExecutableExecuteResponse,
) -> Result<Vec<ArraySpec>> {
    let count = response.outputs.len();
    if count > MAX_OUTPUTS {
        return Err(Status::internal(format!(
            "the server gave {count} outputs of one execution"
        )));
    }
    let layouts = executable.metadata()?.output_layouts.clone().ok();
    if let Some(layouts) = &layouts
        && layouts.len() != count
    {
        return Err(Status::internal(format!(
            "Mismatch between output specs and layouts: the server gave {count} outputs and {} \
             layouts",
            layouts.len()
        )));
    }
    let describe = |(number, output): (usize, &Output)| {
        let missing =
            |what: &str| Status::internal(format!("the server gave no {what} of output {number}"));
        if output.array_handle == 0 {
            return Err(missing("handle"));
        }
        let dtype = output.dtype.as_ref().ok_or_else(|| missing("dtype"))?;
        let shape = output.shape.as_ref().ok_or_else(|| missing("shape"))?;
        let sharding = output
            .sharding
            .as_ref()
            .ok_or_else(|| missing("sharding"))?;
        let sharding = sharding_from_proto(sharding, &*executable.client)?;
        Ok(ArraySpec {
            dtype: dtype_from_proto(dtype)?,
            shape: shape_from_proto(shape)?,
            sharding,
            layout: layouts
                .as_ref()
                .and_then(|layouts| layouts.get(number).cloned()),
        })
    };
    let specs = response.outputs.iter().enumerate().map(describe);
    // Whatever is wrong here is a mistake of the server, not of the caller.
    specs
        .collect::<Result<_>>()
        .map_err(|error| error.with_code(ifrt::Code::Internal))
}

/// Ready when the execution is done. The server keeps the status until it is asked, so it is asked
/// at once.
fn status(executable: &ProxyExecutable, handle: u64) -> Completion {
    let session = executable.client.session();
    let client = Arc::clone(&executable.client);
    if session.protocol() >= FETCH_EXECUTE_RESULT {
        let request = LoadedExecutableFetchExecuteResultRequest {
            result_status_handle: handle,
        };
        let request = Request::LoadedExecutableFetchExecuteResultRequest(request);
        return session.request(request, move |response| {
            drop(client);
            body!(response, LoadedExecutableFetchExecuteResultResponse).map(drop)
        });
    }
    let request = CheckFutureRequest {
        future_handle: handle,
    };
    session.request(Request::CheckFutureRequest(request), move |response| {
        drop(client);
        body!(response, CheckFutureResponse).map(drop)
    })
}
