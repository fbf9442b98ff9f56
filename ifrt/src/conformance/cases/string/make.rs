//! Making and reading arrays of strings.

use std::sync::Arc;

use bytes::Bytes;

use super::{Case, buffer, case, deleted, injected, put, reads, refused_as_deleted, strings, two};
use crate::client::HostShards;
use crate::conformance::check::{Check, check, equal, refused};
use crate::conformance::data::{shape, watched};
use crate::conformance::fixture::{Fixture, in_context};
use crate::dtype::DType;
use crate::fake::fault::{Fault, Gate, Op, When};
use crate::host_buffer::HostBuffer;
use crate::memory::MemoryKind;
use crate::sharding::{ShardingKind, ShardingRef};
use crate::status::Code;
use crate::value::ValueRef;

pub(super) const CASES: &[Case] = &[
    case("ARR-21", "make_and_read", arr_21),
    case("ARR-22", "make_from_shards", arr_22),
    case("STR-01", "make", str_01),
    case("STR-03", "dropping_gives_the_strings_back", str_03),
    case("STR-04", "missing_shards_refused", str_04),
    case("STR-05", "deletion_gives_the_strings_back", str_05),
    case("STR-06", "ready_waits_for_the_strings", str_06),
    case("STR-07", "ready_brings_the_error_of_the_strings", str_07),
    case("STR-08", "make_from_host_buffer", str_08),
    case("STR-09", "strides_refused", str_09),
    case("STR-10", "opaque_sharding_refused", str_10),
    case("STR-30", "read", str_30),
    case("STR-31", "read_of_a_deleted_array_refused", str_31),
    case("STR-32", "read_of_a_sharded_array_refused", str_32),
    case("STR-33", "read_waits_for_the_strings", str_33),
    case("STR-34", "read_brings_the_error_of_the_strings", str_34),
];

fn arr_21(fx: &Fixture) -> Check {
    let sharding = fx.single(0)?;
    let array = in_context(|| put(fx, &[2, 3], &strings(0..6), &sharding))?;
    fx.has_context(&(Arc::clone(&array) as ValueRef))?;
    equal(array.dtype(), DType::String, "the dtype")?;
    reads(fx, &array, &strings(0..6), "the strings")
}

/// `[2,3]` in two rows on two devices.
fn rows(fx: &Fixture) -> Check<ShardingRef> {
    let devices = fx.devices(2)?;
    fx.even(&[2, 3], &[1, 3], &devices, &MemoryKind::default())
}

fn spec(sharding: &ShardingRef) -> Check<crate::ArraySpec> {
    Ok(crate::ArraySpec {
        dtype: DType::String,
        shape: shape(&[2, 3])?,
        sharding: Arc::clone(sharding),
        layout: None,
    })
}

fn arr_22(fx: &Fixture) -> Check {
    fx.needs(fx.caps.strings, "arrays of strings")?;
    let (low, high) = (strings(0..3), strings(3..6));
    let sharding = rows(fx)?;
    let array = |first: &[Bytes], second: &[Bytes]| -> Check<HostShards<'static>> {
        Ok(HostShards {
            spec: spec(&sharding)?,
            buffers: vec![
                (vec![0], buffer(&[1, 3], first)?),
                (vec![1], buffer(&[1, 3], second)?),
            ],
        })
    };
    let arrays = vec![array(&low, &high)?, array(&high, &low)?];
    let made = fx.client.make_arrays_from_host_buffer_shards(arrays)?;
    equal(made.len(), 2, "the number of arrays")?;
    for (i, array) in made.iter().enumerate() {
        fx.ready(array)?;
        for (j, shard) in fx.shards(array)?.iter().enumerate() {
            let expected = if (i + j) % 2 == 0 { &low } else { &high };
            reads(fx, shard, expected, &format!("shard {j} of array {i}"))?;
        }
    }
    Ok(())
}

fn str_01(fx: &Fixture) -> Check {
    fx.ready(&two(fx)?)
}

fn str_03(fx: &Fixture) -> Check {
    let (string, watch) = watched(&Bytes::from_static(b"lent"));
    let array = put(fx, &[1], &[string], &fx.single(0)?)?;
    fx.ready(&array)?;
    drop(array);
    watch.given_back()
}

fn str_04(fx: &Fixture) -> Check {
    fx.needs(fx.caps.strings, "arrays of strings")?;
    let shards = HostShards {
        spec: spec(&rows(fx)?)?,
        buffers: vec![(vec![0], buffer(&[1, 3], &strings(0..3))?)],
    };
    let made = fx.client.make_arrays_from_host_buffer_shards(vec![shards]);
    refused(
        made,
        Code::InvalidArgument,
        "making an array of half its shards",
    )?;
    let made =
        fx.client
            .make_array_from_host_buffer(buffer(&[3], &strings(0..2))?, fx.single(0)?, None);
    refused(
        made,
        Code::InvalidArgument,
        "making an array of too few strings",
    )?;
    Ok(())
}

