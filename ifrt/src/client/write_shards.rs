//! Making arrays from the shards in host buffers.

use std::sync::Arc;

use super::{Client, HostShards};
use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::device_list::DeviceList;
use crate::host_buffer::HostBuffer;
use crate::shape::Shape;
use crate::sharding::Sharding;
use crate::status::{Result, Status};

/// Makes arrays with the methods that every runtime has: one array per shard, then assembled. A
/// replicated array with one buffer is made at once.
///
/// Everything is checked before the first array is made.
///
/// # Blocking
/// As [`Client::make_array_from_host_buffer`].
///
/// # Errors
/// INVALID_ARGUMENT if the arrays have different devices or memory kinds, if a shard is missing,
/// covered twice or does not exist, or if a buffer has another dtype or shape than its shard.
///
/// # Mirrors
/// `xla/python/ifrt/client_impl_util.h`, `ClientMakeArraysFromHostBufferShards`. Unlike there, a
/// custom layout is honored on the fast path too.
///
/// # Conformance
/// ARR-14, ARR-18 to ARR-20.
pub fn make_arrays_from_host_buffer_shards<C: Client + ?Sized>(
    client: &C,
    arrays: Vec<HostShards<'_>>,
) -> Result<Vec<ArrayRef>> {
    check_host_shards(&arrays)?;
    arrays
        .into_iter()
        .map(|array| make(client, array))
        .collect()
}

/// Checks that arrays can be made from these host buffers: for a runtime that makes them in its own
/// way.
///
/// # Errors
/// INVALID_ARGUMENT as [`make_arrays_from_host_buffer_shards`].
pub fn check_host_shards(arrays: &[HostShards<'_>]) -> Result<()> {
    check_common_placement(arrays)?;
    arrays.iter().try_for_each(check_cover)
}

/// Refuses arrays that are not all on the same devices and in the same kind of memory.
///
/// # Errors
/// INVALID_ARGUMENT showing what differs.
fn check_common_placement(arrays: &[HostShards<'_>]) -> Result<()> {
    let Some((first, rest)) = arrays.split_first() else {
        return Ok(());
    };
    let first = &first.spec.sharding;
    for (other, position) in rest.iter().zip(1..) {
        let other = &other.spec.sharding;
        if first.devices() != other.devices() {
            return Err(Status::invalid_argument(format!(
                "arrays that are made in one call must be on the same devices, but array 0 goes to \
                 {:?} and array {position} to {:?}",
                first.devices(),
                other.devices()
            )));
        }
        if first.memory_kind() != other.memory_kind() {
            return Err(Status::invalid_argument(format!(
                "arrays that are made in one call must be in the same kind of memory, but array 0 \
                 goes to {} and array {position} to {}",
                first.memory_kind(),
                other.memory_kind()
            )));
        }
    }
    Ok(())
}

/// Checks that the buffers give each addressable shard once and fit it.
fn check_cover(array: &HostShards<'_>) -> Result<()> {
    let sharding = &array.spec.sharding;
    let count = sharding.devices().addressable().len();
    // Without shapes, as for opaque shardings, whoever assembles the shards has to check them.
    let shapes = sharding
        .shard_shapes(&array.spec.shape, ShardSemantics::Addressable)
        .ok();
    let mut covered = vec![false; count];
    for (shards, buffer) in &array.buffers {
        if buffer.dtype != array.spec.dtype {
            return Err(Status::invalid_argument(format!(
                "a host buffer of dtype {} cannot be a shard of an array of dtype {}",
                buffer.dtype, array.spec.dtype
            )));
        }
        for shard in shards {
            let slot = covered.get_mut(*shard).ok_or_else(|| {
                Status::invalid_argument(format!(
                    "a host buffer is for shard {shard} of an array with {count} addressable shards"
                ))
            })?;
            if std::mem::replace(slot, true) {
                return Err(Status::invalid_argument(format!(
                    "two host buffers are for shard {shard}"
                )));
            }
            check_shape(
                buffer,
                shapes.as_ref().and_then(|shapes| shapes.get(*shard)),
            )?;
        }
    }
    match covered.iter().position(|covered| !covered) {
        Some(missing) => Err(Status::invalid_argument(format!(
            "no host buffer is for shard {missing} of an array with {count} addressable shards"
        ))),
        None => Ok(()),
    }
}

fn check_shape(buffer: &HostBuffer<'_>, shape: Option<&Shape>) -> Result<()> {
    match shape {
        Some(shape) if *shape != buffer.shape => Err(Status::invalid_argument(format!(
            "a host buffer of shape {} cannot be a shard of shape {shape}",
            buffer.shape
        ))),
        _ => Ok(()),
    }
}

fn make<C: Client + ?Sized>(client: &C, array: HostShards<'_>) -> Result<ArrayRef> {
    let HostShards { spec, mut buffers } = array;
    if spec.sharding.is_fully_replicated() && buffers.len() == 1 && spec.shape == buffers[0].1.shape
    {
        let (_, buffer) = buffers.swap_remove(0);
        return client.make_array_from_host_buffer(buffer, spec.sharding, spec.layout);
    }
    let devices: DeviceList = spec.sharding.devices().addressable();
    let mut shards: Vec<(usize, ArrayRef)> = Vec::with_capacity(devices.len());
    for (indices, buffer) in buffers {
        for shard in indices {
            let device = Arc::clone(&devices.devices()[shard]);
            let sharding = Sharding::single_device(device, spec.sharding.memory_kind().clone());
            let layout = spec.layout.clone();
            let made = client.make_array_from_host_buffer(buffer.clone(), sharding, layout)?;
            shards.push((shard, made));
        }
    }
    shards.sort_by_key(|(shard, _)| *shard);
    let shards: Vec<ArrayRef> = shards.into_iter().map(|(_, array)| array).collect();
    client.assemble_array(
        spec.dtype,
        spec.shape,
        spec.sharding,
        &shards,
        ArrayCopySemantics::DonateInput,
        ShardSemantics::Addressable,
    )
}
