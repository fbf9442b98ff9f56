//! Arrays from single-device arrays, and back.

use std::sync::Arc;

use super::{Case, case, is_made_of};
use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::conformance::check::{Check, check, equal};
use crate::conformance::data::{Host, shape};
use crate::conformance::fixture::{Fixture, in_context};
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::memory::MemoryKind;
use crate::sharding::{ShardingKind, ShardingRef};
use crate::value::ValueRef;

pub(super) const CASES: &[Case] = &[
    case("ARR-28", "assemble", arr_28),
    case("ARR-29", "assemble_and_disassemble_one", arr_29),
    case("ARR-30", "assemble_nothing_of_this_process", arr_30),
    case("ARR-31", "assemble_and_disassemble_two", arr_31),
];

fn assemble(
    fx: &Fixture,
    dims: &[i64],
    sharding: &ShardingRef,
    arrays: &[ArrayRef],
) -> Check<ArrayRef> {
    let made = in_context(|| {
        fx.client
            .assemble_array(
                DType::F32,
                shape(dims)?,
                Arc::clone(sharding),
                arrays,
                ArrayCopySemantics::AlwaysCopy,
                ShardSemantics::Addressable,
            )
            .map_err(crate::conformance::check::Stop::from)
    })?;
    Ok(made)
}

/// Two arrays of shape `[2,3]` on two devices, and the array that they make.
fn two(fx: &Fixture) -> Check<(Vec<ArrayRef>, Host)> {
    let whole = Host::iota(DType::F32, &[4, 3])?;
    let first = fx.put(
        &Host::f32(&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])?,
        &fx.single(0)?,
    )?;
    let second = Host::f32(&[2, 3], &[6.0, 7.0, 8.0, 9.0, 10.0, 11.0])?;
    Ok((vec![first, fx.put(&second, &fx.single(1)?)?], whole))
}

fn arr_28(fx: &Fixture) -> Check {
    let (shards, whole) = two(fx)?;
    let devices = fx.devices(2)?;
    let sharding = fx.sharding(ShardingKind::opaque(), &devices, &MemoryKind::default())?;
    let array = assemble(fx, &[4, 3], &sharding, &shards)?;
    is_made_of(fx, &array, &whole, &sharding)
}

fn arr_29(fx: &Fixture) -> Check {
    let host = Host::iota(DType::F32, &[2, 3])?;
    let sharding = fx.single(0)?;
    let single = in_context(|| fx.put(&host, &sharding))?;
    let array = assemble(fx, &[2, 3], &sharding, &[single])?;
    fx.has_context(&(Arc::clone(&array) as ValueRef))?;
    let shards = fx.shards(&array)?;
    equal(shards.len(), 1, "the number of shards")?;
    equal(shards[0].dtype(), host.dtype, "the dtype")?;
    equal(shards[0].shape(), &host.shape, "the shape")?;
    equal(
        shards[0].sharding().devices(),
        sharding.devices(),
        "the device",
    )?;
    equal(fx.read(&shards[0])?, host.bytes, "the data")
}

fn arr_30(fx: &Fixture) -> Check {
    let fx = fx.multi_process()?;
    let devices = fx.client.devices().iter();
    let unreachable = devices.filter(|device| !device.is_addressable()).cloned();
    let devices: DeviceList = unreachable.take(2).collect();
    fx.needs(devices.len() == 2, "second device out of reach")?;
    let sharding = fx.even(&[4, 3], &[2, 3], &devices, &MemoryKind::default())?;
    let array = assemble(&fx, &[4, 3], &sharding, &[])?;
    fx.has_context(&(Arc::clone(&array) as ValueRef))?;
    check(fx.shards(&array)?.is_empty(), "there is no shard to reach")
}

fn arr_31(fx: &Fixture) -> Check {
    let (inputs, whole) = two(fx)?;
    let devices = fx.devices(2)?;
    let sharding = fx.even(&[4, 3], &[2, 3], &devices, &MemoryKind::default())?;
    let array = assemble(fx, &[4, 3], &sharding, &inputs)?;
    is_made_of(fx, &array, &whole, &sharding)?;
    let shards = in_context(|| fx.shards(&array))?;
    equal(shards.len(), 2, "the number of shards")?;
    for (shard, input) in shards.iter().zip(&inputs) {
        equal(shard.dtype(), input.dtype(), "the dtype")?;
        equal(shard.shape(), input.shape(), "the shape")?;
        let (found, expected) = (shard.sharding().devices(), input.sharding().devices());
        equal(found, expected, "the device")?;
        fx.has_context(&(Arc::clone(shard) as ValueRef))?;
        equal(fx.read(shard)?, fx.read(input)?, "the data")?;
    }
    Ok(())
}
