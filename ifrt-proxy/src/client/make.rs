//! Arrays from host data, and arrays that have failed.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client/array.cc`, `Array::MakeArrayFromHostBuffer` and its siblings.

use std::sync::Arc;

use ifrt::client::check_host_shards;
use ifrt::device::find_memory;
use ifrt::serdes::{dtype_to_proto, layout_to_proto, shape_to_proto, status_to_proto};
use ifrt::{
    ArrayRef, ArraySpec, DType, HostBuffer, HostShards, Layout, Result, ShardSemantics,
    ShardingRef, Status,
};

use super::ProxyClient;
use super::array::ProxyArray;
use super::host_span::{Span, span};
use super::life::Cells;
use super::to_wire::{array_spec_to_wire, sharding_to_wire};
use crate::proto::xla::ifrt::proto::ByteStrides;
use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use crate::proto::xla::ifrt::proxy::make_arrays_from_host_buffer_shards_request as shards;
use crate::proto::xla::ifrt::proxy::{
    MakeArrayFromHostBufferRequest, MakeArraysFromHostBufferShardsRequest, MakeErrorArraysRequest,
};

/// The protocol version from which on an array can be made with a layout.
const CUSTOM_LAYOUTS: i32 = 23;

/// See [`ifrt::Client::make_array_from_host_buffer`].
pub(super) fn from_host_buffer(
    client: &Arc<ProxyClient>,
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
    let is_whole = spec.sharding.devices().len() == 1 || spec.sharding.is_fully_replicated();
    let shards = spec
        .sharding
        .shard_shapes(&spec.shape, ShardSemantics::Addressable)?;
    if !is_whole || shards.iter().any(|shard| *shard != spec.shape) {
        return Err(Status::invalid_argument(format!(
            "one host buffer makes an array on one device or a fully replicated one, but not one \
             with the sharding {:?}; use make_arrays_from_host_buffer_shards",
            spec.sharding
        )));
    }
    check_spec(client, &spec)?;
    let session = client.session();
    let layout = spec.layout.as_ref().map(layout_to_proto).transpose()?;
    if layout.is_some() && session.protocol() < CUSTOM_LAYOUTS {
        return Err(Status::unimplemented(format!(
            "arrays with a layout of their own need protocol {CUSTOM_LAYOUTS}, but the server \
             speaks {}",
            session.protocol()
        )));
    }
    let sharding = sharding_to_wire(&spec.sharding, session.serdes())?;
    let Span { data, byte_strides } = span(buffer)?;
    // The array takes the handle of the buffer: the tables of the server are apart.
    let handle = session.new_handle();
    client.transfer().upload(handle, data);
    let request = MakeArrayFromHostBufferRequest {
        dtype: Some(dtype_to_proto(spec.dtype)),
        shape: Some(shape_to_proto(&spec.shape)),
        sharding: Some(sharding),
        host_buffer_handle: handle,
        byte_strides: byte_strides.map(|strides| ByteStrides {
            strides: strides.into(),
        }),
        array_handle: Some(handle),
        layout,
    };
    session.send_ignored(
        "making an array",
        Request::MakeArrayFromHostBufferRequest(request),
    );
    Ok(make(client, handle, spec))
}

