//! Arrays from host data, and arrays that have failed.

use std::sync::Arc;

use bytes::Bytes;

use super::client::FakeClient;
use super::elements::{Place, copy_block, dense_strides, filled, host_bytes, normalize};
use super::fault::Op;
use super::heap::ShardSpec;
use super::task::{Contents, later};
use crate::array::ArrayRef;
use crate::array_spec::ArraySpec;
use crate::client::HostShards;
use crate::completion::Completion;
use crate::dtype::DType;
use crate::host_buffer::{HostBuffer, HostData, HostValue};
use crate::layout::Layout;
use crate::shape::Shape;
use crate::sharding::{ShardingKind, ShardingRef};
use crate::status::{Result, Status};

/// See [`crate::Client::make_array_from_host_buffer`].
pub(super) fn from_host_buffer(
    client: &FakeClient,
    buffer: HostBuffer<'_>,
    sharding: ShardingRef,
    layout: Option<Layout>,
) -> Result<ArrayRef> {
    let spec = ArraySpec {
        dtype: buffer.dtype,
        shape: buffer.shape.clone(),
        sharding,
        layout,
    };
    let shards = client.shard_specs(&spec)?;
    check_whole(&spec, &shards)?;
    check_layout(&spec, &shards)?;
    check_data(&buffer)?;
    let bytes = shards.iter().map(|shard| shard.bytes);
    client
        .heap()
        .check_room(bytes.fold(0, u64::saturating_add))?;
    let strike = client.faults().strike(Op::MakeArray)?;
    let contents = later(strike.permit(), read(buffer)?);
    let allocate = |shard| client.heap().allocate(shard, contents.clone());
    let buffers = shards.into_iter().map(allocate).collect();
    client.array(spec, buffers, Completion::done())
}

/// Each shard must be the whole array. A flag that says so is not believed.
fn check_whole(spec: &ArraySpec, shards: &[ShardSpec]) -> Result<()> {
    let sharding = &spec.sharding;
    if shards.is_empty() {
        return Err(invalid(
            "an array of host data needs a device that this process can reach",
        ));
    }
    if (sharding.devices().len() > 1 && !sharding.is_fully_replicated())
        || shards.iter().any(|shard| shard.shape != spec.shape)
    {
        return Err(invalid(format!(
            "one host buffer makes an array on one device or a fully replicated one, but not one \
             with the sharding {sharding:?}; use make_arrays_from_host_buffer_shards"
        )));
    }
    Ok(())
}

fn check_layout(spec: &ArraySpec, shards: &[ShardSpec]) -> Result<()> {
    let Some(layout) = &spec.layout else {
        return Ok(());
    };
    if spec.dtype == DType::String {
        return Err(invalid("arrays of strings have no layout"));
    }
    let rank = layout.minor_to_major().len();
    match shards.iter().find(|shard| shard.shape.rank() != rank) {
        Some(shard) => Err(invalid(format!(
            "layout {layout} is not for shards of shape {}",
            shard.shape
        ))),
        None => Ok(()),
    }
}

/// Checks that the buffer holds what it says.
fn check_data(buffer: &HostBuffer<'_>) -> Result<()> {
    match (buffer.dtype, &buffer.data) {
        (DType::String, HostData::Strings(strings)) => check_strings(buffer, strings),
        (DType::String, _) => Err(invalid("an array of strings cannot be made from bytes")),
        (dtype, HostData::Strings(_)) => Err(invalid(format!(
            "an array of dtype {dtype} cannot be made from strings"
        ))),
        (DType::Token, _) if buffer.shape.rank() == 0 => Ok(()),
        (DType::Token, _) => Err(invalid("a token has no dimensions")),
        _ => buffer.byte_range().map(drop),
    }
}

fn check_strings(buffer: &HostBuffer<'_>, strings: &[Bytes]) -> Result<()> {
    if buffer.byte_strides.is_some() || buffer.offset_bytes != 0 {
        return Err(invalid("arrays of strings are dense: they have no strides"));
    }
    if i64::try_from(strings.len()) != Ok(buffer.shape.num_elements()) {
        return Err(invalid(format!(
            "{} strings do not fill the shape {}",
            strings.len(),
            buffer.shape
        )));
    }
    Ok(())
}

/// The elements of a checked host buffer, dense and major to minor. Shared memory that has this
/// form already is kept, other memory is copied.
fn read(buffer: HostBuffer<'_>) -> Result<HostValue> {
    let (dtype, shape) = (buffer.dtype, &buffer.shape);
    let data: &[u8] = match &buffer.data {
        _ if dtype == DType::Token => return Ok(HostValue::Bytes(Bytes::new())),
        HostData::Strings(strings) => return Ok(HostValue::Strings(Arc::clone(strings))),
        HostData::Shared(data) if is_dense(&buffer)? && !dtype.is_sub_byte() => {
            return Ok(HostValue::Bytes(data.slice(buffer.byte_range()?)));
        }
        HostData::Shared(data) => data,
        HostData::Borrowed(data) => data,
    };
    let item = host_bytes(dtype, &Shape::scalar())?;
    let dense = dense_strides(shape, item)?;
    let mut out = filled(host_bytes(dtype, shape)?, 0)?;
    let from = Place {
        offset: buffer.offset_bytes,
        strides: buffer.byte_strides.as_deref().unwrap_or(&dense),
    };
    let to = Place {
        offset: 0,
        strides: &dense,
    };
    copy_block(shape.dims(), item, (data, &from), (&mut out, &to))?;
    normalize(dtype, &mut out);
    Ok(HostValue::Bytes(out.into()))
}

