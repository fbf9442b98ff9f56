//! Arrays of strings from arrays of strings.

use std::sync::Arc;

use bytes::Bytes;

use super::{Case, buffer, case, deleted, injected, put, reads, refused_as_deleted, strings, two};
use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::client::HostShards;
use crate::conformance::check::{Check, Stop, equal, refused};
use crate::conformance::data::{Host, shape};
use crate::conformance::fixture::Fixture;
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::fake::fault::{Fault, Gate, Op, When};
use crate::memory::MemoryKind;
use crate::sharding::ShardingRef;
use crate::status::{Code, Result};

pub(super) const CASES: &[Case] = &[
    case("STR-12", "assemble", str_12),
    case("STR-13", "assemble_of_numbers_refused", str_13),
    case("STR-14", "assemble_of_shards_refused", str_14),
    case("STR-15", "assemble_waits_for_its_inputs", str_15),
    case("STR-16", "assemble_brings_the_error_of_an_input", str_16),
    case("STR-17", "disassemble_one", str_17),
    case("STR-18", "disassemble_shards", str_18),
    case("STR-19", "disassemble_of_a_deleted_array_refused", str_19),
    case("STR-26", "replicated_shard_of_one", str_26),
    case("STR-27", "replicated_shard_of_several", str_27),
    case(
        "STR-28",
        "replicated_shard_of_a_deleted_array_refused",
        str_28,
    ),
];

/// `[2]` in two pieces, assembled from inputs.
fn assemble(fx: &Fixture, sharding: &ShardingRef, inputs: &[ArrayRef]) -> Check<Result<ArrayRef>> {
    fx.needs(fx.caps.strings, "arrays of strings")?;
    Ok(fx.client.assemble_array(
        DType::String,
        shape(&[2])?,
        Arc::clone(sharding),
        inputs,
        ArrayCopySemantics::ReuseInput,
        ShardSemantics::Addressable,
    ))
}

fn halves(fx: &Fixture) -> Check<ShardingRef> {
    fx.even(&[2], &[1], &fx.devices(2)?, &MemoryKind::default())
}

/// One string on a device.
fn one(fx: &Fixture, position: usize, number: usize) -> Check<ArrayRef> {
    put(
        fx,
        &[1],
        &strings(number..number + 1),
        &fx.single(position)?,
    )
}

fn str_12(fx: &Fixture) -> Check {
    let fx = fx.multi_process()?;
    let devices = DeviceList::new([fx.device(0)?, fx.unreachable_device()?, fx.device(1)?]);
    let sharding = fx.even(&[3], &[1], &devices, &MemoryKind::default())?;
    let inputs = [one(&fx, 0, 0)?, one(&fx, 1, 1)?];
    let array = fx.client.assemble_array(
        DType::String,
        shape(&[3])?,
        sharding,
        &inputs,
        ArrayCopySemantics::ReuseInput,
        ShardSemantics::Addressable,
    )?;
    let shards = fx.shards(&array)?;
    equal(shards.len(), 2, "the number of shards")?;
    reads(&fx, &shards[0], &strings(0..1), "the first shard")?;
    reads(&fx, &shards[1], &strings(1..2), "the second shard")
}

fn str_13(fx: &Fixture) -> Check {
    let number = fx.put(&Host::f32(&[1], &[1.0])?, &fx.single(1)?)?;
    let inputs = [one(fx, 0, 0)?, number];
    let made = assemble(fx, &halves(fx)?, &inputs)?;
    refused(
        made,
        Code::InvalidArgument,
        "assembling strings from numbers",
    )?;
    Ok(())
}

fn str_14(fx: &Fixture) -> Check {
    let several = fx.replicated(&fx.devices(2)?, &MemoryKind::default())?;
    let several = put(fx, &[1], &strings(1..2), &several)?;
    let inputs = [one(fx, 0, 0)?, several];
    let made = assemble(fx, &halves(fx)?, &inputs)?;
    refused(
        made,
        Code::InvalidArgument,
        "assembling an array of several shards",
    )?;
    Ok(())
}

fn str_15(fx: &Fixture) -> Check {
    let (faults, gate) = (fx.faults()?, Gate::new());
    faults.add(Op::MakeArray, When::Once, Fault::Slow(gate.clone()));
    let inputs = [one(fx, 0, 0)?, one(fx, 1, 1)?];
    let array = assemble(fx, &halves(fx)?, &inputs)??;
    let ready = array.ready();
    equal(ready.peek(), None, "the result before the inputs are there")?;
    gate.open();
    fx.value(&ready)?;
    for (number, shard) in fx.shards(&array)?.iter().enumerate() {
        reads(fx, shard, &strings(number..number + 1), "a shard")?;
    }
    Ok(())
}

fn str_16(fx: &Fixture) -> Check {
    let faults = fx.faults()?;
    faults.add(Op::MakeArray, When::Once, Fault::Fail(injected()));
    let inputs = [one(fx, 0, 0)?, one(fx, 1, 1)?];
    let array = assemble(fx, &halves(fx)?, &inputs)??;
    equal(fx.result(&array.ready())?, Err(injected()), "the result")
}

fn str_17(fx: &Fixture) -> Check {
    let array = two(fx)?;
    let shards = fx.shards(&array)?;
    equal(shards.len(), 1, "the number of shards")?;
    reads(fx, &shards[0], &strings(0..2), "the shard")
}

fn str_18(fx: &Fixture) -> Check {
    fx.needs(fx.caps.strings, "arrays of strings")?;
    let buffers: Check<Vec<_>> = (0..2_usize)
        .map(|shard| Ok((vec![shard], buffer(&[1], &strings(shard..shard + 1))?)))
        .collect();
    let shards = HostShards {
        spec: crate::ArraySpec {
            dtype: DType::String,
            shape: shape(&[2])?,
            sharding: halves(fx)?,
            layout: None,
        },
        buffers: buffers?,
    };
    let made = fx
        .client
        .make_arrays_from_host_buffer_shards(vec![shards])?;
    let shards = fx.shards(&made[0])?;
    equal(shards.len(), 2, "the number of shards")?;
    for (number, shard) in shards.iter().enumerate() {
        reads(fx, shard, &strings(number..number + 1), "a shard")?;
    }
    Ok(())
}

fn str_19(fx: &Fixture) -> Check {
    let array = deleted(fx)?;
    let reuse = ArrayCopySemantics::ReuseInput;
    let shards = array.disassemble(reuse, ShardSemantics::Addressable);
    refused_as_deleted(shards, "taking apart")
}

fn replicated_shard(array: &ArrayRef) -> Check<ArrayRef> {
    array
        .fully_replicated_shard(ArrayCopySemantics::ReuseInput)
        .map_err(Stop::from)
}

fn str_26(fx: &Fixture) -> Check {
    reads(
        fx,
        &replicated_shard(&two(fx)?)?,
        &strings(0..2),
        "the shard",
    )
}

fn str_27(fx: &Fixture) -> Check {
    let both = fx.replicated(&fx.devices(2)?, &MemoryKind::default())?;
    let strings: [Bytes; 2] = [Bytes::from_static(b"a"), Bytes::from_static(b"b")];
    let shard = replicated_shard(&put(fx, &[2], &strings, &both)?)?;
    equal(shard.sharding().devices().len(), 1, "the number of devices")?;
    reads(fx, &shard, &strings, "the shard")
}

fn str_28(fx: &Fixture) -> Check {
    let array = deleted(fx)?;
    let shard = array.fully_replicated_shard(ArrayCopySemantics::ReuseInput);
    refused_as_deleted(shard, "taking a replica")
}
