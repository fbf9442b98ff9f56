//! Uploads and downloads.

use bytes::Bytes;
use ifrt::fake::FakeOptions;
use ifrt_proxy::proto::xla::ifrt::proxy::*;
use ifrt_proxy::server::Limits;
use prost::Message;
use tonic::Code;

use crate::support::{TestClient, TestServer, make_array, within};

async fn store(
    client: &mut TestClient,
    handle: u64,
    buffer_size: i64,
    chunks: &[&'static [u8]],
) -> Result<(), tonic::Status> {
    let metadata = GrpcHostBufferStoreMetadata {
        session_id: client.init.session_id,
        handle,
        buffer_size,
    };
    let chunks = chunks
        .iter()
        .map(|chunk| Bytes::from_static(chunk))
        .collect();
    client
        .raw
        .store(Some(&metadata.encode_to_vec()), chunks)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_byte_counts() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    for (handle, size, chunks) in [
        (101, 4, &[&b"123"[..]][..]),
        (102, 4, &[b"123", b"45"]),
        (103, 4, &[]),
        (104, 0, &[b"1"]),
        (105, i64::MAX, &[b"1234"]),
    ] {
        let op_id = client.send(make_array(&*server.fake, handle, &[0], 1));
        let stored = store(&mut client, handle, size, chunks).await;
        let error = client.answer(op_id).await.unwrap_err();
        assert_eq!(stored.unwrap_err().code(), Code::DataLoss, "{handle}");
        assert!(
            [ifrt::Code::DataLoss, ifrt::Code::ResourceExhausted].contains(&error.code()),
            "{handle}: {error}"
        );
    }
    let error = store(&mut client, 106, -1, &[]).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    assert_eq!(client.fetch(array).await.unwrap(), [1.0]);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handles_and_sessions() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    store(&mut client, 7, 3, &[b"1", b"23"]).await.unwrap();
    let error = store(&mut client, 7, 3, &[b"123"]).await.unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists);
    assert_eq!(error.message(), "Host buffer handle 7 already exists");
    assert_eq!(client.lookup(7).await.unwrap(), b"123");
    let error = client.lookup(8).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert_eq!(error.message(), "Host buffer handle 8 not found");

    let session_id = client.init.session_id;
    let delete = |session_id, handle| GrpcHostBufferDeleteRequest { session_id, handle };
    let mut raw = client.raw.clone();
    within(raw.0.host_buffer_delete(delete(session_id, 7)))
        .await
        .unwrap();
    let error = within(raw.0.host_buffer_delete(delete(session_id, 7)))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::NotFound);

    // Sessions that there are not.
    let error = within(raw.0.host_buffer_delete(delete(99, 7)))
        .await
        .unwrap_err();
    assert_eq!(error.message(), "Session id 99 does not exist");
    assert_eq!(error.code(), Code::NotFound);
    let error = raw.lookup(99, 7).await.unwrap_err();
    assert_eq!(error.message(), "Session id 99 does not exist");
    client.init.session_id = 99;
    let error = store(&mut client, 9, 3, &[b"123"]).await.unwrap_err();
    assert_eq!(error.message(), "Session id 99 does not exist");

    let request = |session_id| GrpcHostBufferReadFromDiskRequest {
        metadata: Some(GrpcHostBufferStoreMetadata {
            session_id,
            handle: 10,
            buffer_size: 1,
        }),
    };
    let error = within(raw.0.host_buffer_read_from_disk(request(99)))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    server.stop().await.unwrap();
}

/// A failed upload ends the session of a released client, so the array fails in its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_the_limit_the_array_fails() {
    let mut limits = Limits::default();
    limits.max_host_buffer_bytes = 10;
    let server = TestServer::with(FakeOptions::default(), limits).await;
    let mut client = server.client().await;
    let small = client.put(&*server.fake, 0, &[1.0, 2.0]).await;
    let large = client.new_handle();
    let op_id = client.send(make_array(&*server.fake, large, &[0], 3));
    client.upload(large, &[0; 12]).await.unwrap();
    let error = client.answer(op_id).await.unwrap_err();
    assert_eq!(error.code(), ifrt::Code::ResourceExhausted);
    assert!(error.message().contains("12 bytes"), "{error}");
    assert!(error.message().contains("10 bytes"), "{error}");
    assert_eq!(client.ready(&[large]).await.unwrap_err(), error);
    assert_eq!(client.fetch(small).await.unwrap(), [1.0, 2.0]);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_beyond_the_limit_end_the_session_with_a_reason() {
    let mut limits = Limits::default();
    limits.max_message_bytes = 1000;
    let server = TestServer::with(FakeOptions::default(), limits).await;
    let mut client = server.client().await;
    let other = server.client().await;
    client.send(crate::support::delete(&vec![1; 1000]));
    let error = client.end().await.unwrap_err();
    assert_eq!(error.code(), Code::OutOfRange, "{error:?}");
    drop(other);
    server.stop().await.unwrap();
}
