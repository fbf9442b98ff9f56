//! Arrays from the shards in host buffers, and back.

use std::sync::Arc;

use super::{Case, case, refused_now_or_later};
use crate::client::{HostShards, ReadShard, ReadShards};
use crate::conformance::check::{Check, equal};
use crate::conformance::data::{Host, shape};
use crate::conformance::fixture::{Fixture, in_context, spec_of};
use crate::dtype::DType;
use crate::host_buffer::HostValue;
use crate::memory::MemoryKind;
use crate::sharding::ShardingRef;
use crate::status::Code;
use crate::value::ValueRef;

pub(super) const CASES: &[Case] = &[
    case("ARR-14", "make_arrays_from_shards", arr_14),
    case("ARR-15", "read_shards_of_two_arrays", arr_15),
    case("ARR-16", "read_two_shards", arr_16),
    case("ARR-17", "read_one_of_two_replicas", arr_17),
    case("ARR-18", "shards_on_different_devices_refused", arr_18),
    case("ARR-19", "shards_in_different_memories_refused", arr_19),
    case("ARR-20", "make_arrays_from_shards_with_layout", arr_20),
];

/// The halves of the numbers 0 to 5.
fn halves() -> Check<(Host, Host)> {
    Ok((
        Host::f32(&[1, 3], &[0.0, 1.0, 2.0])?,
        Host::f32(&[1, 3], &[3.0, 4.0, 5.0])?,
    ))
}

/// `[2,3]` in two rows on two devices.
fn rows(fx: &Fixture) -> Check<ShardingRef> {
    let devices = fx.devices(2)?;
    fx.even(&[2, 3], &[1, 3], &devices, &MemoryKind::default())
}

fn arr_14(fx: &Fixture) -> Check {
    let (low, high) = halves()?;
    let whole = Host::iota(DType::F32, &[2, 3])?;
    let sharding = rows(fx)?;
    let array = |first: &Host, second: &Host| HostShards {
        spec: spec_of(&whole, &sharding),
        buffers: vec![(vec![0], first.buffer()), (vec![1], second.buffer())],
    };
    let arrays = vec![array(&low, &high), array(&high, &low)];
    let made = in_context(|| fx.client.make_arrays_from_host_buffer_shards(arrays))?;
    equal(made.len(), 2, "the number of arrays")?;
    for (i, array) in made.iter().enumerate() {
        fx.ready(array)?;
        fx.has_context(&(Arc::clone(array) as ValueRef))?;
        let shards = fx.shards(array)?;
        equal(shards.len(), 2, "the number of shards")?;
        for (j, shard) in shards.iter().enumerate() {
            let expected = if (i + j) % 2 == 0 { &low } else { &high };
            let what = format!("shard {j} of array {i}");
            equal(fx.read(shard)?, expected.bytes.clone(), &what)?;
            let device = fx.devices_at(&[j])?;
            equal(shard.sharding().devices(), &device, &what)?;
        }
    }
    Ok(())
}

/// Reads, one list of shards per value.
fn read(fx: &Fixture, arrays: &[(&crate::ArrayRef, &[&[usize]])]) -> Check<Vec<Vec<HostValue>>> {
    let reads = |shards: &&[usize]| ReadShard {
        shards: shards.to_vec(),
        byte_strides: None,
    };
    let arrays: Vec<ReadShards> = arrays
        .iter()
        .map(|(array, shards)| ReadShards {
            array: Arc::clone(array),
            reads: shards.iter().map(reads).collect(),
        })
        .collect();
    let completions = fx.client.copy_arrays_to_host_buffer_shards(&arrays)?;
    equal(completions.len(), arrays.len(), "the number of completions")?;
    completions.iter().map(|one| fx.value(one)).collect()
}

fn value(host: &Host) -> HostValue {
    HostValue::Bytes(host.bytes.clone())
}

fn arr_15(fx: &Fixture) -> Check {
    let (low, high) = halves()?;
    let (first, second) = (
        fx.put(&low, &fx.single(0)?)?,
        fx.put(&high, &fx.single(0)?)?,
    );
    let found = read(fx, &[(&first, &[&[0]]), (&second, &[&[0]])])?;
    equal(
        found,
        vec![vec![value(&low)], vec![value(&high)]],
        "the values",
    )
}

fn arr_16(fx: &Fixture) -> Check {
    let (low, high) = halves()?;
    let whole = Host::iota(DType::F32, &[2, 3])?;
    let array = fx.put_shards(spec_of(&whole, &rows(fx)?), &[low.clone(), high.clone()])?;
    let found = read(fx, &[(&array, &[&[0], &[1]])])?;
    equal(found, vec![vec![value(&low), value(&high)]], "the values")
}

fn arr_17(fx: &Fixture) -> Check {
    let whole = Host::iota(DType::F32, &[2, 3])?;
    let devices = fx.devices(2)?;
    let sharding = fx.even(&[2, 3], &[2, 3], &devices, &MemoryKind::default())?;
    let shards = HostShards {
        spec: spec_of(&whole, &sharding),
        buffers: vec![(vec![0, 1], whole.buffer())],
    };
    let made = fx
        .client
        .make_arrays_from_host_buffer_shards(vec![shards])?;
    equal(made.len(), 1, "the number of arrays")?;
    let found = read(fx, &[(&made[0], &[&[0, 1]])])?;
    equal(found, vec![vec![value(&whole)]], "the values")
}

fn refused_together(fx: &Fixture, shardings: [ShardingRef; 2], what: &str) -> Check {
    let whole = Host::iota(DType::F32, &[2, 3])?;
    let array = |sharding: &ShardingRef| HostShards {
        spec: spec_of(&whole, sharding),
        buffers: vec![(vec![0], whole.buffer())],
    };
    let arrays = shardings.iter().map(array).collect();
    let made = fx.client.make_arrays_from_host_buffer_shards(arrays);
    refused_now_or_later(fx, made, Code::InvalidArgument, what)
}

fn arr_18(fx: &Fixture) -> Check {
    let shardings = [fx.single(0)?, fx.single(1)?];
    refused_together(fx, shardings, "making arrays on different devices")
}

fn arr_19(fx: &Fixture) -> Check {
    let kinds = fx.memory_kinds()?;
    fx.needs(kinds.len() > 1, "second kind of memory")?;
    let shardings = [fx.single_in(0, &kinds[0])?, fx.single_in(0, &kinds[1])?];
    refused_together(fx, shardings, "making arrays in different memories")
}

fn arr_20(fx: &Fixture) -> Check {
    fx.needs(fx.caps.custom_layouts, "layouts of the caller's choice")?;
    let (low, high) = halves()?;
    let whole = Host::iota(DType::F32, &[2, 3])?;
    let sharding = rows(fx)?;
    let layout = fx
        .client
        .default_layout_of(whole.dtype, &whole.shape, &sharding)?;
    let mut spec = spec_of(&whole, &sharding);
    spec.layout = Some(layout.clone());
    let array = fx.put_shards(spec, &[low, high])?;
    fx.ready(&array)?;
    equal(array.layout()?, Some(layout.clone()), "the layout")?;
    let size = layout.byte_size(whole.dtype, &shape(&[1, 3])?)?;
    equal(array.byte_size()?, size, "the size of a shard")
}
