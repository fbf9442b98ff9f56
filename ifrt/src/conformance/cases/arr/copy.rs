//! Copies to other devices and memories, and bitcasts.

use std::sync::Arc;

use bytes::Bytes;

use super::{Case, case, refused_now_or_later};
use crate::array::{ArrayCopySemantics, ArrayRef};
use crate::conformance::check::{Check, Stop, check, equal, refused};
use crate::conformance::data::{Host, f32s, shape};
use crate::conformance::fixture::{Fixture, in_context, spec_of};
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::memory::MemoryKind;
use crate::sharding::ShardingKind;
use crate::status::Code;
use crate::value::ValueRef;

pub(super) const CASES: &[Case] = &[
    case("ARR-32", "copy_to_the_same_devices", arr_32),
    case("ARR-33", "bitcast", arr_33),
    case("ARR-34", "copy_to_reversed_devices", arr_34),
    case("ARR-35", "copy_from_different_devices_refused", arr_35),
    case("ARR-36", "copy_from_different_memories_refused", arr_36),
    case("ARR-37", "copies_have_default_layouts", arr_37),
    case("ARR-38", "copy_empty_arrays", arr_38),
    case("ARR-40", "copy_tokens", arr_40),
    case("ARR-42", "copy_to_every_memory", |fx| {
        to_every_memory(fx, DType::F32, copy)
    }),
    case("ARR-43", "copy_four_bit_integers_to_every_memory", |fx| {
        to_every_memory(fx, DType::S4, copy)
    }),
    case("ARR-45", "copy_moves_shards", |fx| moves_shards(fx, copy)),
];

/// A way to copy one array: directly or in a bundle.
pub(in crate::conformance::cases) type Copy = fn(
    &Fixture,
    &ArrayRef,
    Option<DeviceList>,
    Option<MemoryKind>,
    ArrayCopySemantics,
) -> Check<ArrayRef>;

fn copy(
    fx: &Fixture,
    array: &ArrayRef,
    devices: Option<DeviceList>,
    kind: Option<MemoryKind>,
    semantics: ArrayCopySemantics,
) -> Check<ArrayRef> {
    let arrays = [Arc::clone(array)];
    let mut copies = fx.client.copy_arrays(&arrays, devices, kind, semantics)?;
    equal(copies.len(), 1, "the number of copies")?;
    Ok(copies.remove(0))
}

fn arr_32(fx: &Fixture) -> Check {
    let array = fx.standard()?;
    let devices = Some(array.sharding().devices().clone());
    let always = ArrayCopySemantics::AlwaysCopy;
    let copied = in_context(|| copy(fx, &array, devices, None, always))?;
    fx.has_context(&(Arc::clone(&copied) as ValueRef))?;
    equal(fx.read(&copied)?, fx.read(&array)?, "the data")?;
    fx.value(&array.delete())?;
    fx.ready(&copied)
}

fn arr_33(fx: &Fixture) -> Check {
    fx.needs(fx.caps.bitcast, "bitcasts")?;
    let devices = fx.devices(2)?;
    let kind = MemoryKind::default();
    let scalar = Host::f32(&[], &[3.0])?;
    let array = fx.put(&scalar, &fx.even(&[], &[], &devices, &kind)?)?;
    let parts = Host::f32(&[2], &[3.0, 3.0])?;
    let spec = spec_of(&parts, &fx.even(&[2], &[1], &devices, &kind)?);
    let (arrays, specs) = ([Arc::clone(&array)], [spec.clone()]);
    let donate = ArrayCopySemantics::DonateInput;
    let mut cast = fx.client.bitcast_arrays(&arrays, &specs, donate)?;
    check(array.is_deleted(), "the input is consumed at return")?;
    equal(cast.len(), 1, "the number of arrays")?;
    let cast = cast.remove(0);
    fx.ready(&cast)?;
    equal(cast.dtype(), spec.dtype, "the dtype")?;
    equal(cast.shape(), &spec.shape, "the shape")?;
    check(
        Arc::ptr_eq(cast.sharding(), &spec.sharding),
        "the array has the very sharding of the spec",
    )?;
    equal(cast.layout()?, None, "the layout")?;
    for shard in fx.read_shards(&cast)? {
        equal(shard, f32s(&[3.0]), "a shard")?;
    }
    let again = fx.standard()?;
    let (arrays, specs) = ([again], [spec]);
    let made = fx.client.bitcast_arrays(&arrays, &specs, donate);
    refused_now_or_later(fx, made, Code::InvalidArgument, "a bitcast to another size")
}

