//! Arrays from the shards of other arrays. No data moves.

use std::sync::Arc;

use ifrt::array::{Array, ArrayCopySemantics, ArrayRef, ShardSemantics};
use ifrt::array_spec::ArraySpec;
use ifrt::dtype::DType;
use ifrt::remap_plan::RemapPlan;
use ifrt::shape::Shape;
use ifrt::sharding::ShardingRef;
use ifrt::{Result, Status};

use super::PjrtClient;
use crate::array::{Content, PjrtArray};
use crate::safe::buffer::{Buffer, Placement};

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

/// One array from single-device arrays.
pub(super) fn assemble(
    client: &Arc<PjrtClient>,
    dtype: DType,
    shape: Shape,
    sharding: ShardingRef,
    arrays: &[ArrayRef],
    copy: ArrayCopySemantics,
    shards: ShardSemantics,
) -> Result<ArrayRef> {
    if shards == ShardSemantics::All && !sharding.devices().is_fully_addressable() {
        return Err(invalid(
            "all shards were given for an array with devices that this process cannot reach",
        ));
    }
    let placements = client.placements(&sharding)?;
    if arrays.len() != placements.len() {
        return Err(invalid(format!(
            "an array with {} shards cannot be assembled from {} arrays",
            placements.len(),
            arrays.len()
        )));
    }
    let mut contents = Vec::with_capacity(arrays.len());
    for (index, array) in arrays.iter().enumerate() {
        let own = PjrtArray::of(array, client)?;
        if own.dtype() != dtype {
            return Err(invalid(format!(
                "array {index} has dtype {}, but an array of dtype {dtype} is to be assembled",
                own.dtype()
            )));
        }
        let content = own.content()?;
        if content.num_shards().is_some_and(|n| n != 1) {
            return Err(invalid(format!("array {index} is not on one device")));
        }
        contents.push(content);
    }
    let content = join(contents, &placements)?;
    check_shapes(&sharding, &shape, &content)?;
    let layout = match arrays.first() {
        Some(first) => PjrtArray::of(first, client)?.custom_layout().cloned(),
        None => None,
    };
    let spec = ArraySpec {
        dtype,
        shape,
        sharding,
        layout,
    };
    let assembled = PjrtArray::make(client, spec, content);
    consume_if_donated(client, arrays, copy)?;
    Ok(assembled)
}

/// Arrays over the shards that a plan names.
pub(super) fn remap(
    client: &Arc<PjrtClient>,
    plan: &RemapPlan,
    arrays: &[ArrayRef],
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    if copy == ArrayCopySemantics::AlwaysCopy {
        return Err(invalid(
            "Invalid ArrayCopySemantics: RemapArrays does not copy",
        ));
    }
    let sources = plan.sources()?;
    plan.check_copy_semantics(copy)?;
    if arrays.len() != plan.input_specs.len() {
        return Err(invalid(format!(
            "RemapArrays expects {} input arrays, but got {}",
            plan.input_specs.len(),
            arrays.len()
        )));
    }
    let mut inputs = Vec::with_capacity(arrays.len());
    for (index, (array, spec)) in arrays.iter().zip(&plan.input_specs).enumerate() {
        let own = PjrtArray::of(array, client)?;
        let expects = |what: String| {
            Err(invalid(format!(
                "RemapArrays expects input #{index} to {what}"
            )))
        };
        if own.dtype() != spec.dtype {
            return expects(format!(
                "have dtype {}, but got {}",
                spec.dtype,
                own.dtype()
            ));
        }
        if *own.shape() != spec.shape {
            return expects(format!(
                "have shape {}, but got {}",
                spec.shape,
                own.shape()
            ));
        }
        let (given, wanted) = (own.sharding(), &spec.sharding);
        if given.devices() != wanted.devices() || given.memory_kind() != wanted.memory_kind() {
            return expects(format!(
                "be on {:?} with memory kind {}, but it is on {:?} with memory kind {}",
                wanted.devices(),
                wanted.memory_kind(),
                given.devices(),
                given.memory_kind()
            ));
        }
        inputs.push((own, own.content()?));
    }
    let mut outputs = Vec::with_capacity(sources.len());
    for (spec, sources) in plan.output_specs.iter().zip(&sources) {
        let placements = client.placements(&spec.sharding)?;
        let shard = |(input, shard): &(usize, usize)| {
            inputs
                .get(*input)
                .and_then(|(_, content)| one_shard(content, *shard))
                .ok_or_else(|| invalid(format!("input #{input} has no shard {shard}")))
        };
        let content = join(
            sources.iter().map(shard).collect::<Result<_>>()?,
            &placements,
        )?;
        let first = sources.first().and_then(|(input, _)| inputs.get(*input));
        let layout = first.and_then(|(own, _)| own.custom_layout().cloned());
        let spec = ArraySpec {
            layout,
            ..spec.clone()
        };
        outputs.push(PjrtArray::make(client, spec, content));
    }
    consume_if_donated(client, arrays, copy)?;
    Ok(outputs)
}

