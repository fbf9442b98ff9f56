//! What the server does for each kind of request, one module per family.
//!
//! Handlers run on the ordered worker of a session and know nothing of gRPC. They enqueue work
//! into the runtime and update the tables; if a request has to wait, its reply goes into the
//! completion that it waits for, and if it may take long, onto a background thread.
//!
//! # Errors are values
//! A client uses the result of a request before it knows whether the request succeeded. A failed
//! request therefore stores its error under the handles of its results, and whatever uses them
//! later fails with the same error.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/server/ifrt_backend.cc`.

pub(crate) mod array;
pub(crate) mod callback;
pub(crate) mod compile;
pub(crate) mod copy;
pub(crate) mod deletion;
pub(crate) mod execute;
pub(crate) mod future;
pub(crate) mod host;
mod host_span;
pub(crate) mod init;
pub(crate) mod layout;
pub(crate) mod metadata;
pub(crate) mod remap;
mod results;

use ifrt::proto::xla::ifrt as wire;
use ifrt::serdes::array_spec_from_proto;
use ifrt::{ArrayCopySemantics, ArraySpec, DType, Result, ShardSemantics, ShardingRef, Status};
use ifrt::{Shape, serdes};

use crate::proto::xla::ifrt::proto;
use crate::server::session::Call;

/// The error for a request that lacks a field without which it means nothing.
fn missing(field: &str) -> Status {
    Status::invalid_argument(format!("the request has no {field}"))
}

fn dtype(message: Option<&wire::DTypeProto>) -> Result<DType> {
    serdes::dtype_from_proto(message.ok_or_else(|| missing("dtype"))?)
}

fn shape(message: Option<&wire::ShapeProto>) -> Result<Shape> {
    serdes::shape_from_proto(message.ok_or_else(|| missing("shape"))?)
}

fn sharding(call: &Call, message: Option<&wire::ShardingProto>) -> Result<ShardingRef> {
    serdes::sharding_from_proto(message.ok_or_else(|| missing("sharding"))?, call.client())
}

fn array_specs(call: &Call, messages: &[wire::ArraySpecProto]) -> Result<Vec<ArraySpec>> {
    messages
        .iter()
        .map(|spec| array_spec_from_proto(spec, call.client()))
        .collect()
}

fn copy_semantics(number: i32) -> Result<ArrayCopySemantics> {
    match proto::ArrayCopySemantics::try_from(number) {
        Ok(proto::ArrayCopySemantics::AlwaysCopy) => Ok(ArrayCopySemantics::AlwaysCopy),
        Ok(proto::ArrayCopySemantics::ReuseInput) => Ok(ArrayCopySemantics::ReuseInput),
        Ok(proto::ArrayCopySemantics::DonateInput) => Ok(ArrayCopySemantics::DonateInput),
        Ok(proto::ArrayCopySemantics::Unspecified) | Err(_) => Err(Status::invalid_argument(
            format!("{number} is no array copy semantics"),
        )),
    }
}

/// Which shards are meant; clients that do not say mean all.
fn shard_semantics(number: Option<i32>) -> Result<ShardSemantics> {
    match number.map(proto::SingleDeviceShardSemantics::try_from) {
        Some(Ok(proto::SingleDeviceShardSemantics::AddressableShards)) => {
            Ok(ShardSemantics::Addressable)
        }
        None | Some(Ok(proto::SingleDeviceShardSemantics::AllShards)) => Ok(ShardSemantics::All),
        Some(_) => Err(Status::invalid_argument(format!(
            "{} is no single-device shard semantics",
            number.unwrap_or_default()
        ))),
    }
}