fn arr_34(fx: &Fixture) -> Check {
    let (devices, kind) = (fx.devices(2)?, MemoryKind::default());
    let reversed = fx.devices_at(&[1, 0])?;
    let host = Host::iota(DType::F32, &[2, 3])?;
    let whole = shape(&[2, 3])?;
    let concrete = ShardingKind::Concrete {
        shape: whole.clone(),
        shard_shapes: vec![whole.clone(), whole],
        index_domains: None,
    };
    let shardings = [
        fx.sharding(concrete, &devices, &kind)?,
        fx.even(&[2, 3], &[2, 3], &devices, &kind)?,
    ];
    let make = |sharding| fx.put_shards(spec_of(&host, sharding), &[host.clone(), host.clone()]);
    let arrays: Vec<ArrayRef> = shardings.iter().map(make).collect::<Check<_>>()?;
    let always = ArrayCopySemantics::AlwaysCopy;
    let to = Some(reversed.clone());
    let copies = in_context(|| fx.client.copy_arrays(&arrays, to, None, always))?;
    equal(copies.len(), 2, "the number of copies")?;
    for (copied, sharding) in copies.iter().zip(&shardings) {
        let expected = sharding.with_device_assignment(Some(reversed.clone()), None)?;
        equal(copied.sharding(), &expected, "the sharding")?;
        fx.has_context(&(Arc::clone(copied) as ValueRef))?;
        for shard in fx.read_shards(copied)? {
            equal(shard, host.bytes.clone(), "a shard")?;
        }
    }
    Ok(())
}

fn refused_together(fx: &Fixture, arrays: &[ArrayRef], what: &str) -> Check {
    let to = Some(fx.devices(1)?);
    let always = ArrayCopySemantics::AlwaysCopy;
    let copied = fx.client.copy_arrays(arrays, to, None, always);
    refused(copied, Code::InvalidArgument, what)?;
    Ok(())
}

fn arr_35(fx: &Fixture) -> Check {
    let host = Host::iota(DType::F32, &[2, 3])?;
    let arrays = [
        fx.put(&host, &fx.single(0)?)?,
        fx.put(&host, &fx.single(1)?)?,
    ];
    refused_together(fx, &arrays, "copying arrays from different devices")
}

fn arr_36(fx: &Fixture) -> Check {
    let kinds = fx.memory_kinds()?;
    fx.needs(kinds.len() > 1, "second kind of memory")?;
    let host = Host::iota(DType::F32, &[2, 3])?;
    let arrays = [
        fx.put(&host, &fx.single_in(0, &kinds[0])?)?,
        fx.put(&host, &fx.single_in(0, &kinds[1])?)?,
    ];
    refused_together(fx, &arrays, "copying arrays from different memories")
}

fn arr_37(fx: &Fixture) -> Check {
    let host = Host::iota(DType::F32, &[2, 3])?;
    let device = fx.device(0)?;
    for (from, to) in fx.memory_pairs()? {
        let array = fx.put(&host, &fx.single_in(0, &from)?)?;
        let always = ArrayCopySemantics::AlwaysCopy;
        let copied = copy(fx, &array, None, Some(to.clone()), always)?;
        fx.ready(&copied)?;
        for (array, kind) in [(&array, &from), (&copied, &to)] {
            let default = fx
                .client
                .default_layout(host.dtype, &host.shape, &device, kind)?;
            let layout = array.layout()?.unwrap_or_else(|| default.clone());
            equal(
                layout,
                default,
                &format!("the layout in {kind}, from {from} to {to}"),
            )?;
        }
    }
    Ok(())
}

