//! Arrays from arrays, and other orders of elements.

use ifrt::DType;
use ifrt::serdes::dtype_to_proto;
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request;
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_response::Response;
use ifrt_proxy::proto::xla::ifrt::proxy::*;

use crate::support::{
    DONATE, REUSE, TestServer, array_spec, copy_to_device, disassemble, make_array_with,
    make_from_shards, shape, tiled, write,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_with_strides() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let array = client.new_handle();
    let op_id = client.send(make_array_with(&*server.fake, array, |request| {
        request.shape = Some(shape(&[2, 2]));
        request.byte_strides.as_mut().unwrap().strides = vec![8, 4];
    }));
    let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    client.upload(array, &bytes).await.unwrap();
    client.answer(op_id).await.unwrap();
    let read = |strides: &[i64], buffer| {
        Request::CopyToHostBufferRequest(CopyToHostBufferRequest {
            host_buffer_handle: buffer,
            array_handle: array,
            byte_strides: crate::support::strides(strides),
        })
    };
    let buffer = client.new_handle();
    client.call(read(&[4, 8], buffer)).await.unwrap();
    let transposed: Vec<u8> = [1.0_f32, 3.0, 2.0, 4.0]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    assert_eq!(client.lookup(buffer).await.unwrap(), transposed);
    let buffer = client.new_handle();
    let error = client.call(read(&[4], buffer)).await.unwrap_err();
    assert_eq!(error.code(), ifrt::Code::InvalidArgument);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn assemble_copy_reshard_and_bitcast() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let parts = [
        client.put(&*server.fake, 0, &[1.0]).await,
        client.put(&*server.fake, 1, &[2.0]).await,
    ];
    let whole = client.new_handle();
    let sharding = tiled(&*server.fake, &[0, 1]);
    let assemble = |result_handle, dtype| {
        Request::AssembleArrayFromSingleDeviceArraysRequest(
            AssembleArrayFromSingleDeviceArraysRequest {
                shape: Some(shape(&[2])),
                sharding: Some(write(&sharding)),
                single_device_array_handles: parts.to_vec(),
                copy_semantics: REUSE,
                single_device_shard_semantics: None,
                result_handle,
                dtype,
            },
        )
    };
    client.call(assemble(whole, None)).await.unwrap();
    // Without a handle the server makes one.
    let made = client
        .call(assemble(0, Some(dtype_to_proto(DType::F32))))
        .await
        .unwrap();
    let Response::AssembleArrayFromSingleDeviceArraysResponse(made) = made else {
        panic!("{made:?}");
    };
    assert!(made.array_handle >= 1 << 48);

    // Another sharding of the same array.
    let other = client.new_handle();
    let target = crate::support::hlo(&*server.fake, ifrt::xla::HloSharding::Replicated, &[2, 3]);
    let request = ReshardArraysRequest {
        array_handles: vec![whole],
        array_specs: vec![array_spec(&[2], &target)],
        copy_semantics: 1,
        result_handles: vec![other],
    };
    client
        .call(Request::ReshardArraysRequest(request))
        .await
        .unwrap();
    assert_eq!(client.fetch(other).await.unwrap(), [1.0, 2.0]);

    // Another device, and back by the memory kind alone.
    let copied = client.new_handle();
    client
        .call(copy_to_device(&[parts[1]], 3, &[copied]))
        .await
        .unwrap();
    assert_eq!(client.fetch(copied).await.unwrap(), [2.0]);
    let pinned = client.new_handle();
    let request = |memory_kind: Option<&str>, from, to| {
        Request::CopyArraysRequest(CopyArraysRequest {
            array_handles: vec![from],
            device_ids: Vec::new(),
            memory_kind: memory_kind.map(str::to_owned),
            copy_semantics: REUSE,
            result_handles: vec![to],
        })
    };
    client
        .call(request(Some("pinned_host"), copied, pinned))
        .await
        .unwrap();
    let kept = client.new_handle();
    client.call(request(None, pinned, kept)).await.unwrap();
    let default = client.new_handle();
    client
        .call(request(Some(""), pinned, default))
        .await
        .unwrap();
    assert_eq!(client.fetch(default).await.unwrap(), [2.0]);
    let missing = client.new_handle();
    let error = client
        .call(request(Some("attic"), pinned, missing))
        .await
        .unwrap_err();
    assert!(error.message().contains("attic"), "{error}");

    let bits = client.new_handle();
    let single = tiled(&*server.fake, &[3]);
    let mut spec = array_spec(&[1], &single);
    spec.dtype = Some(dtype_to_proto(DType::U32));
    let request = BitcastArraysRequest {
        array_handles: vec![default],
        array_specs: vec![spec],
        copy_semantics: DONATE,
        result_handles: vec![bits],
    };
    client
        .call(Request::BitcastArraysRequest(request))
        .await
        .unwrap();
    assert_eq!(
        client.fetch_bytes(bits).await.unwrap(),
        2.0_f32.to_le_bytes()
    );
    assert!(client.is_deleted(default).await.unwrap());
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remap_swaps_shards() {
    use ifrt::proto::xla::ifrt::RemapPlanProto;
    use ifrt::proto::xla::ifrt::remap_plan_proto::MappingProto;

    let server = TestServer::start().await;
    let mut client = server.client().await;
    let sharding = tiled(&*server.fake, &[0, 1]);
    let array = client.new_handle();
    let second = client.new_handle();
    let op_id = client.send(make_from_shards(
        array,
        array_spec(&[2], &sharding),
        &[(array, &[1], &[4], &[0]), (second, &[1], &[4], &[1])],
    ));
    client.upload(array, &1.0_f32.to_le_bytes()).await.unwrap();
    client.upload(second, &2.0_f32.to_le_bytes()).await.unwrap();
    client.answer(op_id).await.unwrap();
    let mapping = |from: i64, to: i64| MappingProto {
        in_array: 0,
        out_array: 0,
        from_start: vec![from],
        from_end: vec![from + 1],
        from_step: vec![1],
        to_start: vec![to],
        to_end: vec![to + 1],
        to_step: vec![1],
    };
    let plan = |mappings| RemapPlanProto {
        input_specs: vec![array_spec(&[2], &sharding)],
        output_specs: vec![array_spec(&[2], &tiled(&*server.fake, &[1, 0]))],
        mappings,
        version_number: 0,
        input_devices_for_output: Vec::new(),
    };
    let remap = |plan, result| {
        Request::RemapArraysRequest(RemapArraysRequest {
            plan: Some(plan),
            array_handles: vec![array],
            copy_semantics: REUSE,
            result_handles: vec![result],
        })
    };
    let swapped = client.new_handle();
    let request = remap(plan(vec![mapping(0, 1), mapping(1, 0)]), swapped);
    client.call(request).await.unwrap();
    let shards = [client.new_handle(), client.new_handle()];
    client.call(disassemble(swapped, &shards)).await.unwrap();
    assert_eq!(client.fetch(shards[0]).await.unwrap(), [2.0]);
    let wrong = client.new_handle();
    let error = client
        .call(remap(plan(vec![mapping(0, 9)]), wrong))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ifrt::Code::InvalidArgument);
    assert_eq!(
        client.fetch(wrong).await.unwrap_err().message(),
        error.message()
    );
    server.stop().await.unwrap();
}
