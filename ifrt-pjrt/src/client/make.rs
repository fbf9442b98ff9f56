//! Arrays from host buffers, and arrays that hold an error.

use std::sync::Arc;

use bytes::Bytes;
use ifrt::array::{ArrayRef, ShardSemantics};
use ifrt::array_spec::ArraySpec;
use ifrt::client::HostShards;
use ifrt::dtype::DType;
use ifrt::host_buffer::{HostBuffer, HostData};
use ifrt::layout::Layout;
use ifrt::sharding::{Sharding, ShardingRef};
use ifrt::{Code, Result, Status};

use super::PjrtClient;
use crate::array::{Content, PjrtArray, Shards};
use crate::host_buffer::pack;
use crate::safe::buffer::{Buffer, Placement, ShardSpec};

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

/// An array that has the contents of `host` on each of its devices.
pub(super) fn replicated(
    client: &Arc<PjrtClient>,
    host: &HostBuffer<'_>,
    sharding: ShardingRef,
    layout: Option<Layout>,
) -> Result<ArrayRef> {
    if !sharding.is_fully_replicated() {
        return Err(invalid(format!(
            "one host buffer makes an array on one device or a fully replicated one, not one with \
             the sharding {sharding:?}"
        )));
    }
    // Also checks that the sharding is for arrays of this shape.
    let shard_shape = sharding.shard_shape(&host.shape)?;
    if shard_shape != host.shape {
        return Err(invalid(format!(
            "the sharding {sharding:?} gives shards of shape {shard_shape} to an array of shape {}",
            host.shape
        )));
    }
    let placements = client.placements(&sharding)?;
    if placements.is_empty() {
        return Err(invalid(
            "no device of the sharding can be reached from this process",
        ));
    }
    let content = if host.dtype == DType::String {
        let strings = strings_of(host, layout.as_ref())?;
        Content::Strings(placements.iter().map(|_| Arc::clone(&strings)).collect())
    } else {
        let maker = Maker::new(client, host, layout.as_ref())?;
        let buffers = placements
            .iter()
            .map(|placement| maker.make(*placement, host));
        Content::Buffers(buffers.collect::<Result<Vec<_>>>()?.into())
    };
    let spec = ArraySpec {
        dtype: host.dtype,
        shape: host.shape.clone(),
        sharding,
        layout,
    };
    Ok(PjrtArray::make(client, spec, content))
}

/// Arrays whose shards are host buffers.
pub(super) fn from_shards(
    client: &Arc<PjrtClient>,
    arrays: Vec<HostShards<'_>>,
) -> Result<Vec<ArrayRef>> {
    if let Some((first, rest)) = arrays.split_first() {
        let of = |sharding: &Sharding| (sharding.devices().clone(), sharding.memory_kind().clone());
        if rest
            .iter()
            .any(|array| of(&array.spec.sharding) != of(&first.spec.sharding))
        {
            return Err(invalid(
                "all arrays that are made in one call must have the same devices and memory kind",
            ));
        }
    }
    arrays
        .into_iter()
        .map(|array| one_from_shards(client, array))
        .collect()
}

fn one_from_shards(client: &Arc<PjrtClient>, array: HostShards<'_>) -> Result<ArrayRef> {
    let HostShards { spec, buffers } = array;
    let placements = client.placements(&spec.sharding)?;
    // A sharding that does not tell its shapes takes any.
    let shapes = spec
        .sharding
        .shard_shapes(&spec.shape, ShardSemantics::Addressable)
        .ok();
    let mut shards: Vec<Option<&HostBuffer<'_>>> = vec![None; placements.len()];
    for (indices, host) in &buffers {
        if host.dtype != spec.dtype {
            return Err(invalid(format!(
                "a shard of dtype {} was given for an array of dtype {}",
                host.dtype, spec.dtype
            )));
        }
        for index in indices {
            let num_shards = shards.len();
            let shard = shards.get_mut(*index).ok_or_else(|| {
                invalid(format!(
                    "shard index {index} is out of range: the array has {num_shards} addressable \
                     shards"
                ))
            })?;
            if shard.replace(host).is_some() {
                return Err(invalid(format!("shard {index} is given twice")));
            }
            match shapes.as_ref().and_then(|shapes| shapes.get(*index)) {
                Some(shape) if *shape != host.shape => {
                    return Err(invalid(format!(
                        "shard {index} has shape {}, but the sharding gives it shape {shape}",
                        host.shape
                    )));
                }
                _ => {}
            }
        }
    }
    let mut complete = Vec::with_capacity(shards.len());
    for (index, shard) in shards.into_iter().enumerate() {
        complete.push(shard.ok_or_else(|| invalid(format!("shard {index} is missing")))?);
    }
    let layout = spec.layout.as_ref();
    let content = if spec.dtype == DType::String {
        let strings = complete.into_iter().map(|host| strings_of(host, layout));
        Content::Strings(strings.collect::<Result<Vec<_>>>()?.into())
    } else {
        let shards = complete.into_iter().zip(placements);
        let make = |(host, placement)| Maker::new(client, host, layout)?.make(placement, host);
        Content::Buffers(Shards::from(shards.map(make).collect::<Result<Vec<_>>>()?))
    };
    Ok(PjrtArray::make(client, spec, content))
}

