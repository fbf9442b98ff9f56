//! From a request to its handler.
//!
//! Each kind of request stands here once: a new kind without a handler does not compile.

use ifrt::Status;

use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use crate::proto::xla::ifrt::proxy::ifrt_response::Response;
use crate::server::handlers::{
    array, callback, compile, copy, deletion, execute, future, host, init, layout, metadata, remap,
};
use crate::server::session::Call;
use crate::server::session::reply::Reply;

/// Handles a request. Handlers that answer later take the reply along.
pub(crate) fn dispatch(call: &Call, request: Option<Request>, reply: Reply) {
    let Some(request) = request else {
        reply.send(Err(Status::unimplemented(
            "the request is of a kind that this server does not know; it may come from a newer \
             client",
        )
        .into()));
        return;
    };
    use Request as Q;
    use Response as R;
    match request {
        Q::InitRequest(_) => reply.send(init::init(call).map(R::InitResponse)),

        Q::MakeArrayFromHostBufferRequest(r) => {
            reply.send(host::make_array(call, r).map(R::MakeArrayFromHostBufferResponse))
        }
        Q::MakeArraysFromHostBufferShardsRequest(r) => reply.send(
            host::make_arrays_from_shards(call, r).map(R::MakeArraysFromHostBufferShardsResponse),
        ),
        Q::CopyToHostBufferRequest(r) => host::copy_to_host_buffer(call, &r, reply),

        Q::MakeErrorArraysRequest(r) => {
            reply.send(array::make_error_arrays(call, &r).map(R::MakeErrorArraysResponse))
        }
        Q::AssembleArrayFromSingleDeviceArraysRequest(r) => reply
            .send(array::assemble(call, &r).map(R::AssembleArrayFromSingleDeviceArraysResponse)),
        Q::DisassembleIntoSingleDeviceArraysRequest(r) => reply
            .send(array::disassemble(call, &r).map(R::DisassembleIntoSingleDeviceArraysResponse)),
        Q::FullyReplicatedShardRequest(r) => {
            reply.send(array::fully_replicated_shard(call, &r).map(R::FullyReplicatedShardResponse))
        }
        Q::CheckValueReadyRequest(r) => array::check_value_ready(call, &r, reply),

        Q::CopyArraysRequest(r) => {
            reply.send(copy::copy_arrays(call, &r).map(R::CopyArraysResponse));
        }
        Q::RemapArraysRequest(r) => {
            reply.send(remap::remap_arrays(call, &r).map(R::RemapArraysResponse));
        }
        Q::BitcastArraysRequest(r) => {
            reply.send(copy::bitcast_arrays(call, &r).map(R::BitcastArraysResponse));
        }
        Q::ReshardArraysRequest(r) => {
            reply.send(copy::reshard_arrays(call, &r).map(R::ReshardArraysResponse));
        }

        Q::DeleteArrayRequest(r) => {
            reply.send(Ok(R::DeleteArrayResponse(deletion::delete(call, &r))));
        }
        Q::DestructArrayRequest(r) => {
            reply.send(Ok(R::DestructArrayResponse(deletion::destruct(call, &r))));
        }
        Q::IsArrayDeletedRequest(r) => {
            reply.send(deletion::is_deleted(call, r).map(R::IsArrayDeletedResponse));
        }

        Q::CheckFutureRequest(r) => future::check_future(call, r, reply),
        Q::LoadedExecutableFetchExecuteResultRequest(r) => {
            future::fetch_execute_result(call, r, reply);
        }

        Q::CompileRequest(r) => compile::compile(call, r, reply),
        Q::LoadedExecutableMetadataRequest(r) => metadata::metadata(call, r, reply),
        Q::LoadedExecutableCostAnalysisRequest(r) => metadata::cost_analysis(call, r, reply),
        Q::LoadedExecutableHumanReadableProgramTextRequest(r) => {
            metadata::program_text(call, r, reply);
        }
        Q::LoadedExecutableMpmdMetadataRequest(r) => reply
            .send(metadata::mpmd_metadata(call, r).map(R::LoadedExecutableMpmdMetadataResponse)),
        Q::LoadedExecutableMpmdCostAnalysisRequest(r) => reply.send(
            metadata::mpmd_cost_analysis(call, r).map(R::LoadedExecutableMpmdCostAnalysisResponse),
        ),
        Q::LoadedExecutableExecuteRequest(r) => {
            reply.send(execute::execute(call, &r).map(R::LoadedExecutableExecuteResponse));
        }
        Q::LoadedExecutableDeleteRequest(r) => {
            reply.send(execute::delete(call, r).map(R::LoadedExecutableDeleteResponse));
        }
        Q::LoadedExecutableIsDeletedRequest(r) => {
            reply.send(execute::is_deleted(call, r).map(R::LoadedExecutableIsDeletedResponse));
        }
        Q::LoadedExecutableDestructRequest(r) => {
            reply.send(execute::destruct(call, r).map(R::LoadedExecutableDestructResponse));
        }

        Q::LoadedHostCallbackPollRequest(r) => {
            reply.send(callback::poll(r).map(R::LoadedHostCallbackPollResponse));
        }
        Q::LoadedHostCallbackReturnRequest(r) => {
            reply.send(callback::give_back(&r).map(R::LoadedHostCallbackReturnResponse));
        }

        Q::GetDefaultDeviceAssignmentRequest(r) => {
            layout::default_device_assignment(call, r, reply);
        }
        Q::GetDefaultLayoutRequest(r) => layout::default_layout(call, r, reply),
    }
}

