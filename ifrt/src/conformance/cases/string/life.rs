//! Copies of arrays of strings.

use std::sync::Arc;

use super::{Case, case, deleted, injected, put, reads, refused_as_deleted, strings, two};
use crate::array::{ArrayCopySemantics, ArrayRef};
use crate::conformance::check::{Check, equal, refused};
use crate::conformance::fixture::Fixture;
use crate::device_list::DeviceList;
use crate::fake::fault::{Fault, Gate, Op, When};
use crate::memory::MemoryKind;
use crate::status::{Code, Result};

pub(super) const CASES: &[Case] = &[
    case("STR-20", "copy", str_20),
    case("STR-21", "copy_beyond_this_process", str_21),
    case("STR-22", "copy_of_a_deleted_array_refused", str_22),
    case("STR-23", "copy_to_more_devices_refused", str_23),
    case("STR-24", "copy_waits_for_the_strings", str_24),
    case("STR-25", "copy_brings_the_error_of_the_strings", str_25),
];

fn copies(fx: &Fixture, array: &ArrayRef, devices: DeviceList) -> Result<Vec<ArrayRef>> {
    let always = ArrayCopySemantics::AlwaysCopy;
    let arrays = [Arc::clone(array)];
    fx.client.copy_arrays(&arrays, Some(devices), None, always)
}

fn copy(fx: &Fixture, array: &ArrayRef, devices: DeviceList) -> Check<ArrayRef> {
    let mut copies = copies(fx, array, devices)?;
    equal(copies.len(), 1, "the number of copies")?;
    Ok(copies.remove(0))
}

fn str_20(fx: &Fixture) -> Check {
    let copied = copy(fx, &two(fx)?, fx.devices_at(&[1])?)?;
    reads(fx, &copied, &strings(0..2), "the copy")
}

fn str_21(fx: &Fixture) -> Check {
    let fx = fx.multi_process()?;
    let (here, there) = ([fx.device(0)?, fx.device(1)?], fx.unreachable_device()?);
    let [first, second] = here;
    let from = DeviceList::new([first.clone(), there.clone(), second.clone()]);
    let replicated = fx.replicated(&from, &MemoryKind::default())?;
    let array = put(&fx, &[2], &strings(0..2), &replicated)?;
    let to = DeviceList::new([second, there, first]);
    let copied = copy(&fx, &array, to.clone())?;
    equal(copied.sharding().devices(), &to, "the devices")?;
    let shards = fx.shards(&copied)?;
    equal(shards.len(), 2, "the number of shards")?;
    for shard in &shards {
        reads(&fx, shard, &strings(0..2), "a shard")?;
    }
    Ok(())
}

fn str_22(fx: &Fixture) -> Check {
    let array = deleted(fx)?;
    refused_as_deleted(copies(fx, &array, fx.devices_at(&[1])?), "the copy")
}

fn str_23(fx: &Fixture) -> Check {
    let made = copies(fx, &two(fx)?, fx.devices(2)?);
    refused(made, Code::InvalidArgument, "copying to more devices")?;
    Ok(())
}

fn str_24(fx: &Fixture) -> Check {
    let (faults, gate) = (fx.faults()?, Gate::new());
    faults.add(Op::MakeArray, When::Once, Fault::Slow(gate.clone()));
    let copied = copy(fx, &two(fx)?, fx.devices_at(&[1])?)?;
    let ready = copied.ready();
    equal(
        ready.peek(),
        None,
        "the result before the strings are there",
    )?;
    gate.open();
    fx.value(&ready)?;
    reads(fx, &copied, &strings(0..2), "the copy")
}

fn str_25(fx: &Fixture) -> Check {
    let faults = fx.faults()?;
    faults.add(Op::MakeArray, When::Once, Fault::Fail(injected()));
    let copied = copy(fx, &two(fx)?, fx.devices_at(&[1])?)?;
    equal(fx.result(&copied.ready())?, Err(injected()), "the result")
}
