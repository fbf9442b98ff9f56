//! The client: over our server, and over one that misbehaves.

mod deletion;
mod disconnects;
mod middle;
mod misbehavior;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ifrt::conformance::ProgramKind;
use ifrt::conformance::program::{fake_module, register_fake_programs};
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::{
    ArrayRef, Client, Completion, DType, DeviceList, ExecuteOptions, HostBuffer, HostData,
    LoadedExecutableRef, MemoryKind, Result, Shape, Sharding,
};
use ifrt_proxy::client::{ClientOptions, ProxyClient};
use ifrt_proxy::server::{Background, Server};

/// Only a hang takes as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The server over the fake runtime.
fn serve() -> Background {
    let fake = FakeClient::new(FakeOptions::default());
    register_fake_programs(&fake).unwrap();
    let address = "grpc://127.0.0.1:0".parse().unwrap();
    let server = Server::builder(fake).build();
    server.in_background(&address).unwrap()
}

fn connect(address: &str) -> Arc<ProxyClient> {
    ProxyClient::connect(address, ClientOptions::new()).unwrap()
}

/// The result of a completion that does not hang.
#[track_caller]
fn result<T: Clone>(completion: &Completion<T>) -> Result<T> {
    let result = completion.wait_timeout(PATIENCE);
    result.expect("a completion hangs")
}

/// The array of 0 to 5 that the programs take.
fn try_put(client: &Arc<ProxyClient>) -> Result<ArrayRef> {
    let data: Vec<u8> = (0_i32..6).flat_map(i32::to_le_bytes).collect();
    let shape = Shape::new([2, 3])?;
    let buffer = HostBuffer::dense(HostData::Borrowed(&data), DType::S32, shape);
    let device = Arc::clone(&client.devices()[0]);
    let sharding = Sharding::single_device(device, MemoryKind::default());
    client.make_array_from_host_buffer(buffer, sharding, None)
}

fn put(client: &Arc<ProxyClient>) -> ArrayRef {
    try_put(client).unwrap()
}

fn read(array: &ArrayRef) -> Result<Vec<i32>> {
    let bytes: Bytes = result(&array.copy_to_host(None))?.into_bytes()?;
    let (numbers, _) = bytes.as_chunks::<4>();
    Ok(numbers
        .iter()
        .map(|bytes| i32::from_le_bytes(*bytes))
        .collect())
}

fn compile(client: &Arc<ProxyClient>, kind: ProgramKind) -> Result<LoadedExecutableRef> {
    let devices: DeviceList = client.devices()[..1].iter().cloned().collect();
    let (program, options) = fake_module(kind, &devices).unwrap();
    result(&client.default_compiler().compile_and_load(program, options))
}

fn run(executable: &LoadedExecutableRef, args: &[ArrayRef]) -> Result<ArrayRef> {
    let result = executable.execute(args, &ExecuteOptions::default(), None)?;
    Ok(Arc::clone(&result.outputs[0]))
}
