//! Mistakes of a client: each gets an error, and the session goes on.

use ifrt::serdes::status_to_proto;
use ifrt::{Code, Status};
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request;
use ifrt_proxy::proto::xla::ifrt::proxy::*;

use crate::support::{
    TestServer, array_spec, check_future, check_value_ready, copy_to_device, destruct,
    destruct_executable, disassemble, execute, execute_with_status, fully_replicated_shard,
    make_array_with, tiled,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_handles() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let executable = client
        .compile("fake:add_one(f32[1]) -> (f32[1])")
        .await
        .unwrap();
    let executable_requests = |handle| {
        [
            Request::LoadedExecutableMetadataRequest(LoadedExecutableMetadataRequest {
                loaded_executable_handle: handle,
            }),
            Request::LoadedExecutableDeleteRequest(LoadedExecutableDeleteRequest {
                loaded_executable_handle: handle,
            }),
            Request::LoadedExecutableIsDeletedRequest(LoadedExecutableIsDeletedRequest {
                loaded_executable_handle: handle,
            }),
            Request::LoadedExecutableMpmdMetadataRequest(LoadedExecutableMpmdMetadataRequest {
                mpmd_loaded_executable_handle: handle,
            }),
            destruct_executable(handle),
        ]
    };
    for (request, message) in [
        (check_value_ready(&[77]), "Unknown array handle: 77"),
        (fully_replicated_shard(77, 1001), "Unknown array handle: 77"),
        (disassemble(77, &[1002]), "Unknown array handle: 77"),
        (
            copy_to_device(&[77], 1, &[1003]),
            "Unknown array handle: 77",
        ),
        (
            execute(executable, &[77], &[1004]),
            "Unknown array handle: 77",
        ),
        (
            execute(88, &[], &[1005]),
            "Unknown loaded executable handle: 88",
        ),
        (check_future(99), "Unknown future handle: 99"),
        (
            Request::IsArrayDeletedRequest(IsArrayDeletedRequest { array_handle: 77 }),
            "Unknown array handle: 77",
        ),
        (
            Request::LoadedExecutableFetchExecuteResultRequest(
                LoadedExecutableFetchExecuteResultRequest {
                    result_status_handle: 66,
                },
            ),
            "Unknown execute result handle: 66",
        ),
        (
            Request::LoadedHostCallbackPollRequest(LoadedHostCallbackPollRequest {
                loaded_host_callback_handle: 55,
                operand_host_buffer_handle: 1,
            }),
            "Unknown loaded host callback handle: 55",
        ),
        (
            Request::LoadedHostCallbackReturnRequest(LoadedHostCallbackReturnRequest {
                host_callback_execution_handle: 44,
                result: None,
            }),
            "Unknown host callback execution handle: 44",
        ),
    ]
    .into_iter()
    .chain(executable_requests(88).map(|r| (r, "Unknown loaded executable handle: 88")))
    {
        let error = client.call(request.clone()).await.unwrap_err();
        assert_eq!(error.code(), Code::NotFound, "{request:?}");
        assert_eq!(error.message(), message, "{request:?}");
    }
    // The errors are stored under the results.
    for handle in 1001..=1005 {
        let error = client.ready(&[handle]).await.unwrap_err();
        assert_eq!(error.code(), Code::NotFound, "{handle}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_travels_from_result_to_result() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let program = "fake:add(f32[1], f32[1]) -> (f32[1])";
    let executable = client.compile(program).await.unwrap();
    let good = client.put(&*server.fake, 0, &[1.0]).await;
    let handles: Vec<u64> = (0..5).map(|_| client.new_handle()).collect();
    let error = Status::resource_exhausted("the cause").with_payload("key", &b"value"[..]);
    let spec = array_spec(&[1], &tiled(&*server.fake, &[0]));
    let made = MakeErrorArraysRequest {
        error: Some(status_to_proto(&error)),
        array_specs: vec![spec],
        array_handles: vec![handles[0]],
    };
    let made = client.send(Request::MakeErrorArraysRequest(made));
    // Nothing waits in between.
    let chain = [
        client.send(copy_to_device(&[good, handles[0], 4711], 1, &[handles[1]])),
        client.send(disassemble(handles[1], &[handles[2]])),
        client.send(fully_replicated_shard(handles[2], handles[3])),
        client.send(execute(executable, &[handles[3], 4711], &[handles[4]])),
        client.send(check_value_ready(&[good, handles[4]])),
        client.send(Request::CopyToHostBufferRequest(CopyToHostBufferRequest {
            host_buffer_handle: 9999,
            array_handle: handles[4],
            byte_strides: None,
        })),
    ];
    client.answer(made).await.unwrap();
    for op_id in chain {
        assert_eq!(client.answer(op_id).await.unwrap_err(), error);
    }
    client.call(destruct(&handles)).await.unwrap();
    assert_eq!(client.fetch(good).await.unwrap(), [1.0]);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zero_and_duplicate_handles() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    for results in [
        &[0][..],
        &[array],
        &[1 << 48],
        &[u64::MAX],
        &[500, 500],
        &[501, 0],
    ] {
        let request = copy_to_device(&vec![array; results.len()], 1, results);
        let error = client.call(request).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{results:?}");
    }
    // Those that could be used hold the error, and the array is what it was.
    for handle in [500, 501] {
        let error = client.ready(&[handle]).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
    assert_eq!(client.fetch(array).await.unwrap(), [1.0]);
    // The wrong number of handles.
    let error = client
        .call(copy_to_device(&[array], 1, &[502, 503]))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(client.ready(&[503]).await.unwrap_err(), error);
    // A host buffer handle that cannot be.
    for handle in [0, 1 << 48] {
        let request = make_array_with(&*server.fake, 600, |request| {
            request.host_buffer_handle = handle;
            request.array_handle = None;
        });
        let error = client.call(request).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(
            client.upload(handle, b"x").await.unwrap_err().code(),
            tonic::Code::InvalidArgument
        );
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_cannot_be() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let executable = client
        .compile("fake:add_one(f32[2]) -> (f32[2])")
        .await
        .unwrap();
    let wrong = client.put(&*server.fake, 0, &[1.0]).await;
    let right = client.put(&*server.fake, 0, &[1.0, 2.0]).await;
    // Too few arguments; the wrong shape; too many handles for the outputs; unknown devices.
    let mut devices = execute(executable, &[right], &[2004]);
    if let Request::LoadedExecutableExecuteRequest(request) = &mut devices {
        request.device_ids = vec![4242];
    }
    for (request, results) in [
        (execute(executable, &[], &[2000]), vec![2000]),
        (execute(executable, &[wrong], &[2001]), vec![2001]),
        (
            execute(executable, &[right], &[2002, 2003]),
            vec![2002, 2003],
        ),
        (devices, vec![2004]),
    ] {
        let error = client.call(request).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        for result in results {
            assert_eq!(client.ready(&[result]).await.unwrap_err(), error);
        }
    }
    // A handle for a status that is not asked for.
    let mut request = execute_with_status(executable, &[right], &[2005], 2006);
    if let Request::LoadedExecutableExecuteRequest(request) = &mut request {
        request.execute_options.as_mut().unwrap().fill_status = false;
    }
    let error = client.call(request).await.unwrap_err();
    assert_eq!(error.code(), Code::Internal);
    let fetch = Request::LoadedExecutableFetchExecuteResultRequest(
        LoadedExecutableFetchExecuteResultRequest {
            result_status_handle: 2006,
        },
    );
    assert_eq!(client.call(fetch).await.unwrap_err(), error);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_no_kind() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let nothing = IfrtRequest {
        request_metadata: Some(RequestMetadata {
            op_id: 1_000_000,
            ..RequestMetadata::default()
        }),
        request: None,
    };
    client.requests.send(nothing).unwrap();
    let error = client.answer(1_000_000).await.unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    // Without metadata the op id is 0.
    client.requests.send(IfrtRequest::default()).unwrap();
    assert!(client.answer(0).await.is_err());
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    assert_eq!(client.fetch(array).await.unwrap(), [1.0]);
    server.stop().await.unwrap();
}
