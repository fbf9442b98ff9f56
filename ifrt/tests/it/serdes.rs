//! The values of the contract on the wire.
//!
//! These ids of the list have no test here:
//! - SD-01 to SD-03, the registry and its options: the kinds are closed, so there is none.
//! - SD-16 and the StableHLO half of SD-17: modules are passed on as bytes, never parsed.
//! - SD-18, versions of GPU executables: see [`ifrt::executable::ExecutableVersion`].

mod bad_input;
mod corpus;
mod golden;
mod properties;
mod round_trips;

use bytes::Bytes;
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::proto::xla::ifrt::{Serialized, ShardingProto, ShardingSpecProto};
use ifrt::serdes::{
    SerDesVersion, sharding_from_proto, sharding_spec_from_proto, sharding_spec_to_proto,
    sharding_to_proto,
};
use ifrt::{Result, Sharding, ShardingRef, ShardingSpec};
use std::sync::Arc;

/// Devices with ids from 0.
fn client(num_devices: usize) -> Arc<FakeClient> {
    FakeClient::new(FakeOptions {
        num_devices,
        ..FakeOptions::default()
    })
}

fn serialized(name: &str, data: impl Into<Bytes>) -> Serialized {
    Serialized {
        type_name: format!("xla::ifrt::{name}"),
        data: data.into(),
    }
}

fn read_sharding(name: &str, data: impl Into<Bytes>) -> Result<ShardingRef> {
    let proto = ShardingProto {
        serialized_sharding: Some(serialized(name, data)),
    };
    sharding_from_proto(&proto, &*client(12))
}

/// The name of the type and the bytes.
fn write_sharding(sharding: &Sharding, version: SerDesVersion) -> Result<Serialized> {
    let proto = sharding_to_proto(sharding, version)?;
    Ok(proto.serialized_sharding.unwrap())
}

fn read_spec(name: &str, data: impl Into<Bytes>) -> Result<ShardingSpec> {
    sharding_spec_from_proto(&ShardingSpecProto {
        serialized_sharding_spec: Some(serialized(name, data)),
    })
}

fn write_spec(spec: &ShardingSpec, version: SerDesVersion) -> Result<Serialized> {
    let proto = sharding_spec_to_proto(spec, version)?;
    Ok(proto.serialized_sharding_spec.unwrap())
}
