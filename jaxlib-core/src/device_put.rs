//! [`device_put`]: from the host to devices, and from devices to others.
//!
//! Host data takes one of two ways: the same for all devices in one call, or one buffer per distinct
//! part. An array that is already where it should be is shared; one that is split alike on other
//! devices is copied by the runtime; anything else goes through the host.
//!
//! Borrowed memory is always copied before the call returns. Only memory that is handed over
//! (`Bytes`) may be kept by the runtime.
//!
//! # Mirrors
//! `jax/_src/dispatch.py`, `jaxlib/py_values.cc`, `DevicePutWithSharding`.

use std::collections::HashMap;

use ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, DeviceRef, HostBuffer, HostShards, Result, Status,
};

use crate::array::{Array, Meta};
use crate::aval::Aval;
use crate::client::Client;
use crate::deletion::{DeadArgument, Mode, Uses};
use crate::host;
use crate::named_sharding::NamedSharding;
use crate::sharding::{Index, Sharding};
use crate::transfer_guard::{self, Direction, Intent};

/// Where data goes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Target {
    /// To the default device, without staying there if it meets data that is committed elsewhere.
    Default,
    /// Where this says, to stay.
    Sharding(Sharding),
}

impl From<Sharding> for Target {
    fn from(sharding: Sharding) -> Self {
        Self::Sharding(sharding)
    }
}

impl From<NamedSharding> for Target {
    fn from(sharding: NamedSharding) -> Self {
        Self::Sharding(sharding.into())
    }
}

impl From<DeviceRef> for Target {
    fn from(device: DeviceRef) -> Self {
        Self::Sharding(Sharding::single_device(device))
    }
}

/// What may happen to an array that is put elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The result may share its buffers; it is then an alias, and both die together.
    #[default]
    MayAlias,
    /// The result shares nothing with it.
    Copy,
    /// It is used up, if the runtime can make use of that; otherwise it stays alive.
    Donate,
}

/// Puts host data onto devices.
///
/// # Blocking
/// May copy the data before it returns; does not wait for devices.
///
/// # Errors
/// INVALID_ARGUMENT if the data does not fit its shape, the sharding does not split it evenly, or a
/// device is not addressable; those of the runtime.
///
/// # Mirrors
/// `jax.device_put`.
pub fn device_put(
    client: &Client,
    buffer: &HostBuffer<'_>,
    target: impl Into<Target>,
) -> Result<Array> {
    let (sharding, committed) = match target.into() {
        Target::Default => (Sharding::single_device(client.default_device()?), false),
        Target::Sharding(sharding) => (sharding, true),
    };
    check_buffer(buffer)?;
    check_addressable(&sharding)?;
    transfer_guard::check(Direction::HostToDevice, Intent::Explicit, || {
        let aval = Aval::new(buffer.dtype, buffer.shape.clone());
        format!("aval={aval}, dst_sharding={sharding}")
    })?;
    let indices = sharding.index_map(&buffer.shape)?;
    let runtime_sharding = sharding.to_runtime(buffer.shape.rank())?;
    let handle = if sharding.is_fully_replicated() {
        client.with_memory(|| {
            client.runtime().make_array_from_host_buffer(
                buffer.clone(),
                runtime_sharding.clone(),
                None,
            )
        })?
    } else {
        let spec = ArraySpec {
            dtype: buffer.dtype,
            shape: buffer.shape.clone(),
            sharding: runtime_sharding,
            layout: None,
        };
        let buffers = distinct_parts(buffer, indices)?;
        let made = client.with_memory(|| {
            let shards = HostShards {
                spec: spec.clone(),
                buffers: buffers.clone(),
            };
            client
                .runtime()
                .make_arrays_from_host_buffer_shards(vec![shards])
        })?;
        only(made)?
    };
    let meta = Meta {
        sharding,
        committed,
        weak_type: false,
    };
    Ok(Array::new(client, handle, meta))
}

/// Puts an array elsewhere.
///
/// # Blocking
/// Only enqueues, unless the array has to be split differently: then it waits for the data.
///
/// # Errors
/// INVALID_ARGUMENT for a dead array, a sharding that does not split it evenly, or a device that is
/// not addressable; those of the runtime.
///
/// # Mirrors
/// `jax.device_put`.
pub fn device_put_array(array: &Array, target: impl Into<Target>, source: Source) -> Result<Array> {
    put_array(array, target.into(), source, Intent::Explicit)
}

