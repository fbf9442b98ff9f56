//! What a client is told about the runtime.

use std::sync::Arc;

use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::serdes::attribute_map_from_proto;
use ifrt_proxy::server::{Limits, Listener, Server};

use crate::support::{TestClient, TestServer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn devices_and_memories() {
    let options = FakeOptions {
        num_devices: 8,
        ..FakeOptions::default()
    };
    let server = TestServer::with(options, Limits::default()).await;
    let client = server.client().await;
    let init = &client.init;
    assert_eq!(init.platform_name, "fake");
    assert_ne!(init.session_id, 0);
    assert_eq!(init.primary_device_ids, (0..8).collect::<Vec<_>>());
    assert_eq!(init.addressable_device_ids, init.primary_device_ids);
    assert_eq!(init.all_devices.len(), 8);
    // Each device has three memories of its own, each told once.
    assert_eq!(init.memories.len(), 24);
    for device in &init.all_devices {
        let default = device.default_memory_id.unwrap();
        assert!(device.memory_ids.contains(&default));
        for id in &device.memory_ids {
            let mut memories = init.memories.iter().filter(|memory| memory.id == *id);
            let memory = memories.next().unwrap();
            assert!(memories.next().is_none());
            assert_eq!(memory.device_ids, [device.id]);
        }
        assert_eq!(device.platform_name, "fake");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn devices_of_other_processes() {
    let server = TestServer::with(FakeOptions::fixture(4, 2), Limits::default()).await;
    let client = server.client().await;
    assert_eq!(client.init.primary_device_ids, [10, 11, 12, 13]);
    assert_eq!(client.init.addressable_device_ids, [10, 11]);
    server.stop().await.unwrap();
}

/// JAX fails without `serialize_with_sdy`, and a client of a proxy cannot serialize executables
/// although the runtime can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attributes_that_jax_needs() {
    let server = TestServer::start().await;
    let runtime = ifrt::Client::attributes(&*server.fake);
    assert_eq!(
        runtime.get_bool("supports_executable_serialization"),
        Ok(true)
    );
    let client = server.client().await;
    let attributes = client.init.client_attributes.as_ref().unwrap();
    let attributes = attribute_map_from_proto(attributes).unwrap();
    assert_eq!(
        attributes.get_bool("supports_executable_serialization"),
        Ok(false)
    );
    assert_eq!(attributes.get_bool("serialize_with_sdy"), Ok(true));
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_platform_name() {
    let fake = FakeClient::new(FakeOptions::default());
    let listener = Listener::bind(&"grpc://127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let address = listener.address().clone();
    let server = Server::builder(fake as Arc<dyn ifrt::Client>)
        .platform_name("cpu")
        .build();
    let serving = tokio::spawn(server.serve(vec![listener], std::future::pending()));
    let client = TestClient::connect(&address, 25).await;
    assert_eq!(client.init.platform_name, "cpu");
    for device in &client.init.all_devices {
        assert_eq!(device.platform_name, "cpu");
    }
    serving.abort();
}
