//! Making arrays and reading them.

use ifrt::DType;
use ifrt::serdes::dtype_to_proto;
use ifrt_proxy::proto::xla::ifrt::proto::StringArrayContents;
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request;
use ifrt_proxy::proto::xla::ifrt::proxy::*;
use prost::Message;

use crate::support::{
    TestServer, array_spec, disassemble, fully_replicated_shard, make_array, make_array_with,
    make_from_shards, replicated, shape, tiled, tiled_rows,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_and_back() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let array = client.put(&*server.fake, 2, &[1.0, 2.0, 3.0]).await;
    client.ready(&[array]).await.unwrap();
    client.ready(&[]).await.unwrap();
    assert_eq!(client.fetch(array).await.unwrap(), [1.0, 2.0, 3.0]);
    assert!(!client.is_deleted(array).await.unwrap());
    server.stop().await.unwrap();
}

/// About half of the small uploads of a released client arrive before the request that uses them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bytes_may_come_before_or_after_the_request() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let (before, after) = (client.new_handle(), client.new_handle());
    client.upload(before, &1.0_f32.to_le_bytes()).await.unwrap();
    let first = client.send(make_array(&*server.fake, before, &[0], 1));
    client.answer(first).await.unwrap();
    let second = client.send(make_array(&*server.fake, after, &[0], 1));
    client.upload(after, &2.0_f32.to_le_bytes()).await.unwrap();
    client.answer(second).await.unwrap();
    assert_eq!(client.fetch(before).await.unwrap(), [1.0]);
    assert_eq!(client.fetch(after).await.unwrap(), [2.0]);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicated_on_all_devices() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let array = client.new_handle();
    let op_id = client.send(make_array(&*server.fake, array, &[0, 1, 2, 3], 2));
    client
        .upload(array, &[0, 0, 0, 0, 0, 0, 128, 63])
        .await
        .unwrap();
    client.answer(op_id).await.unwrap();
    let shard = client.new_handle();
    client
        .call(fully_replicated_shard(array, shard))
        .await
        .unwrap();
    assert_eq!(client.fetch(shard).await.unwrap(), [0.0, 1.0]);
    let shards: Vec<u64> = (0..4).map(|_| client.new_handle()).collect();
    client.call(disassemble(array, &shards)).await.unwrap();
    for shard in shards {
        assert_eq!(client.fetch(shard).await.unwrap(), [0.0, 1.0]);
    }
    server.stop().await.unwrap();
}

/// A 4x4 array over two devices, uploaded as a client does it: views of its own memory, with the
/// bytes of the other shard in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_with_strides() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let whole: Vec<f32> = (0_u8..16).map(f32::from).collect();
    let bytes: Vec<u8> = whole.iter().flat_map(|value| value.to_le_bytes()).collect();
    let sharding = tiled_rows(&*server.fake, &[0, 1]);
    let (first, second) = (client.new_handle(), client.new_handle());
    // Two rows for each device, as rows of a transposed array: strides 4, 16.
    let request = make_from_shards(
        first,
        array_spec(&[4, 4], &sharding),
        &[
            (first, &[2, 4], &[4, 16], &[0]),
            (second, &[2, 4], &[4, 16], &[1]),
        ],
    );
    let op_id = client.send(request);
    client.upload(first, &bytes[..56]).await.unwrap();
    client.upload(second, &bytes[8..]).await.unwrap();
    client.answer(op_id).await.unwrap();
    let shards = [client.new_handle(), client.new_handle()];
    client.call(disassemble(first, &shards)).await.unwrap();
    assert_eq!(
        client.fetch(shards[0]).await.unwrap(),
        [0.0, 4.0, 8.0, 12.0, 1.0, 5.0, 9.0, 13.0]
    );
    assert_eq!(
        client.fetch(shards[1]).await.unwrap(),
        [2.0, 6.0, 10.0, 14.0, 3.0, 7.0, 11.0, 15.0]
    );
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_buffer_for_several_shards() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let sharding = replicated(&*server.fake, &[0, 1]);
    let array = client.new_handle();
    let mut spec = array_spec(&[1], &tiled(&*server.fake, &[0]));
    spec.sharding = Some(sharding);
    let op_id = client.send(make_from_shards(
        array,
        spec,
        &[(array, &[1], &[4], &[0, 1])],
    ));
    client.upload(array, &5.0_f32.to_le_bytes()).await.unwrap();
    client.answer(op_id).await.unwrap();
    let shards = [client.new_handle(), client.new_handle()];
    client.call(disassemble(array, &shards)).await.unwrap();
    for shard in shards {
        assert_eq!(client.fetch(shard).await.unwrap(), [5.0]);
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strings() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let array = client.new_handle();
    let op_id = client.send(make_array_with(&*server.fake, array, |request| {
        request.dtype = Some(dtype_to_proto(DType::String));
        request.shape = Some(shape(&[2]));
        request.byte_strides = None;
    }));
    let bytes = b"\x0a\x01a\x0a\x02bb";
    client.upload(array, bytes).await.unwrap();
    client.answer(op_id).await.unwrap();
    assert_eq!(client.fetch_bytes(array).await.unwrap(), bytes);
    let contents = StringArrayContents::decode(&bytes[..]).unwrap();
    assert_eq!(contents.strings, ["a", "bb"]);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_below_a_byte_and_no_bytes_at_all() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let array = client.new_handle();
    let op_id = client.send(make_array_with(&*server.fake, array, |request| {
        request.dtype = Some(dtype_to_proto(DType::S4));
        request.shape = Some(shape(&[3]));
        request.byte_strides.as_mut().unwrap().strides = vec![1];
    }));
    client.upload(array, &[1, 2, 7]).await.unwrap();
    client.answer(op_id).await.unwrap();
    assert_eq!(client.fetch_bytes(array).await.unwrap(), [1, 2, 7]);

    // A zero-length buffer sends no message at all, and is fetched in one empty message.
    let empty = client.new_handle();
    let op_id = client.send(make_array(&*server.fake, empty, &[0], 0));
    client.upload(empty, &[]).await.unwrap();
    client.answer(op_id).await.unwrap();
    let buffer = client.new_handle();
    let request = CopyToHostBufferRequest {
        host_buffer_handle: buffer,
        array_handle: empty,
        byte_strides: None,
    };
    client
        .call(Request::CopyToHostBufferRequest(request))
        .await
        .unwrap();
    let session = client.init.session_id;
    let chunks = client.raw.lookup(session, buffer).await.unwrap();
    assert_eq!(chunks.len(), 1);
    assert!(chunks[0].is_empty());
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_array_travels_in_chunks() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let values: Vec<f32> = (0..1_000_000_u32).map(f32::from_bits).collect();
    let array = client.put(&*server.fake, 0, &values).await;
    let buffer = client.new_handle();
    let request = CopyToHostBufferRequest {
        host_buffer_handle: buffer,
        array_handle: array,
        byte_strides: None,
    };
    client
        .call(Request::CopyToHostBufferRequest(request))
        .await
        .unwrap();
    let session = client.init.session_id;
    let chunks = client.raw.lookup(session, buffer).await.unwrap();
    let sizes: Vec<usize> = chunks.iter().map(|chunk| chunk.len()).collect();
    assert_eq!(sizes, [1 << 20, 1 << 20, 1 << 20, 4_000_000 - (3 << 20)]);
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    assert_eq!(chunks.concat(), bytes);
    server.stop().await.unwrap();
}

