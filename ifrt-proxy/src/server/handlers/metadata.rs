//! What there is to know about an executable.
//!
//! A client asks once for each executable and keeps the answer. Each part of the answer has an
//! error of its own: an error of the whole request would make everything fail that the client does
//! with the executable later.

use ifrt::proto::tensorflow::StatusProto;
use ifrt::proto::xla::{CompiledMemoryStatsProto, LayoutProto, OpSharding};
use ifrt::serdes::{attribute_map_to_proto, status_to_proto, xla_layout_to_proto};
use ifrt::xla::HloSharding;
use ifrt::{CompiledMemoryStats, Layout, LoadedExecutable, Result, Status};

use crate::proto::xla::ifrt::proxy::ifrt_response::Response;
use crate::proto::xla::ifrt::proxy::{
    LoadedExecutableCostAnalysisRequest, LoadedExecutableCostAnalysisResponse,
    LoadedExecutableHumanReadableProgramTextRequest,
    LoadedExecutableHumanReadableProgramTextResponse, LoadedExecutableMetadataRequest,
    LoadedExecutableMetadataResponse, LoadedExecutableMpmdCostAnalysisRequest,
    LoadedExecutableMpmdCostAnalysisResponse, LoadedExecutableMpmdMetadataRequest,
    LoadedExecutableMpmdMetadataResponse, loaded_executable_cost_analysis_response as cost,
    loaded_executable_human_readable_program_text_response as text,
    loaded_executable_metadata_response as parts,
    loaded_executable_mpmd_cost_analysis_response as mpmd_cost,
    loaded_executable_mpmd_metadata_response as mpmd_parts,
};
use crate::server::session::Call;
use crate::server::session::context::Outcome;
use crate::server::session::reply::Reply;

/// Describes parameters, outputs and memory of an executable.
pub(crate) fn metadata(call: &Call, request: LoadedExecutableMetadataRequest, reply: Reply) {
    // Looked up now, in order: the client may destruct its handle right after this request.
    let executable = call
        .session
        .tables
        .executable(request.loaded_executable_handle);
    call.in_background(reply, move |_| {
        let response = describe(&*executable?);
        Ok(Response::LoadedExecutableMetadataResponse(response))
    });
}

fn describe(executable: &dyn LoadedExecutable) -> LoadedExecutableMetadataResponse {
    let parameter_layouts = match layouts(executable.parameter_layouts()) {
        Ok(list) => parts::ParameterLayouts::ParameterLayoutsList(list),
        Err(error) => parts::ParameterLayouts::ParameterLayoutsError(error),
    };
    let output_layouts = match layouts(executable.output_layouts()) {
        Ok(list) => parts::OutputLayouts::OutputLayoutsList(list),
        Err(error) => parts::OutputLayouts::OutputLayoutsError(error),
    };
    let donated = match donated(executable.donatable_input_indices()) {
        Ok(list) => parts::DonatedInputIndicesOneof::DonatedInputIndices(list),
        Err(error) => parts::DonatedInputIndicesOneof::DonatedInputIndicesError(error),
    };
    let memory = match executable.compiled_memory_stats() {
        Ok(stats) => parts::CompiledMemoryStatsOneof::CompiledMemoryStats(memory_stats(&stats)),
        Err(error) => {
            parts::CompiledMemoryStatsOneof::CompiledMemoryStatsError(status_to_proto(&error))
        }
    };
    LoadedExecutableMetadataResponse {
        parameter_shardings: executable.parameter_shardings().map(|s| shardings(&s)),
        output_shardings: executable.output_shardings().map(|s| shardings(&s)),
        output_memory_kinds: Some(memory_kinds(executable.output_memory_kinds())),
        size_of_generated_code_in_bytes: executable.size_of_generated_code_bytes(),
        parameter_layouts: Some(parameter_layouts),
        output_layouts: Some(output_layouts),
        donated_input_indices_oneof: Some(donated),
        compiled_memory_stats_oneof: Some(memory),
        mpmd_compiled_memory_stats_oneof: None,
    }
}

fn shardings(shardings: &[HloSharding]) -> parts::ShardingList {
    let shardings: Vec<OpSharding> = shardings.iter().map(HloSharding::to_proto).collect();
    parts::ShardingList { shardings }
}

fn layouts(layouts: Result<Vec<Layout>>) -> Result<parts::LayoutList, StatusProto> {
    let encode = |layouts: Vec<Layout>| {
        let layouts = layouts.iter().map(xla_layout_to_proto);
        layouts.collect::<Result<Vec<LayoutProto>>>()
    };
    layouts
        .and_then(encode)
        .map(|layouts| parts::LayoutList { layouts })
        .map_err(|error| status_to_proto(&error))
}

fn memory_kinds(kinds: Result<Vec<Vec<String>>>) -> parts::OutputMemoryKind {
    match kinds {
        Ok(lists) => parts::OutputMemoryKind {
            status: None,
            memory_kind_lists: lists
                .into_iter()
                .map(|memory_kinds| parts::MemoryKindList { memory_kinds })
                .collect(),
        },
        Err(error) => parts::OutputMemoryKind {
            status: Some(status_to_proto(&error)),
            memory_kind_lists: Vec::new(),
        },
    }
}

