//! Arrays from host buffers, and back.

use bytes::Bytes;

use super::{Case, case, is_made_of};
use crate::array::{ArrayCopySemantics, ShardSemantics};
use crate::conformance::check::{Check, check, equal};
use crate::conformance::data::{Host, f32s, watched};
use crate::conformance::fixture::{Fixture, in_context, spec_of};
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::host_buffer::{HostBuffer, HostData};
use crate::memory::MemoryKind;
use crate::shape::Shape;

pub(super) const CASES: &[Case] = &[
    case("ARR-01", "make_from_host_buffer", arr_01),
    case("ARR-02", "make_with_default_layout", arr_02),
    case("ARR-03", "make_replicated_beyond_this_process", arr_03),
    case("ARR-04", "on_done_called", arr_04),
    case("ARR-05", "borrowed_memory_is_free_at_return", arr_05),
    case("ARR-06", "shared_memory_may_be_dropped_at_once", arr_06),
    case("ARR-07", "shared_memory_is_never_written", arr_07),
    case("ARR-08", "layout_is_default_in_each_memory", arr_08),
    case("ARR-09", "read_from_each_memory", arr_09),
    case("ARR-10", "make_from_strides", arr_10),
    case("ARR-11", "make_replicated_from_gapped_strides", arr_11),
    case("ARR-12", "make_replicated", arr_12),
    case("ARR-13", "read_into_strides", arr_13),
    case("ARR-23", "made_as_asked_in_each_memory", arr_23),
    case("ARR-24", "four_bit_integers", arr_24),
    case("ARR-25", "tokens", arr_25),
];

fn standard_host() -> Check<Host> {
    Host::iota(DType::F32, &[2, 3])
}

fn arr_01(fx: &Fixture) -> Check {
    let (host, sharding) = (standard_host()?, fx.single(0)?);
    let array = in_context(|| fx.put(&host, &sharding))?;
    is_made_of(fx, &array, &host, &sharding)
}

fn arr_02(fx: &Fixture) -> Check {
    let (host, sharding) = (standard_host()?, fx.single(0)?);
    let client = &fx.client;
    let default = client.default_layout_of(host.dtype, &host.shape, &sharding)?;
    let layout = Some(default.clone());
    let array =
        in_context(|| client.make_array_from_host_buffer(host.buffer(), sharding.clone(), layout))?;
    is_made_of(fx, &array, &host, &sharding)?;
    equal(
        array.layout()?.unwrap_or_else(|| default.clone()),
        default,
        "the layout",
    )?;
    equal(fx.read(&array)?, host.bytes, "the data")
}

fn arr_03(fx: &Fixture) -> Check {
    let fx = fx.multi_process()?;
    let devices = DeviceList::new([fx.unreachable_device()?, fx.device(0)?]);
    let host = standard_host()?;
    let sharding = fx.even(&[2, 3], &[2, 3], &devices, &MemoryKind::default())?;
    let array = in_context(|| fx.put(&host, &sharding))?;
    is_made_of(&fx, &array, &host, &sharding)
}

fn arr_04(fx: &Fixture) -> Check {
    let (host, sharding) = (standard_host()?, fx.single(0)?);
    for ends_by_deletion in [false, true] {
        let (memory, watch) = watched(&host.bytes);
        let buffer = HostBuffer::dense(HostData::Shared(memory), host.dtype, host.shape.clone());
        let array = fx.put_buffer(buffer, &sharding)?;
        fx.ready(&array)?;
        if ends_by_deletion {
            fx.value(&array.delete())?;
            watch.given_back()?;
        }
        drop(array);
        if !ends_by_deletion {
            watch.given_back()?;
        }
    }
    Ok(())
}

fn arr_05(fx: &Fixture) -> Check {
    let host = standard_host()?;
    let mut memory = host.bytes.to_vec();
    let data = HostData::Borrowed(&memory);
    let buffer = HostBuffer::dense(data, host.dtype, host.shape.clone());
    let array = fx.put_buffer(buffer, &fx.single(0)?)?;
    memory.fill(0xff);
    equal(
        fx.read(&array)?,
        host.bytes,
        "the data after the memory was overwritten",
    )
}

fn arr_06(fx: &Fixture) -> Check {
    let host = standard_host()?;
    let array = {
        let memory = Bytes::copy_from_slice(&host.bytes);
        let data = HostData::Shared(memory);
        let buffer = HostBuffer::dense(data, host.dtype, host.shape.clone());
        fx.put_buffer(buffer, &fx.single(0)?)?
    };
    fx.ready(&array)?;
    equal(fx.read(&array)?, host.bytes, "the data")
}

fn arr_07(fx: &Fixture) -> Check {
    let host = standard_host()?;
    let memory = Bytes::copy_from_slice(&host.bytes);
    let data = HostData::Shared(memory.clone());
    let buffer = HostBuffer::dense(data, host.dtype, host.shape.clone());
    let array = fx.put_buffer(buffer, &fx.single(0)?)?;
    fx.ready(&array)?;
    fx.value(&array.delete())?;
    drop(array);
    equal(
        memory,
        host.bytes,
        "the shared memory after the array is gone",
    )
}

fn arr_08(fx: &Fixture) -> Check {
    let host = standard_host()?;
    for kind in fx.memory_kinds()? {
        let array = fx.put(&host, &fx.single_in(0, &kind)?)?;
        fx.ready(&array)?;
        let device = fx.device(0)?;
        let default = fx
            .client
            .default_layout(host.dtype, &host.shape, &device, &kind)?;
        let layout = array.layout()?.unwrap_or_else(|| default.clone());
        equal(layout, default, &format!("the layout in {kind}"))?;
    }
    Ok(())
}

