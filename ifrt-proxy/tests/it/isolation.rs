//! Panics of the runtime, and one client's troubles beside another client.

use ifrt::Code;
use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request;
use ifrt_proxy::proto::xla::ifrt::proxy::*;

use crate::support::{
    TestServer, check_value_ready, compile, copy_to_device, disassemble, execute, make_array,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runtime_that_panics() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let executable = client
        .compile("fake:add_one(f32[1]) -> (f32[1])")
        .await
        .unwrap();
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    let made = client.new_handle();
    client.upload(made, &1.0_f32.to_le_bytes()).await.unwrap();
    for (op, request, result) in [
        (
            Op::MakeArray,
            make_array(&*server.fake, made, &[0], 1),
            Some(made),
        ),
        (Op::Disassemble, disassemble(array, &[701]), Some(701)),
        (Op::Copy, copy_to_device(&[array], 1, &[702]), Some(702)),
        (
            Op::Execute,
            execute(executable, &[array], &[703]),
            Some(703),
        ),
        (Op::Compile, compile("fake:zeros() -> (f32[1])"), None),
        (Op::Ready, check_value_ready(&[array]), None),
        (
            Op::CopyToHost,
            Request::CopyToHostBufferRequest(CopyToHostBufferRequest {
                host_buffer_handle: 704,
                array_handle: array,
                byte_strides: None,
            }),
            None,
        ),
    ] {
        server.fake.faults().add(op, When::Once, Fault::Panic);
        let error = client.call(request).await.unwrap_err();
        assert_eq!(error.code(), Code::Internal, "{op}");
        if let Some(result) = result {
            // The error stands in the place of the result.
            assert_eq!(client.ready(&[result]).await.unwrap_err(), error, "{op}");
        }
        assert_eq!(client.fetch(array).await.unwrap(), [1.0], "{op}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_cannot_be_guessed() {
    let server = TestServer::start().await;
    let mut ids = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..32 {
        let client = server.client().await;
        ids.push(client.init.session_id);
        clients.push(client);
    }
    let (mut sorted, mut raw) = (ids.clone(), server.raw().await);
    sorted.sort_unstable();
    assert!(
        sorted.windows(2).all(|pair| pair[1] - pair[0] > 1 << 16),
        "{sorted:?}"
    );
    // Each of 64 bits is set in some id and not in another.
    assert_eq!(ids.iter().fold(0, |all, id| all | id), u64::MAX);
    assert_eq!(ids.iter().fold(u64::MAX, |all, id| all & id), 0);
    for guess in (0..64).chain(ids.iter().map(|id| id.wrapping_add(1))) {
        let error = raw.lookup(guess, 1).await.unwrap_err();
        assert_eq!(
            error.message(),
            format!("Session id {guess} does not exist")
        );
    }
    drop(clients);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_clients_troubles_are_its_own() {
    let server = TestServer::start().await;
    let mut bystander = server.client().await;
    let array = bystander.put(&*server.fake, 0, &[1.0]).await;
    let executable = bystander
        .compile("fake:add_one(f32[1]) -> (f32[1])")
        .await
        .unwrap();

    // Handles mean nothing in another session.
    let mut other = server.client().await;
    assert_ne!(other.init.session_id, bystander.init.session_id);
    assert_eq!(
        other.ready(&[array]).await.unwrap_err().code(),
        Code::NotFound
    );
    let error = other.execute_first(executable, &[]).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    other.call(crate::support::delete(&[array])).await.unwrap();
    other
        .call(crate::support::destruct(&[array]))
        .await
        .unwrap();

    // A client whose worker hangs in the runtime, and one that waits for bytes that never come.
    let gate = Gate::new();
    let block = Fault::Block(gate.clone());
    server.fake.faults().add(Op::Execute, When::Once, block);
    let own = other.compile("fake:zeros() -> (f32[1])").await.unwrap();
    other.send(execute(own, &[], &[]));
    gate.wait_until_held(1, std::time::Duration::from_secs(60))
        .unwrap();
    let mut waiting = server.client().await;
    let handle = waiting.new_handle();
    waiting.send(make_array(&*server.fake, handle, &[0], 1));

    assert_eq!(bystander.fetch(array).await.unwrap(), [1.0]);
    let run = bystander.execute_first(executable, &[array]).await.unwrap();
    assert_eq!(
        bystander.fetch(run.outputs[0].array_handle).await.unwrap(),
        [2.0]
    );

    // They go, and the bystander stays.
    drop(waiting);
    drop(other);
    gate.open();
    assert_eq!(bystander.fetch(array).await.unwrap(), [1.0]);
    server.stop().await.unwrap();
}
