//! The end of a session, from either side.

use ifrt::fake::FakeOptions;
use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt_proxy::server::Limits;
use tonic::Code;

use crate::support::{
    TestClient, TestServer, check_value_ready, compile, execute, make_array, until,
};

/// Gives a client one of everything.
async fn furnish(server: &TestServer, client: &mut TestClient) {
    let fake = &*server.fake;
    let executable = client
        .compile("fake:add_one(f32[1]) -> (f32[1])")
        .await
        .unwrap();
    let array = client.put(fake, 0, &[1.0]).await;
    client.execute_first(executable, &[array]).await.unwrap();
    let unused = client.new_handle();
    client.upload(unused, &[1, 2, 3]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_leaves_nothing() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    furnish(&server, &mut client).await;
    assert!(server.fake.live_bytes() > 0);
    let session_id = client.init.session_id;
    drop(client);
    until("the session is freed", || server.fake.live_bytes() == 0).await;
    let error = server.raw().await.lookup(session_id, 1).await.unwrap_err();
    assert_eq!(
        error.message(),
        format!("Session id {session_id} does not exist")
    );
    server.stop().await.unwrap();
}

/// The worker waits for an upload, the runtime computes, a program is being compiled: none of it
/// keeps what the client had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_while_things_are_under_way() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    furnish(&server, &mut client).await;
    let gate = Gate::new();
    let faults = server.fake.faults();
    for op in [Op::Compile, Op::Ready, Op::Execute] {
        faults.add(op, When::Once, Fault::Slow(gate.clone()));
    }
    let executable = client.compile("fake:zeros() -> (f32[8])");
    drop(executable);
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    client.send(check_value_ready(&[array]));
    client.send(compile("fake:zeros() -> (f32[8])"));
    let never = client.new_handle();
    client.send(make_array(&*server.fake, never, &[0], 1));
    for _ in 0..1000 {
        client.send(check_value_ready(&[array]));
    }
    gate.wait_until_held(2, std::time::Duration::from_secs(60))
        .unwrap();
    drop(client);
    until("the session is freed", || server.fake.live_bytes() == 0).await;
    // What comes late is not kept.
    gate.open();
    let fake = server.fake.clone();
    server.stop().await.unwrap();
    assert_eq!(fake.live_bytes(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_does_not_outlive_its_session() {
    use ifrt_proxy::proto::xla::ifrt::proxy::*;
    use prost::Message;
    use tokio_stream::wrappers::UnboundedReceiverStream;
    use tonic::metadata::BinaryMetadataValue;

    let server = TestServer::start().await;
    let client = server.client().await;
    let metadata = GrpcHostBufferStoreMetadata {
        session_id: client.init.session_id,
        handle: 5,
        buffer_size: 1 << 20,
    };
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    sender
        .send(GrpcHostBufferStoreRequest {
            data: vec![0; 10].into(),
        })
        .unwrap();
    let mut request = tonic::Request::new(UnboundedReceiverStream::new(receiver));
    let value = BinaryMetadataValue::from_bytes(&metadata.encode_to_vec());
    request
        .metadata_mut()
        .insert_bin(crate::support::STORE_METADATA, value);
    let mut raw = server.raw().await;
    let uploading = tokio::spawn(async move { raw.0.host_buffer_store(request).await });
    drop(client);
    let error = crate::support::within(uploading)
        .await
        .unwrap()
        .unwrap_err();
    // Either the session ended while the upload ran or before it began.
    assert!(
        [Code::Cancelled, Code::NotFound].contains(&error.code()),
        "{error:?}"
    );
    drop(sender);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_sessions_than_allowed() {
    let mut limits = Limits::default();
    limits.max_sessions = 2;
    let server = TestServer::with(FakeOptions::default(), limits).await;
    let first = server.client().await;
    let mut second = server.client().await;
    let data = ifrt::AttributeMap::default();
    let Err(error) = TestClient::introduced(server.raw().await, 25, &data).await else {
        panic!("a third session");
    };
    assert_eq!(error.code(), ifrt::Code::ResourceExhausted);
    // The others go on, and one that leaves makes room.
    second.ready(&[]).await.unwrap();
    let id = first.init.session_id;
    drop(first);
    let mut raw = server.raw().await;
    while raw
        .lookup(id, 1)
        .await
        .unwrap_err()
        .message()
        .starts_with("Host buffer")
    {
        tokio::task::yield_now().await;
    }
    drop(server.client().await);
    server.stop().await.unwrap();
}

/// A client that asks without end and never reads the answers is made to wait, not served until
/// the memory is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_requests_are_bounded() {
    let mut limits = Limits::default();
    limits.max_pending_request_bytes = 64 << 10;
    let server = TestServer::with(FakeOptions::default(), limits).await;
    let mut client = server.client().await;
    let executable = client
        .compile("fake:add_one(f32[1]) -> (f32[1])")
        .await
        .unwrap();
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    // Far more than fits at once; all are answered in the end.
    let sent: Vec<u64> = (0..5000)
        .map(|_| {
            let result = client.new_handle();
            client.send(execute(executable, &[array], &[result]))
        })
        .collect();
    for op_id in sent {
        client.answer(op_id).await.unwrap();
    }
    server.stop().await.unwrap();
}

/// A client that ends its requests has said goodbye: nothing is left, and that is no error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_says_goodbye() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    furnish(&server, &mut client).await;
    let (closed, _) = tokio::sync::mpsc::unbounded_channel();
    drop(std::mem::replace(&mut client.requests, closed));
    client.end().await.unwrap();
    until("the session is freed", || server.fake.live_bytes() == 0).await;
    server.stop().await.unwrap();
}
