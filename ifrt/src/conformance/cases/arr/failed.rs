//! Arrays that are ready with an error, and what is made of them.

use std::sync::Arc;

use bytes::Bytes;

use super::{Case, case};
use crate::array::{ArrayCopySemantics, ArrayRef};
use crate::conformance::check::{Check, equal};
use crate::conformance::data::Host;
use crate::conformance::fixture::{Fixture, in_context, spec_of};
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::memory::MemoryKind;
use crate::status::Status;
use crate::value::ValueRef;

pub(super) const CASES: &[Case] = &[
    case("ARR-26", "make_error_arrays", arr_26),
    case("ARR-27", "make_error_arrays_beyond_this_process", arr_27),
    case("ARR-39", "empty_error_arrays", arr_39),
    case("ARR-41", "error_tokens", arr_41),
    case("ARR-44", "copies_of_an_error_array_fail", arr_44),
];

fn injected() -> Status {
    Status::internal("injected error")
}

#[track_caller]
fn fails(fx: &Fixture, array: &ArrayRef) -> Check {
    equal(fx.result(&array.ready())?, Err(injected()), "the result")
}

fn make_error_arrays(fx: &Fixture, devices: &DeviceList) -> Check {
    fx.needs(fx.caps.error_arrays, "error arrays")?;
    let host = Host::new(DType::S8, &[2, 2], Bytes::from_static(&[0; 4]))?;
    let sharding = fx.even(&[2, 2], &[2, 2], devices, &MemoryKind::default())?;
    let specs = vec![spec_of(&host, &sharding); 2];
    let made = in_context(|| fx.client.make_error_arrays(injected(), &specs))?;
    equal(made.len(), 2, "the number of arrays")?;
    for array in &made {
        equal(array.dtype(), host.dtype, "the dtype")?;
        equal(array.shape(), &host.shape, "the shape")?;
        equal(array.sharding(), &sharding, "the sharding")?;
        fails(fx, array)?;
        fx.has_context(&(Arc::clone(array) as ValueRef))?;
    }
    Ok(())
}

fn arr_26(fx: &Fixture) -> Check {
    make_error_arrays(fx, &fx.devices(2)?)
}

fn arr_27(fx: &Fixture) -> Check {
    let fx = fx.multi_process()?;
    let devices = DeviceList::new([fx.device(0)?, fx.unreachable_device()?]);
    make_error_arrays(&fx, &devices)
}

/// An error array, its copies and reads fail with its error in each memory.
fn spreads(fx: &Fixture, host: &Host) -> Check {
    for kind in fx.memory_kinds()? {
        let spec = spec_of(host, &fx.single_in(0, &kind)?);
        let array = fx.error_array(&injected(), &spec)?;
        fails(fx, &array)?;
        equal(
            fx.result(&array.copy_to_host(None))?.err(),
            Some(injected()),
            "the read",
        )?;
        for device in fx.client.addressable_devices() {
            let to = Some(DeviceList::new([Arc::clone(device)]));
            let reuse = ArrayCopySemantics::ReuseInput;
            let arrays = [Arc::clone(&array)];
            for copy in fx.client.copy_arrays(&arrays, to, None, reuse)? {
                fails(fx, &copy)?;
            }
        }
    }
    Ok(())
}

fn arr_39(fx: &Fixture) -> Check {
    spreads(fx, &Host::new(DType::F32, &[0, 1], Bytes::new())?)
}

fn arr_41(fx: &Fixture) -> Check {
    fx.needs(fx.caps.tokens, "tokens")?;
    spreads(fx, &Host::new(DType::Token, &[], Bytes::new())?)
}

fn arr_44(fx: &Fixture) -> Check {
    let host = Host::iota(DType::F32, &[2, 3])?;
    for (from, to) in fx.memory_pairs()? {
        let spec = spec_of(&host, &fx.single_in(0, &from)?);
        let array = fx.error_array(&injected(), &spec)?;
        equal(array.dtype(), host.dtype, "the dtype")?;
        equal(array.shape(), &host.shape, "the shape")?;
        equal(array.sharding(), &spec.sharding, "the sharding")?;
        for device in fx.client.addressable_devices() {
            let devices = Some(DeviceList::new([Arc::clone(device)]));
            let copy = ArrayCopySemantics::AlwaysCopy;
            let arrays = [Arc::clone(&array)];
            let copies = fx
                .client
                .copy_arrays(&arrays, devices, Some(to.clone()), copy)?;
            equal(copies.len(), 1, "the number of copies")?;
            fails(fx, &copies[0])?;
        }
    }
    Ok(())
}