fn arr_09(fx: &Fixture) -> Check {
    let host = standard_host()?;
    for kind in fx.memory_kinds()? {
        let array = fx.put(&host, &fx.single_in(0, &kind)?)?;
        equal(
            fx.read(&array)?,
            host.bytes.clone(),
            &format!("the data in {kind}"),
        )?;
    }
    Ok(())
}

fn arr_10(fx: &Fixture) -> Check {
    let host = standard_host()?;
    let columns = f32s(&[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    for kind in fx.memory_kinds()? {
        let buffer = HostBuffer {
            byte_strides: Some([4, 8].into()),
            ..HostBuffer::dense(HostData::Borrowed(&columns), host.dtype, host.shape.clone())
        };
        let array = fx.put_buffer(buffer, &fx.single_in(0, &kind)?)?;
        equal(
            fx.read(&array)?,
            host.bytes.clone(),
            &format!("the data in {kind}"),
        )?;
    }
    Ok(())
}

fn arr_11(fx: &Fixture) -> Check {
    let devices = fx.client.addressable_devices().to_vec();
    let devices = DeviceList::new(devices);
    for kind in fx.memory_kinds()? {
        let data = HostData::Borrowed(&[0, 0xff, 1, 0xff, 2, 0xff, 3, 0xff]);
        let buffer = HostBuffer {
            byte_strides: Some([2, 4].into()),
            ..HostBuffer::dense(data, DType::S8, Shape::new([2, 2])?)
        };
        let array = fx.put_buffer(buffer, &fx.replicated(&devices, &kind)?)?;
        for (position, shard) in fx.read_shards(&array)?.iter().enumerate() {
            let what = format!("shard {position} in {kind}");
            equal(&shard[..], &[0, 2, 1, 3][..], &what)?;
        }
    }
    Ok(())
}

fn arr_12(fx: &Fixture) -> Check {
    let host = standard_host()?;
    let devices = DeviceList::new(fx.client.addressable_devices().to_vec());
    let sharding = fx.replicated(&devices, &MemoryKind::default())?;
    let array = {
        let memory = Bytes::copy_from_slice(&host.bytes);
        let data = HostData::Shared(memory);
        let buffer = HostBuffer::dense(data, host.dtype, host.shape.clone());
        fx.put_buffer(buffer, &sharding)?
    };
    fx.ready(&array)?;
    let shards = array.disassemble(ArrayCopySemantics::ReuseInput, ShardSemantics::Addressable)?;
    equal(shards.len(), devices.len(), "the number of shards")?;
    for (shard, device) in shards.iter().zip(&devices) {
        let expected = DeviceList::new([device.clone()]);
        equal(
            shard.sharding().devices(),
            &expected,
            "the device of a shard",
        )?;
        equal(fx.read(shard)?, host.bytes.clone(), "the data of a shard")?;
    }
    Ok(())
}

fn arr_13(fx: &Fixture) -> Check {
    fx.needs(fx.caps.read_strides, "reads into strides")?;
    let host = standard_host()?;
    for kind in fx.memory_kinds()? {
        let array = fx.put(&host, &fx.single_in(0, &kind)?)?;
        let columns = fx.value(&array.copy_to_host(Some(&[4, 8])))?.into_bytes()?;
        let expected = f32s(&[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        equal(columns, expected, &format!("the columns in {kind}"))?;
    }
    Ok(())
}

fn arr_23(fx: &Fixture) -> Check {
    let host = standard_host()?;
    for kind in fx.memory_kinds()? {
        let sharding = fx.single_in(0, &kind)?;
        let array = in_context(|| fx.put(&host, &sharding))?;
        is_made_of(fx, &array, &host, &sharding)?;
        fx.ready(&array)?;
        equal(
            fx.read(&array)?,
            host.bytes.clone(),
            &format!("the data in {kind}"),
        )?;
    }
    Ok(())
}

fn arr_24(fx: &Fixture) -> Check {
    fx.needs(fx.caps.four_bit_integers, "integers of four bits")?;
    let host = Host::new(DType::S4, &[2, 2], Bytes::from_static(&[1, 2, 3, 4]))?;
    let devices = DeviceList::new(fx.client.addressable_devices().to_vec());
    for kind in fx.memory_kinds()? {
        let array = fx.put(&host, &fx.replicated(&devices, &kind)?)?;
        fx.ready(&array)?;
        for shard in fx.read_shards(&array)? {
            equal(shard, host.bytes.clone(), &format!("a shard in {kind}"))?;
        }
    }
    Ok(())
}

fn arr_25(fx: &Fixture) -> Check {
    fx.needs(fx.caps.tokens, "tokens")?;
    let host = Host::new(DType::Token, &[], Bytes::new())?;
    let devices = DeviceList::new(fx.client.addressable_devices().to_vec());
    for kind in fx.memory_kinds()? {
        let sharding = fx.replicated(&devices, &kind)?;
        let buffer = HostBuffer::dense(HostData::Borrowed(&[]), host.dtype, host.shape.clone());
        let token = fx.put_buffer(buffer, &sharding)?;
        check(fx.read(&token)?.is_empty(), "a token reads as no bytes")?;
        if fx.caps.error_arrays {
            let error = crate::Status::internal("injected error");
            let failed = fx.error_array(&error, &spec_of(&host, &sharding))?;
            equal(
                fx.result(&failed.copy_to_host(None))?.err(),
                Some(error),
                "the error",
            )?;
        }
    }
    Ok(())
}