/// The same, for a transfer that the program has asked for or not.
pub(crate) fn put_array(
    array: &Array,
    target: Target,
    source: Source,
    intent: Intent,
) -> Result<Array> {
    array.check_alive()?;
    let sharding = match target {
        Target::Sharding(sharding) => sharding,
        Target::Default if source == Source::MayAlias => return Ok(array.clone()),
        Target::Default => {
            return copy(
                array,
                array.sharding().clone(),
                array.is_committed(),
                source,
            );
        }
    };
    check_addressable(&sharding)?;
    sharding.shard_shape(array.shape())?;
    let rank = array.shape().rank();
    if array.sharding().is_equivalent_to(&sharding, rank) && source == Source::MayAlias {
        return Ok(array.alias(sharding, true));
    }
    transfer_guard::check(Direction::DeviceToDevice, intent, || {
        format!(
            "aval={}, src_sharding={}, dst_sharding={sharding}",
            array.aval(),
            array.sharding()
        )
    })?;
    if array.sharding().has_same_parts(&sharding, rank) {
        return copy(array, sharding, true, source);
    }
    through_host(array, sharding, source)
}

/// Copies each part to the device of the new sharding.
///
/// Sharing is decided here and not left to the runtime, which might share some of the buffers.
fn copy(array: &Array, sharding: Sharding, committed: bool, source: Source) -> Result<Array> {
    let client = array.client();
    let mode = if source == Source::Donate {
        Mode::Donate
    } else {
        Mode::Reference
    };
    let refused = |DeadArgument(_, reason)| array.deleted(reason);
    let uses = Uses::begin(&[(array.buffers(), mode)]).map_err(refused)?;
    let handles = uses.handles().map_err(refused)?;
    let semantics = if uses.is_donated(0) {
        ArrayCopySemantics::DonateInput
    } else {
        ArrayCopySemantics::AlwaysCopy
    };
    let made = client.with_memory(|| {
        client.runtime().copy_arrays(
            &handles,
            Some(sharding.devices().clone()),
            Some(sharding.memory_kind().clone()),
            semantics,
        )
    });
    uses.finish(&handles);
    let meta = Meta {
        sharding,
        committed,
        weak_type: array.weak_type(),
    };
    Ok(Array::new(client, only(array.explain(made)?)?, meta))
}

fn through_host(array: &Array, sharding: Sharding, source: Source) -> Result<Array> {
    let host = array.to_host()?;
    let made = device_put(array.client(), &host.to_buffer(), sharding)?;
    if source == Source::Donate {
        array.delete();
    }
    Ok(made)
}

fn only(mut made: Vec<ArrayRef>) -> Result<ArrayRef> {
    match (made.len(), made.pop()) {
        (1, Some(array)) => Ok(array),
        (count, _) => Err(Status::internal(format!(
            "the runtime made {count} arrays instead of one"
        ))),
    }
}

/// Refuses data that is not what its shape says, before anything else is derived from the shape.
fn check_buffer(buffer: &HostBuffer<'_>) -> Result<()> {
    match &buffer.data {
        ifrt::HostData::Strings(strings) => {
            let expected = buffer.shape.num_elements();
            if i64::try_from(strings.len()) == Ok(expected) {
                return Ok(());
            }
            Err(Status::invalid_argument(format!(
                "an array of shape {} has {expected} elements, but {} strings were given",
                buffer.shape,
                strings.len()
            )))
        }
        _ => buffer.byte_range().map(drop),
    }
}

fn check_addressable(sharding: &Sharding) -> Result<()> {
    match sharding.devices().iter().find(|d| !d.is_addressable()) {
        None => Ok(()),
        Some(device) => Err(Status::invalid_argument(format!(
            "Cannot copy array to non-addressable device: {}",
            device.to_text()
        ))),
    }
}

/// One buffer per distinct part, with the shards that hold it.
fn distinct_parts<'a>(
    buffer: &HostBuffer<'a>,
    indices: Vec<Index>,
) -> Result<Vec<(Vec<usize>, HostBuffer<'a>)>> {
    if buffer.byte_strides.is_some() || buffer.offset_bytes != 0 {
        return Err(Status::unimplemented(
            "host data with strides cannot be split over devices; make it dense first",
        ));
    }
    let mut known: HashMap<Index, usize> = HashMap::new();
    let mut parts: Vec<(Vec<usize>, HostBuffer<'a>)> = Vec::new();
    for (shard, index) in indices.into_iter().enumerate() {
        if let Some(position) = known.get(&index) {
            parts[*position].0.push(shard);
            continue;
        }
        parts.push((vec![shard], host::part(buffer, &index)?));
        known.insert(index, parts.len() - 1);
    }
    Ok(parts)
}