/// The name of a kind of request, for the log.
pub(crate) const fn name(request: Option<&Request>) -> &'static str {
    let Some(request) = request else {
        return "unknown";
    };
    match request {
        Request::InitRequest(_) => "init",
        Request::CheckFutureRequest(_) => "check_future",
        Request::MakeArrayFromHostBufferRequest(_) => "make_array_from_host_buffer",
        Request::AssembleArrayFromSingleDeviceArraysRequest(_) => "assemble_array",
        Request::CopyToHostBufferRequest(_) => "copy_to_host_buffer",
        Request::DisassembleIntoSingleDeviceArraysRequest(_) => "disassemble",
        Request::CheckValueReadyRequest(_) => "check_value_ready",
        Request::DeleteArrayRequest(_) => "delete_array",
        Request::IsArrayDeletedRequest(_) => "is_array_deleted",
        Request::DestructArrayRequest(_) => "destruct_array",
        Request::CompileRequest(_) => "compile",
        Request::LoadedExecutableMetadataRequest(_) => "loaded_executable_metadata",
        Request::LoadedExecutableExecuteRequest(_) => "execute",
        Request::LoadedExecutableDeleteRequest(_) => "loaded_executable_delete",
        Request::LoadedExecutableIsDeletedRequest(_) => "loaded_executable_is_deleted",
        Request::LoadedExecutableDestructRequest(_) => "loaded_executable_destruct",
        Request::GetDefaultDeviceAssignmentRequest(_) => "get_default_device_assignment",
        Request::FullyReplicatedShardRequest(_) => "fully_replicated_shard",
        Request::LoadedHostCallbackPollRequest(_) => "loaded_host_callback_poll",
        Request::LoadedHostCallbackReturnRequest(_) => "loaded_host_callback_return",
        Request::RemapArraysRequest(_) => "remap_arrays",
        Request::CopyArraysRequest(_) => "copy_arrays",
        Request::MakeArraysFromHostBufferShardsRequest(_) => "make_arrays_from_host_buffer_shards",
        Request::MakeErrorArraysRequest(_) => "make_error_arrays",
        Request::GetDefaultLayoutRequest(_) => "get_default_layout",
        Request::LoadedExecutableCostAnalysisRequest(_) => "cost_analysis",
        Request::LoadedExecutableHumanReadableProgramTextRequest(_) => "program_text",
        Request::LoadedExecutableMpmdMetadataRequest(_) => "mpmd_metadata",
        Request::LoadedExecutableMpmdCostAnalysisRequest(_) => "mpmd_cost_analysis",
        Request::LoadedExecutableFetchExecuteResultRequest(_) => "fetch_execute_result",
        Request::ReshardArraysRequest(_) => "reshard_arrays",
        Request::BitcastArraysRequest(_) => "bitcast_arrays",
    }
}
