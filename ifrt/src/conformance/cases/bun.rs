//! BUN: bundles.

use std::sync::Arc;

use super::arr::{moves_shards, to_every_memory};
use super::{Case, case};
use crate::array::{ArrayCopySemantics, ArrayRef};
use crate::bundle::{BundleRef, CopySlice};
use crate::conformance::check::{Check, check, equal};
use crate::conformance::data::Host;
use crate::conformance::fixture::Fixture;
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::memory::MemoryKind;
use crate::value::{ValueRef, to_arrays, to_values};

pub(super) const CASES: &[Case] = &[
    case("BUN-01", "values", bun_01),
    case("BUN-02", "concat", bun_02),
    case("BUN-03", "slice", bun_03),
    case("BUN-04", "dropping_spares_what_others_hold", bun_04),
    case("BUN-05", "copy_arrays", bun_05),
    case("BUN-06", "reshard_arrays", bun_06),
    case("BUN-07", "copy_to_every_memory", |fx| {
        to_every_memory(fx, DType::F32, copy)
    }),
    case("BUN-08", "copy_four_bit_integers_to_every_memory", |fx| {
        to_every_memory(fx, DType::S4, copy)
    }),
    case("BUN-09", "copy_moves_shards", |fx| moves_shards(fx, copy)),
];

const REUSE: ArrayCopySemantics = ArrayCopySemantics::ReuseInput;

/// An array of one number.
fn number(fx: &Fixture, number: i32) -> Check<ArrayRef> {
    fx.put(&Host::i32(&[1], &[number])?, &fx.single(0)?)
}

fn bundle(fx: &Fixture, numbers: std::ops::Range<i32>) -> Check<BundleRef> {
    let arrays: Vec<ArrayRef> = numbers.map(|n| number(fx, n)).collect::<Check<_>>()?;
    Ok(fx.client.bundle(&to_values(&arrays), REUSE)?)
}

#[track_caller]
fn holds(fx: &Fixture, bundle: &BundleRef, numbers: std::ops::Range<i32>) -> Check {
    let arrays = to_arrays(&bundle.values(REUSE)?)?;
    equal(bundle.num_values(), arrays.len(), "the number of values")?;
    equal(arrays.len(), numbers.len(), "the number of values")?;
    for (array, number) in arrays.iter().zip(numbers) {
        equal(&fx.read(array)?[..], &number.to_ne_bytes()[..], "a value")?;
    }
    Ok(())
}

fn bun_01(fx: &Fixture) -> Check {
    let bundle = bundle(fx, 0..2)?;
    fx.value(&bundle.ready())?;
    holds(fx, &bundle, 0..2)
}

fn bun_02(fx: &Fixture) -> Check {
    let bundles = [bundle(fx, 0..1)?, bundle(fx, 1..2)?];
    holds(fx, &fx.client.concat_bundles(&bundles, REUSE)?, 0..2)
}

fn bun_03(fx: &Fixture) -> Check {
    let slices = bundle(fx, 0..3)?.slice(&[1, 2], REUSE)?;
    equal(slices.len(), 2, "the number of slices")?;
    holds(fx, &slices[0], 0..1)?;
    holds(fx, &slices[1], 1..3)
}

fn bun_04(fx: &Fixture) -> Check {
    let bundle = bundle(fx, 0..10)?;
    let kept: Vec<ValueRef> = bundle.values(REUSE)?.into_iter().skip(5).collect();
    drop(bundle);
    for (value, expected) in kept.iter().zip(5..10_i32) {
        check(!value.is_deleted(), "a value that others hold lives")?;
        let array = to_arrays(std::slice::from_ref(value))?.remove(0);
        equal(
            &fx.read(&array)?[..],
            &expected.to_ne_bytes()[..],
            "the value",
        )?;
    }
    Ok(())
}

#[track_caller]
fn is_like(bundle: &BundleRef, array: &ArrayRef) -> Check<ArrayRef> {
    let copied = to_arrays(&bundle.values(REUSE)?)?;
    equal(copied.len(), 1, "the number of values")?;
    equal(copied[0].dtype(), array.dtype(), "the dtype")?;
    equal(copied[0].shape(), array.shape(), "the shape")?;
    Ok(Arc::clone(&copied[0]))
}

fn bun_05(fx: &Fixture) -> Check {
    let array = fx.standard()?;
    let bundle = fx.client.bundle(&to_values(&[Arc::clone(&array)]), REUSE)?;
    let devices = fx.devices_at(&[1])?;
    let slice = CopySlice {
        num_values: 1,
        devices: Some(devices.clone()),
        memory_kind: None,
    };
    let copied = is_like(&bundle.copy_arrays(&[slice], REUSE)?, &array)?;
    equal(copied.sharding().devices(), &devices, "the devices")?;
    equal(fx.read(&copied)?, fx.read(&array)?, "the data")
}

fn bun_06(fx: &Fixture) -> Check {
    fx.needs(fx.caps.reshard, "resharding")?;
    let array = fx.standard()?;
    let bundle = fx.client.bundle(&to_values(&[Arc::clone(&array)]), REUSE)?;
    let specs = bundle.array_specs()?;
    let resharded = is_like(&bundle.reshard_arrays(&specs, REUSE)?, &array)?;
    equal(fx.read(&resharded)?, fx.read(&array)?, "the data")
}

/// Copies one array by way of a bundle.
fn copy(
    fx: &Fixture,
    array: &ArrayRef,
    devices: Option<DeviceList>,
    memory_kind: Option<MemoryKind>,
    semantics: ArrayCopySemantics,
) -> Check<ArrayRef> {
    let bundle = fx.client.bundle(&to_values(&[Arc::clone(array)]), REUSE)?;
    let slice = CopySlice {
        num_values: 1,
        devices,
        memory_kind,
    };
    is_like(&bundle.copy_arrays(&[slice], semantics)?, array)
}
