//! Deletion, whatever the runtime does.

use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt::{Code, Status};
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_response::Response;

use crate::support::{
    TestServer, check_future, check_value_ready, copy_to_device, delete, destruct, disassemble,
    execute, make_array, until,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_array() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    let answer = client.call(delete(&[array])).await.unwrap();
    let Response::DeleteArrayResponse(response) = answer else {
        panic!("{answer:?}");
    };
    // Its future is ready, also when it is asked for again or much later.
    for _ in 0..2 {
        client
            .call(check_future(response.deletion_future_handle))
            .await
            .unwrap();
    }
    assert!(client.is_deleted(array).await.unwrap());
    // A released client compares this text.
    let error = client.ready(&[array]).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(
        error.message(),
        "GetReadyFuture() called on deleted or donated buffer"
    );
    let result = client.new_handle();
    for request in [copy_to_device(&[array], 1, &[result])] {
        let error = client.call(request).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(error.message(), "Array has been deleted.");
    }
    assert_eq!(
        client.fetch(array).await.unwrap_err().message(),
        "Array has been deleted."
    );
    until("the memory is free", || server.fake.live_bytes() == 0).await;
    // Again, with handles that mean nothing: still no error.
    client
        .call(delete(&[array, 0, 4711, u64::MAX]))
        .await
        .unwrap();
    client
        .call(destruct(&[array, 0, 4711, u64::MAX]))
        .await
        .unwrap();
    client.call(destruct(&[array])).await.unwrap();
    client.call(delete(&[])).await.unwrap();
    let error = client.is_deleted(array).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_handle_frees_the_memory() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    let shard = client.new_handle();
    client.call(disassemble(array, &[shard])).await.unwrap();
    client.call(destruct(&[array])).await.unwrap();
    assert_eq!(client.fetch(shard).await.unwrap(), [1.0]);
    client.call(destruct(&[shard])).await.unwrap();
    until("the memory is free", || server.fake.live_bytes() == 0).await;
    // Nothing was deleted: the references went.
    assert_eq!(server.fake.delete_counts().total, 0);
    server.stop().await.unwrap();
}

/// A client lists the shards that it has touched together with their array.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aliases_in_one_batch() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let array = client.new_handle();
    let op_id = client.send(make_array(&*server.fake, array, &[0, 1, 2, 3], 1));
    client.upload(array, &1.0_f32.to_le_bytes()).await.unwrap();
    client.answer(op_id).await.unwrap();
    let shards: Vec<u64> = (0..4).map(|_| client.new_handle()).collect();
    client.call(disassemble(array, &shards)).await.unwrap();
    let all = [&shards[..], &[array]].concat();
    client.call(delete(&all)).await.unwrap();
    client.call(destruct(&all)).await.unwrap();
    until("the memory is free", || server.fake.live_bytes() == 0).await;
    server.stop().await.unwrap();
}

/// Nothing that a runtime can do with its deletions delays the next request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_deletion_delays_the_next_request() {
    let gate = Gate::new();
    for fault in [
        Fault::Slow(gate.clone()),
        Fault::Fail(Status::internal("cannot delete")),
        Fault::Refuse(Status::internal("will not delete")),
        Fault::Never,
        Fault::DropPromise,
        Fault::Panic,
        Fault::Block(gate.clone()),
    ] {
        let server = TestServer::start().await;
        let mut client = server.client().await;
        let executable = client
            .compile("fake:add_one(f32[1]) -> (f32[1])")
            .await
            .unwrap();
        server
            .fake
            .faults()
            .add(Op::Delete, When::Always, fault.clone());
        let kept = client.put(&*server.fake, 0, &[1.0]).await;
        let handles: Vec<u64> = {
            let mut handles = Vec::new();
            for _ in 0..20 {
                handles.push(client.put(&*server.fake, 0, &[2.0]).await);
            }
            handles
        };
        // The gate stays closed, so whoever waited for a deletion would wait for ever.
        let first = client.send(delete(&handles[..10]));
        let second = client.send(delete(&handles[10..]));
        let gone = client.send(destruct(&handles));
        let run = client.send(execute(executable, &[kept], &[]));
        let ready = client.send(check_value_ready(&[kept]));
        for op_id in [first, second, gone, run, ready] {
            client
                .answer(op_id)
                .await
                .unwrap_or_else(|error| panic!("{fault}: {error}"));
        }
        assert!(client.is_deleted(handles[0]).await.is_err());
        assert_eq!(client.fetch(kept).await.unwrap(), [1.0]);
        let more = client.put(&*server.fake, 0, &[3.0]).await;
        client.call(delete(&[more])).await.unwrap();
        assert!(client.is_deleted(more).await.unwrap(), "{fault}");
        gate.open();
        server.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_although_its_deletions_are_stuck() {
    let server = TestServer::start().await;
    let fake = server.fake.clone();
    let gate = Gate::new();
    let mut client = server.client().await;
    let mut handles = Vec::new();
    for _ in 0..10 {
        handles.push(client.put(&*fake, 0, &[1.0]).await);
    }
    fake.faults()
        .add(Op::Delete, When::Always, Fault::Block(gate.clone()));
    client.call(delete(&handles[..5])).await.unwrap();
    gate.wait_until_held(1, std::time::Duration::from_secs(60))
        .unwrap();
    drop(client);
    // All but the one in the hands of the runtime.
    until("the session is freed", || fake.live_buffers() <= 1).await;
    gate.open();
    until("the last one is freed", || fake.live_buffers() == 0).await;
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn donated_arrays() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let program = "fake:add_one(f32[1] donated) -> (f32[1])";
    let executable = client.compile(program).await.unwrap();
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    let run = client.execute_first(executable, &[array]).await.unwrap();
    let output = run.outputs[0].array_handle;
    assert!(client.is_deleted(array).await.unwrap());
    assert_eq!(client.fetch(output).await.unwrap(), [2.0]);
    let error = client.ready(&[array]).await.unwrap_err();
    assert_eq!(
        error.message(),
        "GetReadyFuture() called on deleted or donated buffer"
    );
    // Using it again fails, and the result of that holds the error.
    let result = client.new_handle();
    let error = client
        .call(execute(executable, &[array], &[result]))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(client.ready(&[result]).await.unwrap_err(), error);
    client.call(delete(&[array])).await.unwrap();
    client.call(destruct(&[array])).await.unwrap();
    assert_eq!(client.fetch(output).await.unwrap(), [2.0]);
    server.stop().await.unwrap();
}

/// Operations that were sent before a deletion see the data, those after it do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_around_a_deletion() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let executable = client
        .compile("fake:add_one(f32[1]) -> (f32[1])")
        .await
        .unwrap();
    for _ in 0..100 {
        let array = client.put(&*server.fake, 0, &[1.0]).await;
        let (before, after) = (client.new_handle(), client.new_handle());
        let run_before = client.send(execute(executable, &[array], &[before]));
        let deleted = client.send(delete(&[array]));
        let run_after = client.send(execute(executable, &[array], &[after]));
        client.answer(run_before).await.unwrap();
        client.answer(deleted).await.unwrap();
        let error = client.answer(run_after).await.unwrap_err();
        assert_eq!(error.message(), "Array has been deleted.");
        assert_eq!(client.fetch(before).await.unwrap(), [2.0]);
        client
            .call(destruct(&[array, before, after]))
            .await
            .unwrap();
    }
    until("the memory is free", || server.fake.live_bytes() == 0).await;
    server.stop().await.unwrap();
}
