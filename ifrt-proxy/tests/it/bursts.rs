//! Bursts that end the sessions of other servers.

use bytes::Bytes;
use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt_proxy::proto::xla::ifrt::proxy::*;
use prost::Message;
use tokio::task::JoinSet;

use crate::support::{RawClient, TestServer, delete, destruct, execute, make_array, until, within};

/// Each upload is a stream of its own, and a client knows no limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_uploads_at_once() {
    const COUNT: u64 = 3000;
    let server = TestServer::start().await;
    let mut client = server.client().await;
    // Uploads take a connection of their own, as those of a released client.
    let data = RawClient::connect(&server.address).await;
    let session_id = client.init.session_id;
    let handles: Vec<u64> = (0..COUNT).map(|_| client.new_handle()).collect();
    // The requests are there first: the worker waits for the first upload.
    let made: Vec<u64> = handles
        .iter()
        .map(|handle| client.send(make_array(&*server.fake, *handle, &[0], 1)))
        .collect();
    let mut uploads = JoinSet::new();
    for handle in handles.iter().rev().copied() {
        let mut data = data.clone();
        uploads.spawn(async move {
            let metadata = GrpcHostBufferStoreMetadata {
                session_id,
                handle,
                buffer_size: 4,
            };
            let value = f32::from_bits(u32::try_from(handle).unwrap());
            let chunk = Bytes::copy_from_slice(&value.to_le_bytes());
            data.store(Some(&metadata.encode_to_vec()), vec![chunk])
                .await
        });
    }
    while let Some(uploaded) = within(uploads.join_next()).await {
        uploaded.unwrap().unwrap();
    }
    for op_id in made {
        client.answer(op_id).await.unwrap();
    }
    let last = handles[handles.len() - 1];
    let value = f32::from_bits(u32::try_from(last).unwrap());
    assert_eq!(client.fetch(last).await.unwrap(), [value]);
    client.call(delete(&handles)).await.unwrap();
    client.call(destruct(&handles)).await.unwrap();
    until("the memory is free", || server.fake.live_bytes() == 0).await;
    server.stop().await.unwrap();
}

/// HTTP/2 ends connections on which thousands of small messages lie unread, so they are read even
/// while the worker is busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_requests_while_the_worker_is_busy() {
    const COUNT: usize = 20_000;
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let executable = client
        .compile("fake:add_one(f32[1]) -> (f32[1])")
        .await
        .unwrap();
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    let gate = Gate::new();
    server
        .fake
        .faults()
        .add(Op::Execute, When::Once, Fault::Block(gate.clone()));
    let mut sent = Vec::with_capacity(COUNT);
    for _ in 0..COUNT {
        let result = client.new_handle();
        sent.push((
            result,
            client.send(execute(executable, &[array], &[result])),
        ));
    }
    gate.wait_until_held(1, std::time::Duration::from_secs(60))
        .unwrap();
    // Uploads on the same connection still arrive.
    let handle = client.new_handle();
    client.upload(handle, &1.0_f32.to_le_bytes()).await.unwrap();
    gate.open();
    for (_, op_id) in &sent {
        client.answer(*op_id).await.unwrap();
    }
    assert_eq!(client.fetch(sent[COUNT - 1].0).await.unwrap(), [2.0]);
    server.stop().await.unwrap();
}
