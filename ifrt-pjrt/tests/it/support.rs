//! What all tests need: the plugin, clients, arrays, programs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ifrt::host_buffer::{HostBuffer, HostData};
use ifrt::program::{CompileOptions, HloProgram, Program, XlaCompileOptions};
use ifrt::proto::xla::{CompileOptionsProto, ExecutableBuildOptionsProto};
use ifrt::{
    ArrayRef, Client, Completion, DType, ExecuteOptions, LoadedExecutableRef, MemoryKind, Result,
    Shape, Sharding, ShardingRef,
};
use ifrt_pjrt::{CreateOptions, PLUGIN_PATH_VARIABLE, PjrtClient};
use prost::Message;

/// Longer than anything here takes, also on a busy machine; what takes longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The CPU plugin: the one that the environment names, else the one of `cargo xtask setup`.
pub(crate) fn plugin() -> PathBuf {
    if let Some(path) = std::env::var_os(PLUGIN_PATH_VARIABLE) {
        return path.into();
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join("target/xtask/plugins/pjrt_cpu.so");
    assert!(
        path.exists(),
        "these tests need the CPU plugin at {}; run: cargo xtask setup (or set \
         {PLUGIN_PATH_VARIABLE})",
        path.display()
    );
    path
}

/// A client of the CPU plugin with so many devices.
pub(crate) fn client(devices: usize) -> Arc<PjrtClient> {
    let options = CreateOptions::parse([format!("cpu_device_count={devices}")]).unwrap();
    PjrtClient::create(&plugin(), &options).unwrap()
}

/// The result, or a failure instead of a hang.
#[track_caller]
pub(crate) fn wait<T: Clone>(completion: Completion<T>) -> Result<T> {
    completion
        .wait_timeout(PATIENCE)
        .expect("the completion never came")
}

pub(crate) fn shape(dims: &[i64]) -> Shape {
    Shape::new(dims).unwrap()
}

/// The sharding for one of the client's devices.
pub(crate) fn on(client: &PjrtClient, device: usize) -> ShardingRef {
    let device = Arc::clone(&client.devices()[device]);
    Sharding::single_device(device, MemoryKind::default())
}

/// The little-endian bytes of numbers.
pub(crate) fn bytes_of(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

pub(crate) fn floats_of(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|chunk| f32::from_le_bytes(*chunk))
        .collect()
}

/// An array of any dtype on the first device.
pub(crate) fn put_bytes(
    client: &PjrtClient,
    dtype: DType,
    dims: &[i64],
    bytes: &[u8],
) -> Result<ArrayRef> {
    let host = HostBuffer::dense(HostData::Borrowed(bytes), dtype, Shape::new(dims)?);
    client.make_array_from_host_buffer(host, on(client, 0), None)
}

/// An array of floats on the first device.
pub(crate) fn put(client: &PjrtClient, dims: &[i64], values: &[f32]) -> ArrayRef {
    put_bytes(client, DType::F32, dims, &bytes_of(values)).unwrap()
}

/// The elements of an array, as its bytes.
#[track_caller]
pub(crate) fn fetch_bytes(array: &ArrayRef) -> Result<Vec<u8>> {
    wait(array.copy_to_host(None))?
        .into_bytes()
        .map(|bytes| bytes.to_vec())
}

/// The elements of an array of floats.
#[track_caller]
pub(crate) fn fetch(array: &ArrayRef) -> Vec<f32> {
    floats_of(&fetch_bytes(array).unwrap())
}

/// Compile options for so many partitions.
pub(crate) fn options(partitions: i64) -> CompileOptionsProto {
    CompileOptionsProto {
        executable_build_options: Some(ExecutableBuildOptionsProto {
            device_ordinal: -1,
            num_replicas: 1,
            num_partitions: partitions,
            use_spmd_partitioning: true,
            use_shardy_partitioner: true,
            ..ExecutableBuildOptionsProto::default()
        }),
        ..CompileOptionsProto::default()
    }
}

pub(crate) fn try_compile(
    client: &PjrtClient,
    module: impl Into<bytes::Bytes>,
    options: &CompileOptionsProto,
) -> Result<LoadedExecutableRef> {
    let options = XlaCompileOptions {
        compile_options: options.encode_to_vec().into(),
        devices: None,
        outputs_bundle_slice_sizes: None,
    };
    let program = Program::Hlo(HloProgram {
        module: module.into(),
    });
    let compiled = client
        .default_compiler()
        .compile_and_load(program, CompileOptions::Xla(options));
    wait(compiled)
}

/// Compiles MLIR text for one device.
#[track_caller]
pub(crate) fn compile(client: &PjrtClient, module: &str) -> LoadedExecutableRef {
    try_compile(client, module.to_owned(), &options(1)).unwrap()
}

/// Runs an executable with default options.
pub(crate) fn run(executable: &LoadedExecutableRef, args: &[&ArrayRef]) -> Result<Vec<ArrayRef>> {
    let args: Vec<ArrayRef> = args.iter().map(|array| Arc::clone(array)).collect();
    Ok(executable
        .execute(&args, &ExecuteOptions::default(), None)?
        .outputs)
}

/// `x + 1`, element by element.
pub(crate) fn add_one(dims: &str) -> String {
    format!(
        "module @add_one {{
          func.func @main(%x: tensor<{dims}xf32>) -> tensor<{dims}xf32> {{
            %one = stablehlo.constant dense<1.0> : tensor<{dims}xf32>
            %y = stablehlo.add %x, %one : tensor<{dims}xf32>
            return %y : tensor<{dims}xf32>
          }}
        }}"
    )
}

/// A loop of so many steps over a matrix that takes its time and gives it unchanged in size.
pub(crate) fn slow(steps: usize) -> String {
    format!(
        "module @slow {{
          func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {{
            %zero = stablehlo.constant dense<0> : tensor<i32>
            %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<64x64xf32>
            cond {{
              %n = stablehlo.constant dense<{steps}> : tensor<i32>
              %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
              stablehlo.return %c : tensor<i1>
            }} do {{
              %one = stablehlo.constant dense<1> : tensor<i32>
              %j = stablehlo.add %i, %one : tensor<i32>
              %b = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0]
                : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
              %d = stablehlo.tanh %b : tensor<64x64xf32>
              stablehlo.return %j, %d : tensor<i32>, tensor<64x64xf32>
            }}
            return %r#1 : tensor<64x64xf32>
          }}
        }}"
    )
}
