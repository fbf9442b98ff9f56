//! What the tests share.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::xla::HloSharding;
use ifrt::{
    ArrayRef, Client, CompileOptions, Completion, DType, DeviceList, HloProgram, HostBuffer,
    HostData, HostShards, LoadedExecutableRef, MemoryKind, Program, Result, Shape, Sharding,
    ShardingRef, XlaCompileOptions,
};

/// Long enough for any machine; only a hang takes it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Four devices with three memories each.
pub(crate) fn client() -> Arc<FakeClient> {
    FakeClient::new(FakeOptions::default())
}

/// The result of a completion; a hang is a failure.
#[track_caller]
pub(crate) fn wait<T: Clone>(completion: &Completion<T>) -> Result<T> {
    let result = completion.wait_timeout(DEADLINE);
    result.expect("the completion is not ready in time")
}

pub(crate) fn shape(dims: &[i64]) -> Shape {
    Shape::new(dims).unwrap()
}

pub(crate) fn devices(client: &FakeClient, positions: &[usize]) -> DeviceList {
    let devices = client.devices();
    positions
        .iter()
        .map(|position| Arc::clone(&devices[*position]))
        .collect()
}

/// The whole array on one device.
pub(crate) fn single(client: &FakeClient, position: usize) -> ShardingRef {
    let device = Arc::clone(&client.devices()[position]);
    Sharding::single_device(device, MemoryKind::default())
}

pub(crate) fn hlo(sharding: HloSharding, devices: DeviceList) -> ShardingRef {
    Sharding::hlo(sharding, devices, MemoryKind::default()).unwrap()
}

pub(crate) fn replicated(client: &FakeClient, positions: &[usize]) -> ShardingRef {
    hlo(HloSharding::Replicated, devices(client, positions))
}

pub(crate) fn tiled(client: &FakeClient, positions: &[usize], tiles: &[i64]) -> ShardingRef {
    hlo(
        HloSharding::tile(tiles).unwrap(),
        devices(client, positions),
    )
}

pub(crate) fn bytes_of(values: &[f32]) -> Bytes {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

pub(crate) fn floats_of(bytes: &[u8]) -> Vec<f32> {
    let (chunks, rest) = bytes.as_chunks();
    assert!(rest.is_empty());
    chunks
        .iter()
        .map(|chunk| f32::from_ne_bytes(*chunk))
        .collect()
}

/// An array of `f32` from whole values, by one buffer or by one per shard.
pub(crate) fn array(client: &FakeClient, dims: &[i64], sharding: &ShardingRef) -> ArrayRef {
    let count = shape(dims).num_elements();
    let values: Vec<f32> = (0..count).map(|number| number as f32).collect();
    array_of(client, &values, dims, sharding)
}

pub(crate) fn array_of(
    client: &FakeClient,
    values: &[f32],
    dims: &[i64],
    sharding: &ShardingRef,
) -> ArrayRef {
    let whole = HostBuffer::dense(HostData::Shared(bytes_of(values)), DType::F32, shape(dims));
    let made = client
        .make_array_from_host_buffer(whole, replicated_like(sharding), None)
        .unwrap();
    if sharding.is_fully_replicated() {
        return made;
    }
    let spec = ifrt::ArraySpec {
        dtype: DType::F32,
        shape: shape(dims),
        sharding: Arc::clone(sharding),
        layout: None,
    };
    let copy = ifrt::ArrayCopySemantics::AlwaysCopy;
    client
        .reshard_arrays(&[made], &[spec], copy)
        .unwrap()
        .remove(0)
}

fn replicated_like(sharding: &ShardingRef) -> ShardingRef {
    if sharding.is_fully_replicated() {
        return Arc::clone(sharding);
    }
    let (devices, kind) = (sharding.devices().clone(), sharding.memory_kind().clone());
    Sharding::hlo(HloSharding::Replicated, devices, kind).unwrap()
}

/// Each buffer alone makes the shard with its number.
pub(crate) fn shards<'a>(
    spec: ifrt::ArraySpec,
    buffers: impl IntoIterator<Item = HostBuffer<'a>>,
) -> HostShards<'a> {
    let numbered = buffers.into_iter().enumerate();
    HostShards {
        spec,
        buffers: numbered
            .map(|(number, buffer)| (vec![number], buffer))
            .collect(),
    }
}

/// The elements of an array with one shard or of the first one of a replicated one.
#[track_caller]
pub(crate) fn read(array: &ArrayRef) -> Result<Vec<f32>> {
    let bytes = wait(&array.copy_to_host(None))?.into_bytes()?;
    Ok(floats_of(&bytes))
}

/// The elements of each addressable shard.
#[track_caller]
pub(crate) fn read_shards(array: &ArrayRef) -> Result<Vec<Vec<f32>>> {
    let pieces = array.disassemble(
        ifrt::ArrayCopySemantics::ReuseInput,
        ifrt::ShardSemantics::Addressable,
    )?;
    pieces.iter().map(read).collect()
}

/// Compiles a module of the fake for these devices, or for the default ones.
pub(crate) fn compile(
    client: &FakeClient,
    module: &str,
    devices: Option<DeviceList>,
) -> Completion<LoadedExecutableRef> {
    let program = Program::Hlo(HloProgram {
        module: module.to_owned().into(),
    });
    let options = CompileOptions::Xla(XlaCompileOptions {
        compile_options: Bytes::new(),
        devices,
        outputs_bundle_slice_sizes: None,
    });
    client.default_compiler().compile_and_load(program, options)
}
