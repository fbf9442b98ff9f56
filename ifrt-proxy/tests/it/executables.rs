//! Executables: what is told of them, and running them.

use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt::{Code, DType, Status};
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request;
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_response::Response;
use ifrt_proxy::proto::xla::ifrt::proxy::*;

use crate::support::{
    TestClient, TestServer, check_future, check_value_ready, compile, destruct_executable, execute,
    execute_with_status, until,
};

const ADD_ONE: &str = "fake:add_one(f32[2]) -> (f32[2])";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_and_later_runs() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let executable = client.compile(ADD_ONE).await.unwrap();
    assert!(executable >= 1 << 48);
    let array = client.put(&*server.fake, 0, &[1.0, 2.0]).await;
    let first = client.execute_first(executable, &[array]).await.unwrap();
    assert_eq!(first.status_handle, 0);
    let [output] = &first.outputs[..] else {
        panic!("{first:?}");
    };
    assert_eq!(
        output.dtype.as_ref().unwrap().kind,
        DType::F32.to_proto_kind()
    );
    assert_eq!(output.shape.as_ref().unwrap().dims, [2]);
    assert!(output.sharding.is_some());
    assert!(output.array_handle >= 1 << 48);
    assert_eq!(client.fetch(output.array_handle).await.unwrap(), [2.0, 3.0]);
    // Later runs go on with results that nobody has waited for.
    let mut last = array;
    for _ in 0..50 {
        let next = client.new_handle();
        client.send(execute(executable, &[last], &[next]));
        last = next;
    }
    assert_eq!(client.fetch(last).await.unwrap(), [51.0, 52.0]);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_is_told() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let program = "fake:add(f32[4,2] tiled[2,1] donated, f32[4,2]) -> (f32[4,2] tiled[2,1])";
    let answer = client.call(compile(program)).await.unwrap();
    let Response::CompileResponse(compiled) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(compiled.name, "add");
    assert_eq!(compiled.num_devices, 2);
    assert_eq!(compiled.device_ids, [0, 1]);
    assert_eq!(compiled.addressable_device_ids, [0, 1]);
    assert!(compiled.loaded_host_callback_handles.is_empty());
    assert!(compiled.mpmd_addressable_devices_oneof.is_none());
    // The client always asks whether the executable is ready.
    let ready = check_future(compiled.ready_future_handle.unwrap());
    client.call(ready).await.unwrap();
    let handle = compiled.loaded_executable_handle;
    let request = LoadedExecutableMetadataRequest {
        loaded_executable_handle: handle,
    };
    let asked = client.send(Request::LoadedExecutableMetadataRequest(request));
    // The metadata is told although the executable goes right after the question.
    let gone = client.send(destruct_executable(handle));
    let answer = client.answer(asked).await.unwrap();
    let Response::LoadedExecutableMetadataResponse(metadata) = answer else {
        panic!("{answer:?}");
    };
    use loaded_executable_metadata_response as parts;
    assert_eq!(metadata.parameter_shardings.unwrap().shardings.len(), 2);
    assert_eq!(metadata.output_shardings.unwrap().shardings.len(), 1);
    let kinds = metadata.output_memory_kinds.unwrap();
    assert!(kinds.status.is_none());
    assert_eq!(kinds.memory_kind_lists[0].memory_kinds, ["device"]);
    assert_eq!(
        metadata.donated_input_indices_oneof,
        Some(parts::DonatedInputIndicesOneof::DonatedInputIndices(
            parts::DonatedInputIndices {
                donated_input_indices: vec![0]
            }
        ))
    );
    // Each part has a value or an error of its own.
    assert!(metadata.parameter_layouts.is_some());
    assert!(metadata.output_layouts.is_some());
    assert!(metadata.compiled_memory_stats_oneof.is_some());
    client.answer(gone).await.unwrap();
    let error = client.call(destruct_executable(handle)).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    server.stop().await.unwrap();
}

