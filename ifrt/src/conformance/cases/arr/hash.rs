//! Hashes of arrays.

use std::sync::Arc;

use super::{Case, case};
use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::array_hash::HashMode;
use crate::conformance::check::{Check, Stop, check, equal, refused};
use crate::conformance::data::{Host, shape};
use crate::conformance::fixture::{Fixture, spec_of};
use crate::dtype::DType;
use crate::index::IndexDomain;
use crate::layout::Layout;
use crate::memory::MemoryKind;
use crate::sharding::ShardingKind;
use crate::status::Code;
use crate::value::ValueRef;

pub(super) const CASES: &[Case] = &[
    case("ARR-46", "hash_differs_with_the_data", arr_46),
    case("ARR-47", "hash_ignores_replicas", arr_47),
    case("ARR-48", "hash_differs_with_the_order", arr_48),
    case("ARR-49", "hash_of_different_replicas_refused", arr_49),
    case("XAR-01", "only_the_logical_hash_ignores_layouts", xar_01),
];

const MODES: [HashMode; 2] = [HashMode::Physical, HashMode::Logical];

fn hash(fx: &Fixture, arrays: &[&ArrayRef], mode: HashMode) -> Check<Vec<u64>> {
    fx.needs(fx.caps.hash, "hashes")?;
    let values = arrays.iter().map(|array| Arc::clone(array) as ValueRef);
    let values: Vec<ValueRef> = values.collect();
    let hashes = fx.value(&fx.client.hash_values(&values, mode))?;
    equal(hashes.len(), arrays.len(), "the number of hashes")?;
    Ok(hashes)
}

/// Checks that both arrays have the same hash, or that they have not.
fn compare(fx: &Fixture, arrays: [&ArrayRef; 2], mode: HashMode, same: bool) -> Check {
    let hashes = hash(fx, &arrays, mode)?;
    let what = if same { "are equal" } else { "differ" };
    let holds = (hashes[0] == hashes[1]) == same;
    check(holds, &format!("the {mode:?} hashes {hashes:?} {what}"))
}

fn arr_46(fx: &Fixture) -> Check {
    fx.needs(fx.caps.hash, "hashes")?;
    let devices = fx.devices(2)?;
    let row = shape(&[1, 3])?;
    let kind = ShardingKind::Concrete {
        shape: shape(&[2, 3])?,
        shard_shapes: vec![row.clone(), row.clone()],
        index_domains: Some(vec![
            IndexDomain::new([0, 0], row.clone()),
            IndexDomain::new([1, 0], row),
        ]),
    };
    let sharding = fx.sharding(kind, &devices, &MemoryKind::default())?;
    let make = |first: &[f32; 3]| {
        let whole = Host::iota(DType::F32, &[2, 3])?;
        let shards = [
            Host::f32(&[1, 3], first)?,
            Host::f32(&[1, 3], &[3.0, 4.0, 5.0])?,
        ];
        fx.put_shards(spec_of(&whole, &sharding), &shards)
    };
    let (one, other) = (make(&[0.0, 1.0, 2.0])?, make(&[0.0, 1.0, 9.0])?);
    for mode in MODES {
        compare(fx, [&one, &other], mode, false)?;
        compare(fx, [&one, &one], mode, true)?;
    }
    Ok(())
}

fn arr_47(fx: &Fixture) -> Check {
    fx.needs(fx.caps.hash, "hashes")?;
    let host = Host::iota(DType::F32, &[2, 3])?;
    let single = fx.put(&host, &fx.single(0)?)?;
    let both = fx.replicated(&fx.devices(2)?, &MemoryKind::default())?;
    let replicated = fx.put(&host, &both)?;
    for mode in MODES {
        compare(fx, [&single, &replicated], mode, true)?;
    }
    Ok(())
}

fn arr_48(fx: &Fixture) -> Check {
    fx.needs(fx.caps.hash, "hashes")?;
    let make = |values| fx.put(&Host::f32(&[2, 2], values)?, &fx.single(0)?);
    let (one, other) = (make(&[1.0, 2.0, 3.0, 4.0])?, make(&[1.0, 3.0, 2.0, 4.0])?);
    for mode in MODES {
        compare(fx, [&one, &other], mode, false)?;
    }
    Ok(())
}

fn arr_49(fx: &Fixture) -> Check {
    fx.needs(fx.caps.hash, "hashes")?;
    let make = |position, values| fx.put(&Host::f32(&[2], values)?, &fx.single(position)?);
    let replicas = [make(0, &[1.0, 2.0])?, make(1, &[1.0, 3.0])?];
    let sharding = fx.replicated(&fx.devices(2)?, &MemoryKind::default())?;
    let array = fx.client.assemble_array(
        DType::F32,
        shape(&[2])?,
        sharding,
        &replicas,
        ArrayCopySemantics::ReuseInput,
        ShardSemantics::Addressable,
    )?;
    for mode in MODES {
        let values = [Arc::clone(&array) as ValueRef];
        let hashes = fx.result(&fx.client.hash_values(&values, mode))?;
        refused(hashes, Code::InvalidArgument, "hashing different replicas")?;
    }
    Ok(())
}

fn xar_01(fx: &Fixture) -> Check {
    fx.needs(
        fx.caps.hash && fx.caps.physical_layouts,
        "hashes of layouts",
    )?;
    let host = Host::iota(DType::F32, &[2, 3])?;
    let make = |order: [i64; 2]| -> Check<ArrayRef> {
        let layout = Some(Layout::from_minor_to_major(order)?);
        let (buffer, sharding) = (host.buffer(), fx.single(0)?);
        fx.client
            .make_array_from_host_buffer(buffer, sharding, layout)
            .map_err(Stop::from)
    };
    let (rows, columns) = (make([1, 0])?, make([0, 1])?);
    compare(fx, [&rows, &columns], HashMode::Physical, false)?;
    compare(fx, [&rows, &columns], HashMode::Logical, true)
}