/// Shardings as bytes, captured from an unmodified client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shardings_of_an_unmodified_client() {
    use ifrt::proto::xla::ifrt::{Serialized, ShardingProto};

    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    };
    let sharding = |hex: &str| ShardingProto {
        serialized_sharding: Some(Serialized {
            type_name: "xla::ifrt::HloSharding".to_owned(),
            data: bytes(hex).into(),
        }),
    };
    let server = TestServer::start().await;
    let mut client = server.client().await;
    // Device 1; all of four devices; the pinned memory of device 0.
    for (hex, shards) in [
        ("0a030a010112001a06646576696365", 1),
        ("0a060a040001020312001a06646576696365", 4),
        ("0a030a010012001a0b70696e6e65645f686f7374", 1),
    ] {
        let array = client.new_handle();
        let op_id = client.send(make_array_with(&*server.fake, array, |request| {
            request.sharding = Some(sharding(hex));
        }));
        client.upload(array, &7.0_f32.to_le_bytes()).await.unwrap();
        client.answer(op_id).await.unwrap();
        let handles: Vec<u64> = (0..shards).map(|_| client.new_handle()).collect();
        client.call(disassemble(array, &handles)).await.unwrap();
        for handle in handles {
            assert_eq!(client.fetch(handle).await.unwrap(), [7.0], "{hex}");
        }
    }
    // A 2x2 mesh: P('x','y') with a shard for each device, and P('y', None) with two copies of
    // two shards. Whole array: [[0, 1], [2, 3]].
    for (hex, buffers, expected) in [
        (
            "0a060a0400010203120c08031a0202024a01045201001a06646576696365",
            vec![
                (vec![0.0], vec![0]),
                (vec![1.0], vec![1]),
                (vec![2.0], vec![2]),
                (vec![3.0], vec![3]),
            ],
            [vec![0.0], vec![1.0], vec![2.0], vec![3.0]],
        ),
        (
            "0a060a0400010203121108031a0302010230014a020202520201001a06646576696365",
            vec![(vec![0.0, 1.0], vec![0, 2]), (vec![2.0, 3.0], vec![1, 3])],
            [
                vec![0.0, 1.0],
                vec![2.0, 3.0],
                vec![0.0, 1.0],
                vec![2.0, 3.0],
            ],
        ),
    ] {
        let mut spec = array_spec(&[2, 2], &tiled_rows(&*server.fake, &[0, 1]));
        spec.sharding = Some(sharding(hex));
        let handles: Vec<u64> = buffers.iter().map(|_| client.new_handle()).collect();
        let dims = [1, i64::try_from(buffers[0].0.len()).unwrap()];
        let shards: Vec<_> = buffers
            .iter()
            .zip(&handles)
            .map(|((_, shards), handle)| (*handle, &dims[..], &[8, 4][..], &shards[..]))
            .collect();
        let op_id = client.send(make_from_shards(handles[0], spec, &shards));
        for ((values, _), handle) in buffers.iter().zip(&handles) {
            let data: Vec<u8> = values
                .iter()
                .flat_map(|value: &f32| value.to_le_bytes())
                .collect();
            client.upload(*handle, &data).await.unwrap();
        }
        client.answer(op_id).await.unwrap();
        let parts: Vec<u64> = (0..4).map(|_| client.new_handle()).collect();
        client.call(disassemble(handles[0], &parts)).await.unwrap();
        for (part, expected) in parts.into_iter().zip(expected) {
            assert_eq!(client.fetch(part).await.unwrap(), expected, "{hex}");
        }
    }
    server.stop().await.unwrap();
}