/// A released client misreads an error in place of these answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_analysis_stand_in_the_body() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let executable = client.compile(ADD_ONE).await.unwrap();
    for handle in [executable, 4711] {
        let requests = [
            Request::LoadedExecutableCostAnalysisRequest(LoadedExecutableCostAnalysisRequest {
                loaded_executable_handle: handle,
            }),
            Request::LoadedExecutableHumanReadableProgramTextRequest(
                LoadedExecutableHumanReadableProgramTextRequest {
                    loaded_executable_handle: handle,
                },
            ),
            Request::LoadedExecutableMpmdCostAnalysisRequest(
                LoadedExecutableMpmdCostAnalysisRequest {
                    loaded_executable_handle: handle,
                },
            ),
        ];
        for request in requests {
            match client.call(request).await.unwrap() {
                Response::LoadedExecutableCostAnalysisResponse(r) => assert!(r.result.is_some()),
                Response::LoadedExecutableHumanReadableProgramTextResponse(r) => {
                    assert!(r.result.is_some());
                }
                Response::LoadedExecutableMpmdCostAnalysisResponse(r) => {
                    assert!(r.result.is_some());
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let request = LoadedExecutableMpmdMetadataRequest {
        mpmd_loaded_executable_handle: executable,
    };
    let answer = client
        .call(Request::LoadedExecutableMpmdMetadataRequest(request))
        .await
        .unwrap();
    let Response::LoadedExecutableMpmdMetadataResponse(response) = answer else {
        panic!("{answer:?}");
    };
    assert!(response.mpmd_compiled_memory_stats_oneof.is_some());
    // Deletion of executables is a thing of the past.
    let request = LoadedExecutableIsDeletedRequest {
        loaded_executable_handle: executable,
    };
    let answer = client
        .call(Request::LoadedExecutableIsDeletedRequest(request))
        .await;
    assert!(matches!(
        answer,
        Ok(Response::LoadedExecutableIsDeletedResponse(r)) if !r.is_deleted
    ));
    let request = LoadedExecutableDeleteRequest {
        loaded_executable_handle: executable,
    };
    let answer = client
        .call(Request::LoadedExecutableDeleteRequest(request))
        .await;
    let Ok(Response::LoadedExecutableDeleteResponse(response)) = answer else {
        panic!("{answer:?}");
    };
    let error = client
        .call(check_future(response.future_handle))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    // A future is read once.
    let error = client
        .call(check_future(response.future_handle))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    server.stop().await.unwrap();
}

async fn status_of(client: &mut TestClient, protocol: i32, handle: u64) -> Result<(), Status> {
    let request = if protocol >= 21 {
        Request::LoadedExecutableFetchExecuteResultRequest(
            LoadedExecutableFetchExecuteResultRequest {
                result_status_handle: handle,
            },
        )
    } else {
        check_future(handle)
    };
    client.call(request).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_a_run() {
    let server = TestServer::start().await;
    for protocol in [16, 20, 21, 25] {
        let mut client = server.client_at(protocol).await;
        let executable = client.compile(ADD_ONE).await.unwrap();
        let array = client.put(&*server.fake, 0, &[1.0, 2.0]).await;
        let answer = client
            .call(execute_with_status(executable, &[array], &[], 0))
            .await;
        let Ok(Response::LoadedExecutableExecuteResponse(first)) = answer else {
            panic!("{answer:?}");
        };
        assert!(first.status_handle >= 1 << 48);
        status_of(&mut client, protocol, first.status_handle)
            .await
            .unwrap();
        let (result, status) = (client.new_handle(), client.new_handle());
        let request = execute_with_status(executable, &[array], &[result], status);
        client.call(request).await.unwrap();
        status_of(&mut client, protocol, status).await.unwrap();
        let error = status_of(&mut client, protocol, status).await.unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        // A run that fails at once, and one that fails later.
        let (result, status) = (client.new_handle(), client.new_handle());
        let request = execute_with_status(executable, &[4711], &[result], status);
        let error = client.call(request).await.unwrap_err();
        assert_eq!(
            status_of(&mut client, protocol, status).await.unwrap_err(),
            error
        );
        let failing = client.compile("fake:fail() -> (f32[1])").await.unwrap();
        let (result, status) = (client.new_handle(), client.new_handle());
        let request = execute_with_status(failing, &[], &[result], status);
        client.call(request).await.unwrap();
        assert!(status_of(&mut client, protocol, status).await.is_err());
        assert!(client.ready(&[result]).await.is_err());
    }
    server.stop().await.unwrap();
}

/// While one program is being compiled, or a value is being waited for, others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_waits_for_what_is_slow() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let executable = client.compile(ADD_ONE).await.unwrap();
    let array = client.put(&*server.fake, 0, &[1.0, 2.0]).await;
    let gate = Gate::new();
    let faults = server.fake.faults();
    faults.add(Op::Compile, When::Once, Fault::Slow(gate.clone()));
    faults.add(Op::Ready, When::Once, Fault::Slow(gate.clone()));
    faults.add(Op::CopyToHost, When::Once, Fault::Slow(gate.clone()));
    faults.add(Op::Execute, When::Once, Fault::Slow(gate.clone()));
    let slow_output = client.new_handle();
    let slow = [
        client.send(compile(ADD_ONE)),
        client.send(check_value_ready(&[array])),
        client.send(Request::CopyToHostBufferRequest(CopyToHostBufferRequest {
            host_buffer_handle: 5000,
            array_handle: array,
            byte_strides: None,
        })),
    ];
    client.send(execute(executable, &[array], &[slow_output]));
    let slow_ready = client.send(check_value_ready(&[slow_output]));
    let run = client.execute_first(executable, &[array]).await.unwrap();
    let output = run.outputs[0].array_handle;
    assert_eq!(client.fetch(output).await.unwrap(), [2.0, 3.0]);
    for op_id in slow {
        assert!(!client.has_arrived(op_id));
    }
    assert!(!client.has_arrived(slow_ready));
    gate.open();
    for op_id in slow {
        client.answer(op_id).await.unwrap();
    }
    client.answer(slow_ready).await.unwrap();
    assert_eq!(client.fetch(slow_output).await.unwrap(), [2.0, 3.0]);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defaults_of_the_runtime() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let layout = |dims: Vec<i64>, device_id, memory_kind: &str| {
        Request::GetDefaultLayoutRequest(GetDefaultLayoutRequest {
            dtype: Some(ifrt::serdes::dtype_to_proto(DType::F32)),
            dims,
            device_id,
            memory_kind: memory_kind.to_owned(),
        })
    };
    for (dims, kind, text) in [(vec![2, 3], "device", "{1,0}"), (vec![], "", "{}")] {
        let answer = client.call(layout(dims, 0, kind)).await.unwrap();
        let Response::GetDefaultLayoutResponse(response) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(response.serialized_pjrt_layout, text);
    }
    for request in [
        layout(vec![2], 99, ""),
        layout(vec![-2], 0, ""),
        layout(vec![2], 0, "attic"),
    ] {
        let error = client.call(request).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
    let assignment = |num_replicas, num_partitions| {
        Request::GetDefaultDeviceAssignmentRequest(GetDefaultDeviceAssignmentRequest {
            num_replicas,
            num_partitions,
        })
    };
    let answer = client.call(assignment(2, 2)).await.unwrap();
    let Response::GetDefaultDeviceAssignmentResponse(response) = answer else {
        panic!("{answer:?}");
    };
    let assigned = response.device_assignment.unwrap();
    assert_eq!((assigned.replica_count, assigned.computation_count), (2, 2));
    let runtime = ifrt::Client::default_device_assignment(&*server.fake, 2, 2).unwrap();
    for (partition, devices) in assigned.computation_devices.iter().enumerate() {
        let expected: Vec<i64> = runtime.iter().map(|r| i64::from(r[partition].0)).collect();
        assert_eq!(devices.replica_device_ids, expected);
    }
    for (replicas, partitions) in [(0, 1), (1, 0), (5, 1), (u64::MAX, u64::MAX), (1 << 40, 1)] {
        let error = client
            .call(assignment(replicas, partitions))
            .await
            .unwrap_err();
        assert_eq!(
            error.code(),
            Code::InvalidArgument,
            "{replicas} {partitions}"
        );
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_keep_their_executable() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let executable = client.compile(ADD_ONE).await.unwrap();
    let array = client.put(&*server.fake, 0, &[1.0, 2.0]).await;
    let gate = Gate::new();
    let slow = Fault::Slow(gate.clone());
    server.fake.faults().add(Op::Execute, When::Once, slow);
    let output = client.new_handle();
    client
        .call(execute(executable, &[array], &[output]))
        .await
        .unwrap();
    client.call(destruct_executable(executable)).await.unwrap();
    gate.open();
    assert_eq!(client.fetch(output).await.unwrap(), [2.0, 3.0]);
    let fake = server.fake.clone();
    server.stop().await.unwrap();
    until("all is freed", || fake.live_bytes() == 0).await;
}