/// An array without bytes can be made, copied everywhere and read.
fn copies_nothing(fx: &Fixture, host: &Host) -> Check {
    for kind in fx.memory_kinds()? {
        let array = fx.put(host, &fx.single_in(0, &kind)?)?;
        fx.ready(&array)?;
        for device in fx.client.addressable_devices() {
            let to = Some(DeviceList::new([Arc::clone(device)]));
            let copied = copy(fx, &array, to, None, ArrayCopySemantics::ReuseInput)?;
            fx.ready(&copied)?;
            check(fx.read(&copied)?.is_empty(), "the copy reads as no bytes")?;
        }
    }
    Ok(())
}

fn arr_38(fx: &Fixture) -> Check {
    copies_nothing(fx, &Host::new(DType::F32, &[0, 1], Bytes::new())?)
}

fn arr_40(fx: &Fixture) -> Check {
    fx.needs(fx.caps.tokens, "tokens")?;
    copies_nothing(fx, &Host::new(DType::Token, &[], Bytes::new())?)
}

/// From each memory of a device to each memory of each device.
pub(in crate::conformance::cases) fn to_every_memory(
    fx: &Fixture,
    dtype: DType,
    copy: Copy,
) -> Check {
    fx.needs(
        !dtype.is_sub_byte() || fx.caps.four_bit_integers,
        "integers of four bits",
    )?;
    let host = Host::iota(dtype, &[2, 3])?;
    for (from, to) in fx.memory_pairs()? {
        let array = fx.put(&host, &fx.single_in(0, &from)?)?;
        for device in fx.client.addressable_devices() {
            let devices = DeviceList::new([Arc::clone(device)]);
            let (asked, kind) = (Some(devices.clone()), Some(to.clone()));
            let copied = copy(fx, &array, asked, kind, ArrayCopySemantics::AlwaysCopy)?;
            let what = format!("the copy from {from} to {to} of device {}", device.id());
            fx.ready(&copied)?;
            equal(copied.sharding().devices(), &devices, &what)?;
            equal(copied.sharding().memory_kind(), &to, &what)?;
            equal(fx.read(&copied)?, host.bytes.clone(), &what)?;
        }
    }
    Ok(())
}

/// Shards that are in place stay, others move.
pub(in crate::conformance::cases) fn moves_shards(fx: &Fixture, copy: Copy) -> Check {
    let (devices, kind) = (fx.devices(4)?, MemoryKind::default());
    let sharding = fx.even(&[4, 3], &[1, 3], &devices, &kind)?;
    let shards: Vec<Host> = (0..4)
        .map(|number| Host::i32(&[1, 3], &[number; 3]))
        .collect::<Check<_>>()?;
    let whole = Host::new(DType::S32, &[4, 3], Bytes::from(vec![0; 48]))?;
    let array = fx.put_shards(spec_of(&whole, &sharding), &shards)?;
    let to = fx.devices_at(&[0, 2, 1, 3])?;
    let reuse = ArrayCopySemantics::ReuseInput;
    let copied = copy(fx, &array, Some(to.clone()), None, reuse)?;
    equal(copied.sharding().devices(), &to, "the devices")?;
    let found = fx.shards(&copied)?;
    equal(found.len(), 4, "the number of shards")?;
    for (position, (shard, expected)) in found.iter().zip(&shards).enumerate() {
        let device = to.devices().get(position).cloned();
        let device = device.ok_or_else(|| Stop::failed("there are more shards than devices"))?;
        equal(
            shard.sharding().devices(),
            &DeviceList::new([device]),
            "the device of a shard",
        )?;
        equal(
            fx.read(shard)?,
            expected.bytes.clone(),
            &format!("shard {position}"),
        )?;
    }
    check(!array.is_deleted(), "the source stays usable")
}
