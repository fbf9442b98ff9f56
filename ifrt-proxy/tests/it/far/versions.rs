//! Every version of the protocol.

use std::sync::Arc;

use ifrt::conformance::ProgramKind;
use ifrt::{
    ArrayCopySemantics, ArraySpec, Client, Code, DType, ExecuteOptions, HostBuffer, HostData,
    Layout, MemoryKind, Shape, Sharding, Value,
};
use ifrt_proxy::client::{ClientOptions, ProxyClient};
use ifrt_proxy::proto::xla::ifrt::proxy::IfrtProxyVersion;

use super::middle::Middle;
use super::{compile, put, read, result, run, serve};

fn at(address: &str, protocol: i32) -> Arc<ProxyClient> {
    let options = ClientOptions::new().protocol_versions(protocol..=protocol);
    ProxyClient::connect(address, options).unwrap()
}

#[test]
fn each_is_spoken() {
    let server = serve();
    for protocol in 16..=25 {
        let client = at(&server.address().to_string(), protocol);
        assert_eq!(client.protocol_version(), protocol);
        let executable = compile(&client, ProgramKind::AddOne).unwrap();
        for _ in 0..2 {
            let array = put(&client);
            let output = run(&executable, &[Arc::clone(&array)]).unwrap();
            assert_eq!(read(&output).unwrap(), [1, 2, 3, 4, 5, 6], "{protocol}");
            array.delete().detach();
            assert!(Value::is_deleted(&*array));
            let options = ExecuteOptions {
                fill_status: true,
                ..ExecuteOptions::default()
            };
            let run = executable.execute(&[put(&client)], &options, None).unwrap();
            assert_eq!(result(&run.status.unwrap()), Ok(()), "{protocol}");
        }
        let needs = |version: i32, code: Option<Code>| {
            let expected = (protocol < version).then_some(Code::Unimplemented);
            assert_eq!(code, expected, "{protocol}");
        };
        needs(18, executable.cost_analysis().err().map(|e| e.code()));
        needs(
            19,
            executable
                .human_readable_program_text()
                .err()
                .map(|e| e.code()),
        );
        needs(23, with_layout(&client).err().map(|e| e.code()));
        needs(24, bitcast(&client).err().map(|e| e.code()));
    }
}

fn with_layout(client: &Arc<ProxyClient>) -> ifrt::Result<()> {
    let shape = Shape::new([2, 3])?;
    let buffer = HostBuffer::dense(HostData::Borrowed(&[1; 6]), DType::S8, shape);
    let device = Arc::clone(&client.devices()[0]);
    let sharding = Sharding::single_device(device, MemoryKind::default());
    let layout = Layout::from_minor_to_major([0, 1])?;
    let made = client.make_array_from_host_buffer(buffer, sharding, Some(layout))?;
    result(&made.ready())
}

fn bitcast(client: &Arc<ProxyClient>) -> ifrt::Result<()> {
    let array = put(client);
    let spec = ArraySpec {
        dtype: DType::F32,
        shape: array.shape().clone(),
        sharding: Arc::clone(array.sharding()),
        layout: None,
    };
    let donate = ArrayCopySemantics::DonateInput;
    let cast = client.bitcast_arrays(&[array], &[spec], donate)?;
    result(&cast[0].ready())
}

#[test]
fn a_server_that_wants_another_one_is_refused() {
    let middle = Middle::start();
    for (protocol, serdes) in [
        (15, 3),
        (26, 3),
        (0, 0),
        (25, 6),
        (25, -1),
        (i32::MIN, i32::MAX),
    ] {
        middle.faults.lock().unwrap().version = Some(IfrtProxyVersion {
            protocol_version: protocol,
            ifrt_serdes_version_number: serdes,
        });
        let error = ProxyClient::connect(&middle.address, ClientOptions::new()).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
        assert!(error.message().contains("16 to 25"), "{error}");
    }
}

#[test]
fn no_version_in_common() {
    let middle = Middle::start();
    let options = ClientOptions::new()
        .protocol_versions(25..=25)
        .serdes_versions(4..=5);
    middle.faults.lock().unwrap().version = Some(IfrtProxyVersion {
        protocol_version: 24,
        ifrt_serdes_version_number: 3,
    });
    let error = ProxyClient::connect(&middle.address, options).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
}
