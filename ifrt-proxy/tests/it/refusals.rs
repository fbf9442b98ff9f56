//! Arrays and programs that cannot be made: each gets an error, and the session goes on.

use ifrt::serdes::dtype_to_proto;
use ifrt::{Code, DType};
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request;
use ifrt_proxy::proto::xla::ifrt::proxy::*;

use crate::support::{
    ShardBuffer, TestServer, array_spec, compile, make_array_with, make_from_shards, shape,
    strides, tiled,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrays_that_cannot_be_made() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let fake = &*server.fake;
    type Change<'a> = Box<dyn FnOnce(&mut MakeArrayFromHostBufferRequest) + 'a>;
    let cases: Vec<(Change<'_>, &[u8], Code)> = vec![
        (Box::new(|_| {}), b"123", Code::InvalidArgument),
        (Box::new(|_| {}), b"12345", Code::InvalidArgument),
        (Box::new(|r| r.dtype = None), b"1234", Code::InvalidArgument),
        (
            Box::new(|r| r.dtype.as_mut().unwrap().kind = 1000),
            b"1234",
            Code::InvalidArgument,
        ),
        (
            Box::new(|r| r.dtype.as_mut().unwrap().version_number = 9),
            b"1234",
            Code::FailedPrecondition,
        ),
        (Box::new(|r| r.shape = None), b"1234", Code::InvalidArgument),
        (
            Box::new(|r| r.shape.as_mut().unwrap().dims = vec![-1]),
            b"1234",
            Code::InvalidArgument,
        ),
        (
            Box::new(|r| r.shape.as_mut().unwrap().dims = vec![i64::MAX, i64::MAX]),
            b"1234",
            Code::InvalidArgument,
        ),
        (
            Box::new(|r| {
                r.shape = Some(shape(&[2]));
                r.byte_strides = strides(&[0]);
            }),
            b"1234",
            Code::Unimplemented,
        ),
        (
            Box::new(|r| r.sharding.as_mut().unwrap().serialized_sharding = None),
            b"1234",
            Code::InvalidArgument,
        ),
        (
            Box::new(|r| {
                let sharding = r.sharding.as_mut().unwrap();
                sharding.serialized_sharding.as_mut().unwrap().data = vec![0xff].into();
            }),
            b"1234",
            Code::InvalidArgument,
        ),
        (
            Box::new(|r| {
                let sharding = r.sharding.as_mut().unwrap();
                sharding.serialized_sharding.as_mut().unwrap().type_name = "x::Y".to_owned();
            }),
            b"1234",
            Code::Unimplemented,
        ),
        (
            Box::new(|r| {
                r.dtype = Some(dtype_to_proto(DType::String));
                r.byte_strides = None;
            }),
            b"\x0a\x01a\x0a\x01b",
            Code::InvalidArgument,
        ),
        (
            Box::new(|r| {
                r.dtype = Some(dtype_to_proto(DType::String));
                r.byte_strides = None;
            }),
            b"\xff\xff",
            Code::InvalidArgument,
        ),
        (
            Box::new(|r| r.dtype = Some(dtype_to_proto(DType::Opaque))),
            b"1234",
            Code::InvalidArgument,
        ),
    ];
    for (number, (change, bytes, code)) in cases.into_iter().enumerate() {
        let handle = client.new_handle();
        let op_id = client.send(make_array_with(fake, handle, change));
        // The upload succeeds all the same: a client ends its session when one fails.
        client.upload(handle, bytes).await.unwrap();
        let error = client.answer(op_id).await.unwrap_err();
        assert_eq!(error.code(), code, "case {number}: {error}");
        assert_eq!(
            client.ready(&[handle]).await.unwrap_err(),
            error,
            "case {number}"
        );
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_that_do_not_fit() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let sharding = tiled(&*server.fake, &[0, 1]);
    let spec = || array_spec(&[2], &sharding);
    let word: &[u8] = &1.0_f32.to_le_bytes();
    // A shard is missing; a shard does not exist; a negative index; a shard of the wrong shape.
    for (indices, dims) in [
        (&[0][..], &[1][..]),
        (&[0, 9], &[1]),
        (&[0, -1], &[1]),
        (&[0, 1], &[2]),
    ] {
        let handle = client.new_handle();
        let op_id = client.send(make_from_shards(
            handle,
            spec(),
            &[(handle, dims, &[4], indices)],
        ));
        let bytes = word.repeat(usize::try_from(dims[0]).unwrap());
        client.upload(handle, &bytes).await.unwrap();
        let error = client.answer(op_id).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{indices:?} {dims:?}");
        assert_eq!(client.ready(&[handle]).await.unwrap_err(), error);
    }
    // Another number of indices than of buffers.
    let handle = client.new_handle();
    let Request::MakeArraysFromHostBufferShardsRequest(mut request) =
        make_from_shards(handle, spec(), &[(handle, &[1], &[4], &[0])])
    else {
        unreachable!("made above");
    };
    request.specs[0].addressable_shard_indices.clear();
    let request = Request::MakeArraysFromHostBufferShardsRequest(request);
    let error = client.call(request).await.unwrap_err();
    assert_eq!(
        error.message(),
        "MakeArraysFromHostBufferShardsSpec has 0 addressable_shard_indices but 1 host_buffers."
    );
    // The buffer that nobody took is dropped when it comes.
    client.upload(handle, word).await.unwrap();
    // One buffer named twice would be waited for in vain.
    let (array, buffer) = (client.new_handle(), client.new_handle());
    let twice: [ShardBuffer<'_>; 2] = [(buffer, &[1], &[4], &[0]), (buffer, &[1], &[4], &[1])];
    let error = client
        .call(make_from_shards(array, spec(), &twice))
        .await
        .unwrap_err();
    assert!(error.message().contains("twice"), "{error}");
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_that_cannot_be_compiled() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let change = |change: &dyn Fn(&mut CompileRequest)| {
        let Request::CompileRequest(mut request) = compile("fake:zeros() -> (f32[1])") else {
            unreachable!("made above");
        };
        change(&mut request);
        Request::CompileRequest(request)
    };
    for (request, code, text) in [
        (
            compile("ML\u{ef}R truncated"),
            Code::InvalidArgument,
            "Failed to deserialize StableHLO",
        ),
        (compile("fake:nothing"), Code::InvalidArgument, "nothing"),
        (
            change(&|r| r.program = None),
            Code::InvalidArgument,
            "program",
        ),
        (
            change(&|r| r.compile_options = None),
            Code::InvalidArgument,
            "compile options",
        ),
        (
            change(&|r| r.host_callbacks = vec![Default::default(); 2]),
            Code::Unimplemented,
            "2 host callbacks",
        ),
        (
            change(&|r| r.program.as_mut().unwrap().type_name = "a::B".to_owned()),
            Code::Unimplemented,
            "a::B",
        ),
        (
            change(&|r| r.compile_options.as_mut().unwrap().type_name = "a::B".to_owned()),
            Code::Unimplemented,
            "a::B",
        ),
        (
            change(&|r| r.compile_options.as_mut().unwrap().data = vec![0x0a, 9].into()),
            Code::InvalidArgument,
            "malformed",
        ),
        (
            change(&|r| {
                r.program.as_mut().unwrap().type_name = "xla::ifrt::CustomCallProgram".to_owned();
            }),
            Code::InvalidArgument,
            "PjRtCompiler requires an HloProgram",
        ),
    ] {
        let error = client.call(request).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(text), "{error}");
    }
    client.compile("fake:zeros() -> (f32[1])").await.unwrap();
    server.stop().await.unwrap();
}
