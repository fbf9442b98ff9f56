//! Small things in the form that requests have.

use std::sync::Arc;

use ifrt::proto::xla::ifrt::{ArraySpecProto, ShardingProto};
use ifrt::serdes::{SerDesVersion, array_spec_to_proto, sharding_to_proto};
use ifrt::{
    ArrayCopySemantics, ArraySpec, Result, ShardSemantics, Sharding, ShardingKind, ShardingRef,
};

use crate::proto::xla::ifrt::proto;

pub(super) fn copy_semantics(copy: ArrayCopySemantics) -> i32 {
    let copy = match copy {
        ArrayCopySemantics::AlwaysCopy => proto::ArrayCopySemantics::AlwaysCopy,
        ArrayCopySemantics::ReuseInput => proto::ArrayCopySemantics::ReuseInput,
        ArrayCopySemantics::DonateInput => proto::ArrayCopySemantics::DonateInput,
    };
    copy.into()
}

pub(super) fn shard_semantics(shards: ShardSemantics) -> i32 {
    let shards = match shards {
        ShardSemantics::Addressable => proto::SingleDeviceShardSemantics::AddressableShards,
        ShardSemantics::All => proto::SingleDeviceShardSemantics::AllShards,
    };
    shards.into()
}

/// The sharding as the server needs it: which part of the array a shard holds is not on the wire.
///
/// # Errors
/// INVALID_ARGUMENT if the sharding contradicts itself.
pub(super) fn without_domains(sharding: &ShardingRef) -> Result<ShardingRef> {
    match sharding.kind() {
        ShardingKind::Concrete {
            shape,
            shard_shapes,
            index_domains: Some(_),
        } => {
            let kind = ShardingKind::concrete(shape.clone(), shard_shapes.clone());
            let (devices, memory_kind) = (sharding.devices(), sharding.memory_kind());
            Sharding::new(kind, devices.clone(), memory_kind.clone()).map(Arc::new)
        }
        _ => Ok(Arc::clone(sharding)),
    }
}

pub(super) fn sharding_to_wire(
    sharding: &ShardingRef,
    version: SerDesVersion,
) -> Result<ShardingProto> {
    sharding_to_proto(&*without_domains(sharding)?, version)
}

pub(super) fn array_spec_to_wire(
    spec: &ArraySpec,
    version: SerDesVersion,
) -> Result<ArraySpecProto> {
    let spec = ArraySpec {
        sharding: without_domains(&spec.sharding)?,
        ..spec.clone()
    };
    array_spec_to_proto(&spec, version)
}
