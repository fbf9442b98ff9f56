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

/// The elements of a host buffer, dense and major to minor. Shared memory that has this form
/// already is kept, other memory is copied.
fn read(buffer: HostBuffer<'_>) -> Result<HostValue> {
    let (dtype, shape) = (buffer.dtype, buffer.shape.clone());
    match (dtype, &buffer.data) {
        (DType::String, HostData::Strings(strings)) => return read_strings(&buffer, strings),
        (DType::String, _) | (_, HostData::Strings(_)) => {
            return Err(invalid(format!(
                "an array of dtype {dtype} cannot be made from {}",
                match dtype {
                    DType::String => "bytes",
                    _ => "strings",
                }
            )));
        }
        (DType::Token, _) if shape.rank() == 0 => return Ok(HostValue::Bytes(Bytes::new())),
        (DType::Token, _) => return Err(invalid("a token has no dimensions")),
        _ => {}
    }
    let range = buffer.byte_range()?;
    let item = host_bytes(dtype, &Shape::scalar())?;
    let dense = dense_strides(&shape, item)?;
    let is_dense = buffer.byte_strides.as_ref().is_none_or(|strides| {
        let mut axes = strides.iter().zip(&dense).zip(shape.dims());
        axes.all(|((stride, dense), dim)| stride == dense || *dim <= 1)
    });
    let data = match (&buffer.data, is_dense) {
        (HostData::Shared(data), true) if !dtype.is_sub_byte() => {
            return Ok(HostValue::Bytes(data.slice(range)));
        }
        (HostData::Shared(data), _) => &data[..],
        (HostData::Borrowed(data), _) => data,
        (HostData::Strings(_), _) => return Err(Status::internal("strings are not read as bytes")),
    };
    let mut out = filled(host_bytes(dtype, &shape)?, 0)?;
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

fn read_strings(buffer: &HostBuffer<'_>, strings: &Arc<[Bytes]>) -> Result<HostValue> {
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
    Ok(HostValue::Strings(Arc::clone(strings)))
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