fn donated(indices: Result<Vec<usize>>) -> Result<parts::DonatedInputIndices, StatusProto> {
    let encode = |indices: Vec<usize>| {
        let indices = indices.into_iter().map(u32::try_from);
        let too_large = |_| Status::internal("an input index is too large for its message");
        indices.collect::<Result<_, _>>().map_err(too_large)
    };
    indices
        .and_then(encode)
        .map(|donated_input_indices| parts::DonatedInputIndices {
            donated_input_indices,
        })
        .map_err(|error| status_to_proto(&error))
}

fn memory_stats(stats: &CompiledMemoryStats) -> CompiledMemoryStatsProto {
    CompiledMemoryStatsProto {
        generated_code_size_in_bytes: stats.generated_code_size_bytes,
        argument_size_in_bytes: stats.argument_size_bytes,
        output_size_in_bytes: stats.output_size_bytes,
        alias_size_in_bytes: stats.alias_size_bytes,
        temp_size_in_bytes: stats.temp_size_bytes,
        host_generated_code_size_in_bytes: stats.host_generated_code_size_bytes,
        host_argument_size_in_bytes: stats.host_argument_size_bytes,
        host_output_size_in_bytes: stats.host_output_size_bytes,
        host_alias_size_in_bytes: stats.host_alias_size_bytes,
        host_temp_size_in_bytes: stats.host_temp_size_bytes,
        serialized_buffer_assignment: bytes::Bytes::new(),
        peak_memory_in_bytes: stats.peak_memory_bytes,
        total_size_in_bytes: stats.total_size_bytes,
        total_allocation_bytes: stats.total_allocation_bytes,
        indefinite_allocations: stats.indefinite_allocations,
        peak_unpadded_heap_bytes: stats.peak_unpadded_heap_bytes,
    }
}

/// Tells what a run costs. An error stands in the body: clients misread one in its place.
pub(crate) fn cost_analysis(
    call: &Call,
    request: LoadedExecutableCostAnalysisRequest,
    reply: Reply,
) {
    let executable = call
        .session
        .tables
        .executable(request.loaded_executable_handle);
    call.in_background(reply, move |call| {
        let analyzed = call.isolated(|| Ok(executable?.cost_analysis()?));
        let result = match analyzed {
            Ok(attributes) => cost::Result::Attributes(attribute_map_to_proto(&attributes)),
            Err(failure) => cost::Result::Status(status_to_proto(failure.status())),
        };
        Ok(Response::LoadedExecutableCostAnalysisResponse(
            LoadedExecutableCostAnalysisResponse {
                result: Some(result),
            },
        ))
    });
}

/// Prints the compiled program. An error stands in the body.
pub(crate) fn program_text(
    call: &Call,
    request: LoadedExecutableHumanReadableProgramTextRequest,
    reply: Reply,
) {
    let executable = call
        .session
        .tables
        .executable(request.loaded_executable_handle);
    call.in_background(reply, move |call| {
        let printed = call.isolated(|| Ok(executable?.human_readable_program_text()?));
        let result = match printed {
            Ok(text) => text::Result::HumanReadableProgramText(text),
            Err(failure) => text::Result::Status(status_to_proto(failure.status())),
        };
        Ok(Response::LoadedExecutableHumanReadableProgramTextResponse(
            LoadedExecutableHumanReadableProgramTextResponse {
                result: Some(result),
            },
        ))
    });
}

fn no_mpmd() -> StatusProto {
    status_to_proto(&Status::unimplemented(
        "the executable runs one program on all its devices, not several",
    ))
}

/// Answers for executables of several programs, which this server does not make.
pub(crate) fn mpmd_metadata(
    call: &Call,
    request: LoadedExecutableMpmdMetadataRequest,
) -> Outcome<LoadedExecutableMpmdMetadataResponse> {
    drop(
        call.session
            .tables
            .executable(request.mpmd_loaded_executable_handle)?,
    );
    Ok(LoadedExecutableMpmdMetadataResponse {
        mpmd_compiled_memory_stats_oneof: Some(
            mpmd_parts::MpmdCompiledMemoryStatsOneof::MpmdCompiledMemoryStatsError(no_mpmd()),
        ),
    })
}

/// Answers for executables of several programs, which this server does not make.
pub(crate) fn mpmd_cost_analysis(
    call: &Call,
    request: LoadedExecutableMpmdCostAnalysisRequest,
) -> Outcome<LoadedExecutableMpmdCostAnalysisResponse> {
    let known = call
        .session
        .tables
        .executable(request.loaded_executable_handle);
    let error = match known {
        Ok(_) => no_mpmd(),
        Err(failure) => status_to_proto(failure.status()),
    };
    Ok(LoadedExecutableMpmdCostAnalysisResponse {
        result: Some(mpmd_cost::Result::Status(error)),
    })
}
