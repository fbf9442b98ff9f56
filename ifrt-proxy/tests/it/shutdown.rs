//! The end of the server.

use std::os::unix::net::UnixStream;

use ifrt::fake::FakeOptions;
use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt_proxy::server::{Limits, Listener};
use tonic::Code;

use crate::support::{TestServer, execute, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_are_told_and_everything_is_freed() {
    let server = TestServer::start().await;
    let fake = server.fake.clone();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = server.client().await;
        client.put(&*fake, 0, &[1.0]).await;
        clients.push(client);
    }
    let idle = server.raw().await;
    assert!(fake.live_bytes() > 0);
    server.stop().await.unwrap();
    assert_eq!(fake.live_bytes(), 0);
    for client in clients {
        let error = client.end().await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{error:?}");
    }
    drop(idle);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_react_does_not_keep_the_server() {
    let mut limits = Limits::default();
    limits.shutdown_grace = std::time::Duration::from_millis(1);
    let server = TestServer::with(FakeOptions::default(), limits).await;
    let mut client = server.client().await;
    let executable = client.compile("fake:zeros() -> (f32[1])").await.unwrap();
    // The worker of the session hangs in the runtime.
    let gate = Gate::new();
    server
        .fake
        .faults()
        .add(Op::Execute, When::Once, Fault::Block(gate.clone()));
    client.send(execute(executable, &[], &[]));
    gate.wait_until_held(1, std::time::Duration::from_secs(60))
        .unwrap();
    server.stop().await.unwrap();
    gate.open();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_new_clients_after_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.sock");
    let address = format!("grpc://unix:{}", path.display());
    let server = TestServer::listening(FakeOptions::default(), Limits::default(), &address).await;
    drop(UnixStream::connect(&path).unwrap());
    server.stop().await.unwrap();
    assert!(UnixStream::connect(&path).is_err());
    // The address is free again.
    let again = within(Listener::bind(&address.parse().unwrap()))
        .await
        .unwrap();
    assert_eq!(again.address().to_string(), address);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_that_cannot_be_listened_on() {
    let first = Listener::bind(&"grpc://127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let error = Listener::bind(first.address()).await.unwrap_err();
    assert_eq!(error.code(), ifrt::Code::AlreadyExists);
    assert!(error.message().contains("in use"), "{error}");
    for open in ["grpc://0.0.0.0:0", "grpc://[::]:0"] {
        let open = open.parse().unwrap();
        let error = Listener::bind(&open).await.unwrap_err();
        assert_eq!(error.code(), ifrt::Code::InvalidArgument);
        assert!(error.message().contains("other machines"), "{error}");
    }
    let open = "grpc://0.0.0.0:0".parse().unwrap();
    drop(
        Listener::bind_insecurely_on_any_address(&open)
            .await
            .unwrap(),
    );
    let nowhere = "grpc://256.256.256.256:1".parse().unwrap();
    assert!(Listener::bind(&nowhere).await.is_err());
}