fn str_05(fx: &Fixture) -> Check {
    let (string, watch) = watched(&Bytes::from_static(b"lent"));
    let array = put(fx, &[1], &[string], &fx.single(0)?)?;
    fx.ready(&array)?;
    fx.value(&array.delete())?;
    check(array.is_deleted(), "the array is deleted")?;
    refused_as_deleted(fx.result(&array.ready())?, "readiness")?;
    watch.given_back()
}

fn str_06(fx: &Fixture) -> Check {
    let (faults, gate) = (fx.faults()?, Gate::new());
    faults.add(Op::MakeArray, When::Once, Fault::Slow(gate.clone()));
    let array = two(fx)?;
    let ready = array.ready();
    equal(
        ready.peek(),
        None,
        "the result before the strings are there",
    )?;
    gate.open();
    fx.value(&ready)
}

fn str_07(fx: &Fixture) -> Check {
    let faults = fx.faults()?;
    faults.add(Op::MakeArray, When::Once, Fault::Fail(injected()));
    equal(fx.result(&two(fx)?.ready())?, Err(injected()), "the result")
}

fn str_08(fx: &Fixture) -> Check {
    let sharding = fx.replicated(&fx.devices(2)?, &MemoryKind::default())?;
    let array = put(fx, &[2], &strings(0..2), &sharding)?;
    for shard in fx.shards(&array)? {
        reads(fx, &shard, &strings(0..2), "a replica")?;
    }
    Ok(())
}

fn str_09(fx: &Fixture) -> Check {
    fx.needs(fx.caps.strings, "arrays of strings")?;
    let strided = HostBuffer {
        byte_strides: Some([8].into()),
        ..buffer(&[2], &strings(0..2))?
    };
    let made = fx
        .client
        .make_array_from_host_buffer(strided, fx.single(0)?, None);
    refused(
        made,
        Code::InvalidArgument,
        "making an array of strings with strides",
    )?;
    Ok(())
}

fn str_10(fx: &Fixture) -> Check {
    fx.needs(fx.caps.strings, "arrays of strings")?;
    let devices = fx.devices(1)?;
    let opaque = fx.sharding(ShardingKind::opaque(), &devices, &MemoryKind::default())?;
    let made = fx
        .client
        .make_array_from_host_buffer(buffer(&[2], &strings(0..2))?, opaque, None);
    refused(
        made,
        Code::InvalidArgument,
        "making an array of an opaque sharding",
    )?;
    Ok(())
}

fn str_30(fx: &Fixture) -> Check {
    let odd = [
        Bytes::from_static(b""),
        Bytes::from_static(b"\0\xff not text"),
        Bytes::from(vec![b'x'; 100_000]),
    ];
    let array = put(fx, &[3], &odd, &fx.single(0)?)?;
    reads(fx, &array, &odd, "the strings")
}

fn str_31(fx: &Fixture) -> Check {
    let array = deleted(fx)?;
    refused_as_deleted(fx.result(&array.copy_to_host(None))?, "the read")
}

fn str_32(fx: &Fixture) -> Check {
    fx.needs(fx.caps.strings, "arrays of strings")?;
    let buffers = [strings(0..3), strings(3..6)];
    let buffers = buffers.iter().enumerate();
    let buffers = buffers.map(|(shard, strings)| Ok((vec![shard], buffer(&[1, 3], strings)?)));
    let shards = HostShards {
        spec: spec(&rows(fx)?)?,
        buffers: buffers.collect::<Check<_>>()?,
    };
    let made = fx
        .client
        .make_arrays_from_host_buffer_shards(vec![shards])?;
    let read = fx.result(&made[0].copy_to_host(None))?;
    refused(
        read,
        Code::InvalidArgument,
        "reading an array in several shards",
    )?;
    Ok(())
}

fn str_33(fx: &Fixture) -> Check {
    let (faults, gate) = (fx.faults()?, Gate::new());
    faults.add(Op::MakeArray, When::Once, Fault::Slow(gate.clone()));
    let array = two(fx)?;
    let read = array.copy_to_host(None);
    equal(read.peek(), None, "the result before the strings are there")?;
    gate.open();
    fx.value(&read).map(drop)?;
    reads(fx, &array, &strings(0..2), "the strings")
}

fn str_34(fx: &Fixture) -> Check {
    let faults = fx.faults()?;
    faults.add(Op::MakeArray, When::Once, Fault::Fail(injected()));
    let read = fx.result(&two(fx)?.copy_to_host(None))?;
    equal(read.err(), Some(injected()), "the result")
}