/// Ends arrays whose shards an operation has taken over.
pub(super) fn consume_if_donated(
    client: &PjrtClient,
    arrays: &[ArrayRef],
    copy: ArrayCopySemantics,
) -> Result<()> {
    if copy == ArrayCopySemantics::DonateInput {
        for array in arrays {
            PjrtArray::of(array, client)?.consume();
        }
    }
    Ok(())
}

fn one_shard(content: &Content, shard: usize) -> Option<Content> {
    Some(match content {
        Content::Buffers(shards) => {
            Content::Buffers(vec![Arc::clone(shards.as_slice().get(shard)?)].into())
        }
        Content::Strings(shards) => Content::Strings(Arc::new([Arc::clone(shards.get(shard)?)])),
        Content::Failed(status) => Content::Failed(status.clone()),
    })
}

/// The content of an array with these shards, which must be where its sharding says.
fn join(shards: Vec<Content>, placements: &[Placement]) -> Result<Content> {
    if shards.len() != placements.len() {
        return Err(Status::internal(
            "an array is to be made with a wrong number of shards",
        ));
    }
    if let Some(failed) = shards
        .iter()
        .find(|shard| matches!(shard, Content::Failed(_)))
    {
        return Ok(failed.clone());
    }
    let (mut buffers, mut strings) = (Vec::new(), Vec::new());
    for (index, (shard, placement)) in shards.into_iter().zip(placements).enumerate() {
        match shard {
            Content::Buffers(shard) => {
                for buffer in shard.as_slice() {
                    check_placement(index, buffer, *placement)?;
                    buffers.push(Arc::clone(buffer));
                }
            }
            Content::Strings(shard) => strings.extend(shard.iter().cloned()),
            Content::Failed(_) => {}
        }
    }
    Ok(match strings.is_empty() {
        true => Content::Buffers(buffers.into()),
        false => Content::Strings(strings.into()),
    })
}

fn check_placement(index: usize, buffer: &Buffer, placement: Placement) -> Result<()> {
    if buffer.placement() == placement {
        return Ok(());
    }
    Err(invalid(format!(
        "shard {index} is on another device or in another memory than the sharding says"
    )))
}

fn check_shapes(sharding: &ShardingRef, shape: &Shape, content: &Content) -> Result<()> {
    let Content::Buffers(shards) = content else {
        return Ok(());
    };
    let shards = shards.as_slice();
    // Tokens have no shape on the device, and some shardings do not tell shapes.
    let Ok(shapes) = sharding.shard_shapes(shape, ShardSemantics::Addressable) else {
        return Ok(());
    };
    for (index, (buffer, expected)) in shards.iter().zip(&shapes).enumerate() {
        let spec = buffer.spec();
        if spec.shape != *expected && spec.dtype != DType::Token {
            return Err(invalid(format!(
                "shard {index} has shape {}, but an array of shape {shape} has shards of shape \
                 {expected}",
                spec.shape
            )));
        }
    }
    Ok(())
}