/// An array that is ready with `error`.
pub(super) fn failed(
    client: &Arc<PjrtClient>,
    error: &Status,
    spec: &ArraySpec,
) -> Result<ArrayRef> {
    let placements = client.placements(&spec.sharding)?;
    let shapes = spec
        .sharding
        .shard_shapes(&spec.shape, ShardSemantics::Addressable)?;
    let mut buffers = Vec::with_capacity(placements.len());
    for (placement, shape) in placements.into_iter().zip(shapes) {
        let shard = Arc::new(ShardSpec {
            dtype: spec.dtype,
            shape,
            layout: None,
        });
        match Buffer::from_error(client.safe(), &shard, placement, error) {
            Ok(buffer) => buffers.push(buffer),
            // Types without buffers and plugins without such buffers.
            Err(status) if matches!(status.code(), Code::Unimplemented | Code::InvalidArgument) => {
                buffers.clear();
                break;
            }
            Err(status) => return Err(status),
        }
    }
    let content = match buffers.is_empty() {
        true => Content::Failed(error.clone()),
        false => Content::Buffers(buffers.into()),
    };
    Ok(PjrtArray::make(client, spec.clone(), content))
}

fn strings_of(host: &HostBuffer<'_>, layout: Option<&Layout>) -> Result<Arc<[Bytes]>> {
    let HostData::Strings(strings) = &host.data else {
        return Err(invalid(
            "an array of dtype string needs a host buffer of strings",
        ));
    };
    if layout.is_some() || host.byte_strides.is_some() {
        return Err(invalid("an array of strings has no layout and no strides"));
    }
    if usize::try_from(host.shape.num_elements()) != Ok(strings.len()) {
        return Err(invalid(format!(
            "{} strings were given for an array of shape {}",
            strings.len(),
            host.shape
        )));
    }
    Ok(Arc::clone(strings))
}

/// Makes equal buffers on several devices.
struct Maker<'a> {
    client: &'a Arc<PjrtClient>,
    spec: Arc<ShardSpec>,
    /// The elements in dense order, where the plugin is not trusted with the strides.
    packed: Option<Vec<u8>>,
}

impl<'a> Maker<'a> {
    fn new(
        client: &'a Arc<PjrtClient>,
        host: &HostBuffer<'_>,
        layout: Option<&Layout>,
    ) -> Result<Self> {
        if matches!(host.data, HostData::Strings(_)) {
            return Err(invalid(format!(
                "a host buffer of strings was given for an array of dtype {}",
                host.dtype
            )));
        }
        let spec = ShardSpec {
            dtype: host.dtype,
            shape: host.shape.clone(),
            layout: client.custom_layout(host.dtype, &host.shape, layout),
        };
        let packed = match &host.byte_strides {
            Some(strides) if host.dtype.is_sub_byte() => Some(pack(host, strides)?),
            _ => None,
        };
        Ok(Self {
            client,
            spec: Arc::new(spec),
            packed,
        })
    }

    fn make(&self, placement: Placement, host: &HostBuffer<'_>) -> Result<Arc<Buffer>> {
        let client = self.client.safe();
        match &self.packed {
            None => Buffer::from_host(client, &self.spec, placement, host),
            Some(packed) => {
                let data = HostData::Borrowed(packed);
                let dense = HostBuffer::dense(data, host.dtype, host.shape.clone());
                Buffer::from_host(client, &self.spec, placement, &dense)
            }
        }
    }
}
