//! Requests as clients write them.

use ifrt::proto::xla::ifrt::{
    ArraySpecProto, ExecuteOptionsProto, Serialized, ShardingProto, XlaCompileOptionsProto,
};
use ifrt::serdes::{SerDesVersion, dtype_to_proto, shape_to_proto, sharding_to_proto};
use ifrt::xla::{DeviceOrder, HloSharding, TileAssignment};
use ifrt::{Client, DType, DeviceId, DeviceList, MemoryKind, Shape, Sharding, ShardingRef};
use ifrt_proxy::proto::xla::ifrt::proto::ByteStrides;
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request;
use ifrt_proxy::proto::xla::ifrt::proxy::make_arrays_from_host_buffer_shards_request::{
    HostBuffer, MakeArraysFromHostBufferShardsSpec, ShardIndices,
};
use ifrt_proxy::proto::xla::ifrt::proxy::*;
use prost::Message;

pub(crate) const REUSE: i32 = 2;
pub(crate) const DONATE: i32 = 3;

pub(crate) fn devices(client: &dyn Client, ids: &[i32]) -> DeviceList {
    ids.iter()
        .map(|id| client.lookup_device(DeviceId(*id)).unwrap())
        .collect()
}

pub(crate) fn hlo(client: &dyn Client, sharding: HloSharding, ids: &[i32]) -> ShardingRef {
    Sharding::hlo(sharding, devices(client, ids), MemoryKind::default()).unwrap()
}

pub(crate) fn replicated(client: &dyn Client, ids: &[i32]) -> ShardingProto {
    write(&hlo(client, HloSharding::Replicated, ids))
}

/// Tiles of a vector, one per device.
pub(crate) fn tiled(client: &dyn Client, ids: &[i32]) -> ShardingRef {
    tiles(client, ids, &[])
}

/// Tiles of whole rows of a matrix, one per device.
pub(crate) fn tiled_rows(client: &dyn Client, ids: &[i32]) -> ShardingRef {
    tiles(client, ids, &[1])
}

fn tiles(client: &dyn Client, ids: &[i32], other_dims: &[i64]) -> ShardingRef {
    let count = i64::try_from(ids.len()).unwrap();
    let order = DeviceOrder::Explicit((0..count).collect());
    let dims = [&[count], other_dims].concat();
    let tiles = TileAssignment::new(dims, order, Vec::new(), false).unwrap();
    hlo(client, HloSharding::Tiled(tiles), ids)
}

pub(crate) fn write(sharding: &Sharding) -> ShardingProto {
    sharding_to_proto(sharding, SerDesVersion::MINIMUM).unwrap()
}

pub(crate) fn shape(dims: &[i64]) -> ifrt::proto::xla::ifrt::ShapeProto {
    shape_to_proto(&Shape::new(dims).unwrap())
}

pub(crate) fn strides(strides: &[i64]) -> Option<ByteStrides> {
    Some(ByteStrides {
        strides: strides.to_vec(),
    })
}

/// An array of `len` times `f32`, the same on each device, from the host buffer of its handle.
pub(crate) fn make_array(client: &dyn Client, handle: u64, ids: &[i32], len: usize) -> Request {
    Request::MakeArrayFromHostBufferRequest(MakeArrayFromHostBufferRequest {
        dtype: Some(dtype_to_proto(DType::F32)),
        shape: Some(shape(&[i64::try_from(len).unwrap()])),
        sharding: Some(replicated(client, ids)),
        host_buffer_handle: handle,
        byte_strides: strides(&[4]),
        array_handle: Some(handle),
        layout: None,
    })
}

/// The same with parts replaced.
pub(crate) fn make_array_with(
    client: &dyn Client,
    handle: u64,
    change: impl FnOnce(&mut MakeArrayFromHostBufferRequest),
) -> Request {
    let Request::MakeArrayFromHostBufferRequest(mut request) = make_array(client, handle, &[0], 1)
    else {
        unreachable!("made above");
    };
    change(&mut request);
    Request::MakeArrayFromHostBufferRequest(request)
}

pub(crate) fn array_spec(dims: &[i64], sharding: &Sharding) -> ArraySpecProto {
    ArraySpecProto {
        dtype: Some(dtype_to_proto(DType::F32)),
        shape: Some(shape(dims)),
        sharding: Some(write(sharding)),
        layout: None,
        version_number: 0,
    }
}

/// A host buffer for shards: its handle, the shape of a shard, its strides, and which shards.
pub(crate) type ShardBuffer<'a> = (u64, &'a [i64], &'a [i64], &'a [i64]);