fn is_dense(buffer: &HostBuffer<'_>) -> Result<bool> {
    let Some(strides) = &buffer.byte_strides else {
        return Ok(true);
    };
    let item = host_bytes(buffer.dtype, &Shape::scalar())?;
    let dense = dense_strides(&buffer.shape, item)?;
    let mut axes = strides.iter().zip(&dense).zip(buffer.shape.dims());
    Ok(axes.all(|((stride, dense), dim)| stride == dense || *dim <= 1))
}

/// See [`crate::Client::make_arrays_from_host_buffer_shards`].
pub(super) fn from_shards(
    client: &FakeClient,
    arrays: Vec<HostShards<'_>>,
) -> Result<Vec<ArrayRef>> {
    let Some(first) = arrays.first().map(|array| Arc::clone(&array.spec.sharding)) else {
        return Ok(Vec::new());
    };
    let mut bytes = 0_u64;
    let mut plans = Vec::with_capacity(arrays.len());
    for HostShards { spec, buffers } in arrays {
        if spec.sharding.devices() != first.devices()
            || spec.sharding.memory_kind() != first.memory_kind()
        {
            return Err(invalid(
                "all arrays that are made at once must have the same devices and memory kind",
            ));
        }
        let shards = client.shard_specs(&spec)?;
        check_layout(&spec, &shards)?;
        check_cover(&shards, &buffers)?;
        let sizes = shards.iter().map(|shard| shard.bytes);
        bytes = sizes.fold(bytes, u64::saturating_add);
        plans.push((spec, shards, buffers));
    }
    client.heap().check_room(bytes)?;
    let strike = client.faults().strike(Op::MakeArray)?;
    let mut made = Vec::with_capacity(plans.len());
    for (spec, shards, buffers) in plans {
        let mut contents: Vec<Option<Contents>> = vec![None; shards.len()];
        for (indices, buffer) in buffers {
            let data = later(strike.permit(), read(buffer)?);
            for index in indices {
                contents[index] = Some(data.clone());
            }
        }
        let allocate = |(shard, contents)| client.heap().allocate(shard, contents);
        let contents = contents.into_iter().flatten();
        let buffers = shards.into_iter().zip(contents).map(allocate).collect();
        made.push(client.array(spec, buffers, Completion::done())?);
    }
    Ok(made)
}

/// Checks that the buffers give each shard once, with its dtype and shape.
fn check_cover(shards: &[ShardSpec], buffers: &[(Vec<usize>, HostBuffer<'_>)]) -> Result<()> {
    let mut covered = vec![false; shards.len()];
    for (indices, buffer) in buffers {
        if indices.is_empty() {
            return Err(invalid("a host buffer is for no shard"));
        }
        for index in indices {
            let (Some(shard), Some(covered)) = (shards.get(*index), covered.get_mut(*index)) else {
                return Err(invalid(format!(
                    "a host buffer is for shard {index}, but the array has {} addressable shards",
                    shards.len()
                )));
            };
            if buffer.dtype != shard.dtype || buffer.shape != shard.shape {
                return Err(invalid(format!(
                    "shard {index} is {}{}, but its host buffer is {}{}",
                    shard.dtype, shard.shape, buffer.dtype, buffer.shape
                )));
            }
            if std::mem::replace(covered, true) {
                return Err(invalid(format!("shard {index} has several host buffers")));
            }
        }
        check_data(buffer)?;
    }
    match covered.iter().position(|covered| !covered) {
        Some(index) => Err(invalid(format!("shard {index} has no host buffer"))),
        None => Ok(()),
    }
}

/// See [`crate::Client::make_error_arrays`]. The arrays take no memory.
pub(super) fn errors(
    client: &FakeClient,
    error: &Status,
    specs: &[ArraySpec],
) -> Result<Vec<ArrayRef>> {
    let strike = client.faults().strike(Op::MakeArray)?;
    let make = |spec: &ArraySpec| {
        let mut shards = match spec.sharding.kind() {
            // Nobody will ask for the shape of a shard of these.
            ShardingKind::Opaque(_) => opaque_shards(client, spec)?,
            _ => client.shard_specs(spec)?,
        };
        shards.iter_mut().for_each(|shard| shard.bytes = 0);
        let permit = strike.permit();
        let failed = permit.then({
            let error = error.clone();
            move |result| result.clone().and(Err(error))
        });
        let contents = failed.then(|result| match result {
            Err(status) => Err(status.clone()),
            Ok(()) => Err(Status::internal("an error array has no error")),
        });
        let allocate = |shard| client.heap().allocate(shard, contents.clone());
        let buffers = shards.into_iter().map(allocate).collect();
        // The array carries the error too, because it need not have a shard in this process.
        client.array(spec.clone(), buffers, failed)
    };
    specs.iter().map(make).collect()
}

fn opaque_shards(client: &FakeClient, spec: &ArraySpec) -> Result<Vec<ShardSpec>> {
    let sharding = &spec.sharding;
    client.check_devices(sharding.devices())?;
    let shard = |device| {
        client.shard_spec(
            spec.dtype,
            spec.shape.clone(),
            device,
            sharding.memory_kind(),
        )
    };
    sharding.devices().addressable().iter().map(shard).collect()
}

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}
