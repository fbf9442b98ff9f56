//! Arrays: making them from others without moving data, taking them apart, waiting for them.

use ifrt::serdes::status_from_proto;
use ifrt::{Status, join_all};

use crate::proto::xla::ifrt::proxy::ifrt_response::Response;
use crate::proto::xla::ifrt::proxy::{
    AssembleArrayFromSingleDeviceArraysRequest, AssembleArrayFromSingleDeviceArraysResponse,
    CheckValueReadyRequest, CheckValueReadyResponse, DisassembleIntoSingleDeviceArraysRequest,
    DisassembleIntoSingleDeviceArraysResponse, FullyReplicatedShardRequest,
    FullyReplicatedShardResponse, MakeErrorArraysRequest, MakeErrorArraysResponse,
};
use crate::server::handlers::results::{check_handles, make_array, make_arrays, store_failure};
use crate::server::handlers::{copy_semantics, dtype, shape, shard_semantics, sharding};
use crate::server::session::Call;
use crate::server::session::context::{Failure, Outcome};
use crate::server::session::reply::Reply;

/// Stores an error in place of arrays, which is all that such arrays are to a client.
pub(crate) fn make_error_arrays(
    call: &Call,
    request: &MakeErrorArraysRequest,
) -> Outcome<MakeErrorArraysResponse> {
    let error = request.error.as_ref().and_then(status_from_proto);
    let error = error.ok_or_else(|| Status::invalid_argument("the request has no error"));
    if request.array_handles.is_empty() {
        return Err(Status::invalid_argument("the request has no handles for its arrays").into());
    }
    check_handles(call, &request.array_handles)?;
    let made = error.and_then(|error| {
        if request.array_specs.len() == request.array_handles.len() {
            Ok(error)
        } else {
            Err(Status::invalid_argument(format!(
                "the request has {} array specs for {} handles",
                request.array_specs.len(),
                request.array_handles.len()
            )))
        }
    });
    let stored = made.clone().unwrap_or_else(|error| error);
    let failure = Failure::from(stored).caused_by(call.context.as_ref());
    store_failure(call, &request.array_handles, &failure);
    made?;
    Ok(MakeErrorArraysResponse {
        array_handles: request.array_handles.clone(),
    })
}

/// Makes one array from single-device arrays.
pub(crate) fn assemble(
    call: &Call,
    request: &AssembleArrayFromSingleDeviceArraysRequest,
) -> Outcome<AssembleArrayFromSingleDeviceArraysResponse> {
    let array_handle = make_array(call, request.result_handle, || {
        let arrays = call
            .session
            .tables
            .arrays(&request.single_device_array_handles)?;
        // Clients before protocol 13 do not name the dtype, which the arrays know as well.
        let dtype = match (&request.dtype, arrays.first()) {
            (None, Some(array)) => array.dtype(),
            (message, _) => dtype(message.as_ref())?,
        };
        Ok(call.client().assemble_array(
            dtype,
            shape(request.shape.as_ref())?,
            sharding(call, request.sharding.as_ref())?,
            &arrays,
            copy_semantics(request.copy_semantics)?,
            shard_semantics(request.single_device_shard_semantics)?,
        )?)
    })?;
    Ok(AssembleArrayFromSingleDeviceArraysResponse { array_handle })
}

/// Makes one array per shard.
pub(crate) fn disassemble(
    call: &Call,
    request: &DisassembleIntoSingleDeviceArraysRequest,
) -> Outcome<DisassembleIntoSingleDeviceArraysResponse> {
    let array_handles = make_arrays(call, &request.result_handles, || {
        let known = call.session.tables.array(request.array_handle)?;
        let copy = copy_semantics(request.copy_semantics)?;
        let shards = shard_semantics(request.single_device_shard_semantics)?;
        Ok(known.array.disassemble(copy, shards)?)
    })?;
    Ok(DisassembleIntoSingleDeviceArraysResponse { array_handles })
}

/// Makes an array of the first shard of a replicated array.
pub(crate) fn fully_replicated_shard(
    call: &Call,
    request: &FullyReplicatedShardRequest,
) -> Outcome<FullyReplicatedShardResponse> {
    let array_handle = make_array(call, request.result_handle, || {
        let known = call.session.tables.array(request.array_handle)?;
        let copy = copy_semantics(request.copy_semantics)?;
        Ok(known.array.fully_replicated_shard(copy)?)
    })?;
    Ok(FullyReplicatedShardResponse { array_handle })
}

/// Answers when all arrays are ready.
pub(crate) fn check_value_ready(call: &Call, request: &CheckValueReadyRequest, reply: Reply) {
    let known: Outcome<Vec<_>> = request
        .value_handles
        .iter()
        .map(|handle| call.session.tables.array_to_await(*handle))
        .collect();
    let known = match known {
        Ok(known) => known,
        Err(failure) => {
            reply.send(Err(failure.naming_cause()));
            return;
        }
    };
    let response = || Response::CheckValueReadyResponse(CheckValueReadyResponse {});
    // The error of an array names the request that made it, also if it comes out of a join.
    let ready = known.into_iter().map(|known| {
        let context = known.context;
        known.array.ready().then(move |result| {
            result.clone().map_err(|error| {
                let failure = Failure::from(error).caused_by(context.as_ref());
                failure.naming_cause().status().clone()
            })
        })
    });
    join_all(ready).on_ready(move |result| {
        reply.send(match result {
            Ok(()) => Ok(response()),
            Err(error) => Err(Failure::from(error.clone())),
        });
    });
}