/// An array of `f32` from host buffers for its shards.
pub(crate) fn make_from_shards(
    array: u64,
    spec: ArraySpecProto,
    buffers: &[ShardBuffer<'_>],
) -> Request {
    let spec = MakeArraysFromHostBufferShardsSpec {
        addressable_shard_indices: buffers
            .iter()
            .map(|(.., shards)| ShardIndices {
                indices: shards.to_vec(),
            })
            .collect(),
        host_buffers: buffers
            .iter()
            .map(|(handle, dims, byte_strides, _)| HostBuffer {
                dtype: Some(dtype_to_proto(DType::F32)),
                shape: Some(shape(dims)),
                host_buffer_handle: *handle,
                byte_strides: strides(byte_strides),
            })
            .collect(),
        array_spec: Some(spec),
    };
    Request::MakeArraysFromHostBufferShardsRequest(MakeArraysFromHostBufferShardsRequest {
        specs: vec![spec],
        array_handles: vec![array],
    })
}

pub(crate) fn delete(handles: &[u64]) -> Request {
    Request::DeleteArrayRequest(DeleteArrayRequest {
        array_handle: handles.to_vec(),
    })
}

pub(crate) fn destruct(handles: &[u64]) -> Request {
    Request::DestructArrayRequest(DestructArrayRequest {
        array_handle: handles.to_vec(),
    })
}

pub(crate) fn check_future(future_handle: u64) -> Request {
    Request::CheckFutureRequest(CheckFutureRequest { future_handle })
}

pub(crate) fn check_value_ready(handles: &[u64]) -> Request {
    Request::CheckValueReadyRequest(CheckValueReadyRequest {
        value_handles: handles.to_vec(),
    })
}

pub(crate) fn fully_replicated_shard(array_handle: u64, result_handle: u64) -> Request {
    Request::FullyReplicatedShardRequest(FullyReplicatedShardRequest {
        array_handle,
        copy_semantics: REUSE,
        result_handle,
    })
}

pub(crate) fn disassemble(array_handle: u64, result_handles: &[u64]) -> Request {
    Request::DisassembleIntoSingleDeviceArraysRequest(DisassembleIntoSingleDeviceArraysRequest {
        array_handle,
        copy_semantics: REUSE,
        single_device_shard_semantics: Some(1),
        result_handles: result_handles.to_vec(),
    })
}

pub(crate) fn copy_to_device(arrays: &[u64], device: i32, results: &[u64]) -> Request {
    Request::CopyArraysRequest(CopyArraysRequest {
        array_handles: arrays.to_vec(),
        device_ids: vec![device],
        memory_kind: None,
        copy_semantics: REUSE,
        result_handles: results.to_vec(),
    })
}

/// Compiles a program of the fake.
pub(crate) fn compile(program: &str) -> Request {
    Request::CompileRequest(CompileRequest {
        program: Some(Serialized {
            type_name: "xla::ifrt::XlaProgram".to_owned(),
            data: program.as_bytes().to_vec().into(),
        }),
        compile_options: Some(Serialized {
            type_name: "xla::ifrt::XlaCompileOptions".to_owned(),
            data: XlaCompileOptionsProto::default().encode_to_vec().into(),
        }),
        host_callbacks: Vec::new(),
    })
}

pub(crate) fn execute(executable: u64, args: &[u64], results: &[u64]) -> Request {
    Request::LoadedExecutableExecuteRequest(LoadedExecutableExecuteRequest {
        loaded_executable_handle: executable,
        args_handles: args.to_vec(),
        execute_options: Some(ExecuteOptionsProto::default()),
        device_ids: Vec::new(),
        result_array_handle: results.to_vec(),
        result_status_handle: 0,
    })
}

/// The same, asking for the status of the run.
pub(crate) fn execute_with_status(
    executable: u64,
    args: &[u64],
    results: &[u64],
    status: u64,
) -> Request {
    Request::LoadedExecutableExecuteRequest(LoadedExecutableExecuteRequest {
        loaded_executable_handle: executable,
        args_handles: args.to_vec(),
        execute_options: Some(ExecuteOptionsProto {
            fill_status: true,
            ..ExecuteOptionsProto::default()
        }),
        device_ids: Vec::new(),
        result_array_handle: results.to_vec(),
        result_status_handle: status,
    })
}

pub(crate) fn destruct_executable(loaded_executable_handle: u64) -> Request {
    Request::LoadedExecutableDestructRequest(LoadedExecutableDestructRequest {
        loaded_executable_handle,
        delete_options: Some(LoadedExecutableDeleteOptionsProto {
            deletion_stream_id: 7,
        }),
    })
}
