//! [`ShardingParam`] inside shardings and sharding specs.

use super::{SerDesVersion, check_version, unsupported};
use crate::proto::xla::ifrt::ShardingParamProto;
use crate::sharding::ShardingParam;
use crate::status::Result;

const WHAT: &str = "ShardingParam";

/// The newest number that writers have used: 2 by mistake, for the format of 1.
const NEWEST: i32 = 2;

pub(super) fn param_from_proto(proto: ShardingParamProto) -> Result<ShardingParam> {
    check_version(proto.version_number, NEWEST, WHAT)?;
    // The axes belong to the format of version 1; before, the field meant nothing.
    let unreduced_axes = match proto.version_number {
        0 => Vec::new(),
        _ => proto.unreduced_axes,
    };
    ShardingParam::new(
        proto.dim_shards,
        proto.permutation,
        proto.axis_sizes,
        unreduced_axes,
    )
}

pub(super) fn param_to_proto(
    param: &ShardingParam,
    version: SerDesVersion,
) -> Result<ShardingParamProto> {
    let unreduced = !param.unreduced_axes().is_empty();
    if unreduced && version < SerDesVersion::UNREDUCED_AXES {
        return Err(unsupported(version, WHAT, " with unreduced axes"));
    }
    Ok(ShardingParamProto {
        dim_shards: param.dim_shards().to_vec(),
        permutation: param.permutation().to_vec(),
        axis_sizes: param.axis_sizes().to_vec(),
        version_number: i32::from(unreduced),
        unreduced_axes: param.unreduced_axes().to_vec(),
    })
}
