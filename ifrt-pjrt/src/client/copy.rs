//! Arrays copied to other devices or memories, and arrays seen as another type.

use std::sync::Arc;

use ifrt::array::{Array, ArrayCopySemantics, ArrayRef, ShardSemantics};
use ifrt::array_spec::ArraySpec;
use ifrt::device_list::DeviceList;
use ifrt::memory::MemoryKind;
use ifrt::{Result, Status};

use super::PjrtClient;
use super::assemble::consume_if_donated;
use crate::array::{Content, PjrtArray};
use crate::safe::buffer::{Buffer, Placement, ShardSpec};

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

/// Copies arrays to other devices or another memory kind.
pub(super) fn copy_arrays(
    client: &Arc<PjrtClient>,
    arrays: &[ArrayRef],
    devices: Option<DeviceList>,
    memory_kind: Option<MemoryKind>,
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    let Some(first) = arrays.first() else {
        return Ok(Vec::new());
    };
    for array in arrays {
        let (one, other) = (first.sharding(), array.sharding());
        if one.devices() != other.devices() || one.memory_kind() != other.memory_kind() {
            return Err(invalid(
                "CopyArrays only supports arrays with the same device list and memory kind",
            ));
        }
    }
    if let Some(devices) = &devices
        && devices.len() != first.sharding().devices().len()
    {
        return Err(invalid(format!(
            "arrays on {} devices cannot be copied to {} devices",
            first.sharding().devices().len(),
            devices.len()
        )));
    }
    let changes_kind = memory_kind
        .as_ref()
        .is_some_and(|kind| kind != first.sharding().memory_kind());
    if copy == ArrayCopySemantics::DonateInput && changes_kind {
        return Err(Status::unimplemented(
            "arrays cannot be donated across memory kinds",
        ));
    }
    let mut outputs = Vec::with_capacity(arrays.len());
    for array in arrays {
        let own = PjrtArray::of(array, client)?;
        if changes_kind && own.custom_layout().is_some() {
            return Err(Status::unimplemented(
                "arrays with a layout of their own cannot be copied to another memory kind",
            ));
        }
        let sharding = own
            .sharding()
            .with_device_assignment(devices.clone(), memory_kind.clone())?;
        let placements = client.placements(&sharding)?;
        let content = match own.content()? {
            Content::Buffers(shards) => {
                let shards = shards.as_slice();
                // Shards are paired by position among those that this process can reach.
                if shards.len() != placements.len() {
                    return Err(Status::unimplemented(
                        "arrays cannot be copied to or from devices of other processes",
                    ));
                }
                let shards = shards.iter().zip(placements);
                let copied = shards.map(|(buffer, placement)| copy_shard(buffer, placement, copy));
                Content::Buffers(copied.collect::<Result<Vec<_>>>()?.into())
            }
            other => other,
        };
        let layout = own.custom_layout().cloned();
        let spec = ArraySpec {
            dtype: own.dtype(),
            shape: own.shape().clone(),
            sharding,
            layout,
        };
        outputs.push(PjrtArray::make(client, spec, content));
    }
    consume_if_donated(client, arrays, copy)?;
    Ok(outputs)
}

fn copy_shard(
    buffer: &Arc<Buffer>,
    placement: Placement,
    copy: ArrayCopySemantics,
) -> Result<Arc<Buffer>> {
    if buffer.placement() == placement && copy != ArrayCopySemantics::AlwaysCopy {
        return Ok(Arc::clone(buffer));
    }
    buffer.copy_to(placement)
}

/// Gives the bytes of arrays another dtype or shape. The inputs are consumed.
pub(super) fn bitcast_arrays(
    client: &Arc<PjrtClient>,
    arrays: &[ArrayRef],
    specs: &[ArraySpec],
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    match copy {
        ArrayCopySemantics::AlwaysCopy => {
            return Err(invalid("BitcastArrays does not copy; use DonateInput"));
        }
        ArrayCopySemantics::ReuseInput => {
            return Err(Status::unimplemented(
                "BitcastArrays needs DonateInput with this runtime",
            ));
        }
        ArrayCopySemantics::DonateInput => {}
    }
    if arrays.len() != specs.len() {
        return Err(invalid(format!(
            "BitcastArrays was given {} arrays and {} specs",
            arrays.len(),
            specs.len()
        )));
    }
    // Everything is checked before anything is consumed.
    let mut checked = Vec::with_capacity(arrays.len());
    for (index, (array, spec)) in arrays.iter().zip(specs).enumerate() {
        let own = PjrtArray::of(array, client)?;
        let (given, wanted) = (own.sharding(), &spec.sharding);
        if given.devices() != wanted.devices() || given.memory_kind() != wanted.memory_kind() {
            return Err(invalid(format!(
                "BitcastArrays cannot move array {index} to other devices or another memory"
            )));
        }
        if spec
            .layout
            .as_ref()
            .is_some_and(|layout| !layout.is_descending())
        {
            return Err(Status::unimplemented(
                "BitcastArrays to a layout that is not dense",
            ));
        }
        let shapes = spec
            .sharding
            .shard_shapes(&spec.shape, ShardSemantics::Addressable)?;
        let targets: Vec<Arc<ShardSpec>> = shapes
            .into_iter()
            .map(|shape| {
                Arc::new(ShardSpec {
                    dtype: spec.dtype,
                    shape,
                    layout: None,
                })
            })
            .collect();
        let content = own.content()?;
        if let Content::Buffers(shards) = &content {
            for (buffer, target) in shards.as_slice().iter().zip(&targets) {
                let (from, to) = (buffer.spec().packed_bytes(), target.packed_bytes());
                if from != to || spec.dtype.bit_size().is_none() {
                    return Err(invalid(format!(
                        "BitcastArrays cannot make {to} bytes of array {index}, whose shards have \
                         {from}"
                    )));
                }
            }
        }
        checked.push((content, targets));
    }
    let mut outputs = Vec::with_capacity(arrays.len());
    for ((content, targets), spec) in checked.into_iter().zip(specs) {
        let content = match content {
            Content::Buffers(shards) => {
                let shards = shards.as_slice().iter().zip(&targets);
                let cast = shards.map(|(buffer, target)| buffer.bitcast(target));
                Content::Buffers(cast.collect::<Result<Vec<_>>>()?.into())
            }
            Content::Failed(status) => Content::Failed(status),
            Content::Strings(_) => return Err(invalid("BitcastArrays of strings")),
        };
        outputs.push(PjrtArray::make(client, spec.clone(), content));
    }
    consume_if_donated(client, arrays, copy)?;
    Ok(outputs)
}
