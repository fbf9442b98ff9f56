//! Small things in the form that requests have.

use ifrt::{ArrayCopySemantics, ShardSemantics};

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
