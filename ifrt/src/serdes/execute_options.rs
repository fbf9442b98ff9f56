//! [`ExecuteOptions`] as `xla.ifrt.ExecuteOptionsProto`.

use super::{attribute_map_from_proto, attribute_map_to_proto, check_version};
use crate::executable::ExecuteOptions;
use crate::proto::xla::ifrt::ExecuteOptionsProto;
use crate::status::{Result, Status};

/// Reads execute options.
///
/// # Errors
/// INVALID_ARGUMENT for a negative input index; FAILED_PRECONDITION for a newer format.
pub fn execute_options_from_proto(proto: &ExecuteOptionsProto) -> Result<ExecuteOptions> {
    check_version(proto.version_number, 0, "ExecuteOptions")?;
    let non_donatable_input_indices = proto
        .non_donatable_input_indices
        .iter()
        .map(|index| usize::try_from(*index))
        .collect::<Result<_, _>>()
        .map_err(|_| Status::invalid_argument("a non-donatable input index is negative"))?;
    Ok(ExecuteOptions {
        launch_id: proto.launch_id,
        non_donatable_input_indices,
        fill_status: proto.fill_status,
        execution_stream_id: proto.execution_stream_id,
        custom_options: proto
            .custom_options
            .as_ref()
            .map(attribute_map_from_proto)
            .transpose()?,
    })
}

/// Writes execute options.
///
/// # Errors
/// INVALID_ARGUMENT for an input index beyond 32 bits.
pub fn execute_options_to_proto(options: &ExecuteOptions) -> Result<ExecuteOptionsProto> {
    let non_donatable_input_indices = options
        .non_donatable_input_indices
        .iter()
        .map(|index| i32::try_from(*index))
        .collect::<Result<_, _>>()
        .map_err(|_| Status::invalid_argument("a non-donatable input index is too large"))?;
    Ok(ExecuteOptionsProto {
        launch_id: options.launch_id,
        non_donatable_input_indices,
        fill_status: options.fill_status,
        execution_stream_id: options.execution_stream_id,
        custom_options: options.custom_options.as_ref().map(attribute_map_to_proto),
        ..ExecuteOptionsProto::default()
    })
}
