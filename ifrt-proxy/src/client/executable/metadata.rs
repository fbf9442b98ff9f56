//! [`Metadata`]: what the server says of an executable. Each part has an error of its own.

use ifrt::proto::tensorflow::StatusProto;
use ifrt::proto::xla::{CompiledMemoryStatsProto, LayoutProto};
use ifrt::serdes::{status_from_proto, xla_layout_from_proto};
use ifrt::xla::HloSharding;
use ifrt::{CompiledMemoryStats, Layout, Result, Status};

use crate::proto::xla::ifrt::proxy::LoadedExecutableMetadataResponse;
use crate::proto::xla::ifrt::proxy::loaded_executable_metadata_response as parts;

/// What the server says of an executable.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) parameter_shardings: Option<Vec<HloSharding>>,
    pub(super) output_shardings: Option<Vec<HloSharding>>,
    pub(super) parameter_layouts: Result<Vec<Layout>>,
    pub(super) output_layouts: Result<Vec<Layout>>,
    pub(super) output_memory_kinds: Result<Vec<Vec<String>>>,
    /// Ascending.
    pub(super) donatable_input_indices: Result<Vec<usize>>,
    pub(super) compiled_memory_stats: Result<CompiledMemoryStats>,
    pub(super) size_of_generated_code_bytes: i64,
}

impl Metadata {
    pub(super) fn new(response: LoadedExecutableMetadataResponse) -> Self {
        Self {
            parameter_shardings: response.parameter_shardings.and_then(shardings),
            output_shardings: response.output_shardings.and_then(shardings),
            parameter_layouts: match response.parameter_layouts {
                Some(parts::ParameterLayouts::ParameterLayoutsList(list)) => layouts(&list.layouts),
                Some(parts::ParameterLayouts::ParameterLayoutsError(error)) => Err(cause(&error)),
                None => Err(missing("parameter layouts")),
            },
            output_layouts: match response.output_layouts {
                Some(parts::OutputLayouts::OutputLayoutsList(list)) => layouts(&list.layouts),
                Some(parts::OutputLayouts::OutputLayoutsError(error)) => Err(cause(&error)),
                None => Err(missing("output layouts")),
            },
            output_memory_kinds: match response.output_memory_kinds {
                Some(kinds) => memory_kinds(kinds),
                None => Err(missing("memory kinds of the outputs")),
            },
            donatable_input_indices: match response.donated_input_indices_oneof {
                Some(parts::DonatedInputIndicesOneof::DonatedInputIndices(list)) => donatable(list),
                Some(parts::DonatedInputIndicesOneof::DonatedInputIndicesError(error)) => {
                    Err(cause(&error))
                }
                None => Err(missing("donated inputs")),
            },
            compiled_memory_stats: match response.compiled_memory_stats_oneof {
                Some(parts::CompiledMemoryStatsOneof::CompiledMemoryStats(stats)) => {
                    Ok(memory_stats(&stats))
                }
                Some(parts::CompiledMemoryStatsOneof::CompiledMemoryStatsError(error)) => {
                    Err(cause(&error))
                }
                None => Err(missing("memory")),
            },
            size_of_generated_code_bytes: response.size_of_generated_code_in_bytes,
        }
    }
}

fn missing(what: &str) -> Status {
    Status::unimplemented(format!(
        "the server does not tell the {what} of executables"
    ))
}

fn cause(error: &StatusProto) -> Status {
    super::error_or_nothing(error)
}

/// Shardings that cannot be read are like none: the contract has no error for them.
fn shardings(list: parts::ShardingList) -> Option<Vec<HloSharding>> {
    let shardings = list.shardings.iter().map(HloSharding::from_proto);
    shardings
        .collect::<Result<_>>()
        .inspect_err(|status| tracing::warn!(%status, "the server sent malformed shardings"))
        .ok()
}

fn layouts(layouts: &[LayoutProto]) -> Result<Vec<Layout>> {
    layouts.iter().map(xla_layout_from_proto).collect()
}

fn memory_kinds(kinds: parts::OutputMemoryKind) -> Result<Vec<Vec<String>>> {
    if let Some(error) = kinds.status.as_ref().and_then(status_from_proto) {
        return Err(error);
    }
    let lists = kinds.memory_kind_lists.into_iter();
    Ok(lists.map(|list| list.memory_kinds).collect())
}

fn donatable(list: parts::DonatedInputIndices) -> Result<Vec<usize>> {
    let indices = list.donated_input_indices.into_iter().map(usize::try_from);
    let mut indices: Vec<usize> = indices
        .collect::<Result<_, _>>()
        .map_err(|_| Status::internal("the server sent an input index that is too large"))?;
    indices.sort_unstable();
    indices.dedup();
    Ok(indices)
}

const fn memory_stats(stats: &CompiledMemoryStatsProto) -> CompiledMemoryStats {
    CompiledMemoryStats {
        generated_code_size_bytes: stats.generated_code_size_in_bytes,
        argument_size_bytes: stats.argument_size_in_bytes,
        output_size_bytes: stats.output_size_in_bytes,
        alias_size_bytes: stats.alias_size_in_bytes,
        temp_size_bytes: stats.temp_size_in_bytes,
        host_generated_code_size_bytes: stats.host_generated_code_size_in_bytes,
        host_argument_size_bytes: stats.host_argument_size_in_bytes,
        host_output_size_bytes: stats.host_output_size_in_bytes,
        host_alias_size_bytes: stats.host_alias_size_in_bytes,
        host_temp_size_bytes: stats.host_temp_size_in_bytes,
        peak_memory_bytes: stats.peak_memory_in_bytes,
        total_size_bytes: stats.total_size_in_bytes,
        total_allocation_bytes: stats.total_allocation_bytes,
        indefinite_allocations: stats.indefinite_allocations,
        peak_unpadded_heap_bytes: stats.peak_unpadded_heap_bytes,
    }
}