/// See [`ifrt::Client::make_arrays_from_host_buffer_shards`].
pub(super) fn from_host_buffer_shards(
    client: &Arc<ProxyClient>,
    arrays: Vec<HostShards<'_>>,
) -> Result<Vec<ArrayRef>> {
    if arrays.is_empty() {
        return Ok(Vec::new());
    }
    check_host_shards(&arrays)?;
    let session = client.session();
    let mut specs = Vec::with_capacity(arrays.len());
    // All is checked before the first byte is sent.
    for array in &arrays {
        check_spec(client, &array.spec)?;
        specs.push(shards::MakeArraysFromHostBufferShardsSpec {
            addressable_shard_indices: array
                .buffers
                .iter()
                .map(|(shards, _)| shard_indices(shards))
                .collect::<Result<_>>()?,
            host_buffers: Vec::new(),
            array_spec: Some(array_spec_to_wire(&array.spec, session.serdes())?),
        });
    }
    let mut uploads = Vec::new();
    let mut made = Vec::with_capacity(arrays.len());
    for (array, message) in arrays.into_iter().zip(&mut specs) {
        let mut first = None;
        for (_, buffer) in array.buffers {
            let handle = session.new_handle();
            first.get_or_insert(handle);
            let (dtype, shape) = (buffer.dtype, buffer.shape.clone());
            let Span { data, byte_strides } = span(buffer)?;
            message.host_buffers.push(shards::HostBuffer {
                dtype: Some(dtype_to_proto(dtype)),
                shape: Some(shape_to_proto(&shape)),
                host_buffer_handle: handle,
                byte_strides: byte_strides.map(|strides| ByteStrides {
                    strides: strides.into(),
                }),
            });
            uploads.push((handle, data));
        }
        made.push((first.unwrap_or_else(|| session.new_handle()), array.spec));
    }
    for (handle, data) in uploads {
        client.transfer().upload(handle, data);
    }
    let request = MakeArraysFromHostBufferShardsRequest {
        specs,
        array_handles: made.iter().map(|(handle, _)| *handle).collect(),
    };
    session.send_ignored(
        "making arrays",
        Request::MakeArraysFromHostBufferShardsRequest(request),
    );
    let make = |(handle, spec)| make(client, handle, spec);
    Ok(made.into_iter().map(make).collect())
}

fn shard_indices(shards: &[usize]) -> Result<shards::ShardIndices> {
    let index = |shard: &usize| {
        i64::try_from(*shard)
            .map_err(|_| Status::invalid_argument(format!("{shard} is no index of a shard")))
    };
    Ok(shards::ShardIndices {
        indices: shards.iter().map(index).collect::<Result<_>>()?,
    })
}

/// See [`ifrt::Client::make_error_arrays`].
pub(super) fn errors(
    client: &Arc<ProxyClient>,
    error: &Status,
    specs: &[ArraySpec],
) -> Result<Vec<ArrayRef>> {
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    let session = client.session();
    for spec in specs {
        client.check_devices(spec.sharding.devices())?;
    }
    let messages = specs
        .iter()
        .map(|spec| array_spec_to_wire(spec, session.serdes()))
        .collect::<Result<_>>()?;
    let handles: Vec<u64> = specs.iter().map(|_| session.new_handle()).collect();
    let request = MakeErrorArraysRequest {
        error: Some(status_to_proto(error)),
        array_specs: messages,
        array_handles: handles.clone(),
    };
    session.send_ignored(
        "making arrays that have failed",
        Request::MakeErrorArraysRequest(request),
    );
    let made = handles.into_iter().zip(specs);
    let made = made.map(|(handle, spec)| {
        let shards = spec.sharding.devices().addressable().len();
        ProxyArray::make_failed(client, handle, spec.clone(), Cells::fresh(shards), error)
    });
    Ok(made.collect())
}

/// An array with buffers of its own.
pub(super) fn make(client: &Arc<ProxyClient>, handle: u64, spec: ArraySpec) -> ArrayRef {
    let shards = spec.sharding.devices().addressable().len();
    ProxyArray::make(client, handle, spec, Cells::fresh(shards))
}

/// Checks what the server would find wrong only later.
fn check_spec(client: &ProxyClient, spec: &ArraySpec) -> Result<()> {
    let sharding = &spec.sharding;
    client.check_devices(sharding.devices())?;
    let devices = sharding.devices().addressable();
    if devices.is_empty() {
        return Err(Status::invalid_argument(
            "an array of host data needs a device that the server can reach",
        ));
    }
    for device in &devices {
        find_memory(&**device, sharding.memory_kind())?;
    }
    let Some(layout) = &spec.layout else {
        return Ok(());
    };
    if spec.dtype == DType::String {
        return Err(Status::invalid_argument("arrays of strings have no layout"));
    }
    if layout.minor_to_major().len() != spec.shape.rank() {
        return Err(Status::invalid_argument(format!(
            "layout {layout} is not for shape {}",
            spec.shape
        )));
    }
    Ok(())
}
