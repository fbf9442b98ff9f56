//! User contexts: each is reported exactly once, in numbered responses, when nothing on the server
//! refers to its request any more.

use std::collections::BTreeMap;

use ifrt::Status;
use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt::user_context::USER_CONTEXT_PAYLOAD;
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_response::Response;

use crate::support::{
    TestClient, TestServer, check_future, check_value_ready, compile, delete, destruct,
    destruct_executable, execute,
};

/// What the client has been told so far: how often each id was reported.
fn reported(client: &TestClient) -> BTreeMap<u64, usize> {
    let mut reported = BTreeMap::new();
    for (metadata, _) in &client.log {
        for id in &metadata.destroyed_user_context_ids {
            *reported.entry(*id).or_default() += 1;
        }
    }
    reported
}

/// Sends numbered requests until the server has reported so many contexts.
async fn drain(client: &mut TestClient, wanted: usize) -> BTreeMap<u64, usize> {
    client.user_context_id = 0;
    loop {
        client.call(check_value_ready(&[])).await.unwrap();
        let reported = reported(client);
        if reported.values().sum::<usize>() >= wanted {
            return reported;
        }
        // The deletion thread lets go of its arrays at its own pace.
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_is_reported_once() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    client.user_context_id = 11;
    let executable = client
        .compile("fake:add_one(f32[1]) -> (f32[1])")
        .await
        .unwrap();
    client.user_context_id = 12;
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    client.user_context_id = 13;
    let first = client.execute_first(executable, &[array]).await.unwrap();
    // The same context again, for another request.
    let result = client.new_handle();
    client
        .call(execute(executable, &[array], &[result]))
        .await
        .unwrap();
    client.user_context_id = 14;
    client.ready(&[array, result]).await.unwrap();
    // A request that fails and leaves no trace.
    client.user_context_id = 15;
    client.call(compile("fake:nothing")).await.unwrap_err();
    // A request whose error is stored.
    client.user_context_id = 16;
    let failed = client.new_handle();
    client
        .call(execute(executable, &[4711], &[failed]))
        .await
        .unwrap_err();

    let so_far = drain(&mut client, 2).await;
    assert_eq!(so_far, BTreeMap::from([(14, 1), (15, 1)]));

    client.call(delete(&[array])).await.unwrap();
    let output = first.outputs[0].array_handle;
    client
        .call(destruct(&[array, output, failed]))
        .await
        .unwrap();
    let so_far = drain(&mut client, 5).await;
    assert_eq!(
        so_far,
        BTreeMap::from([(12, 1), (13, 1), (14, 1), (15, 1), (16, 1)])
    );
    client.call(destruct(&[result])).await.unwrap();
    client.call(destruct_executable(executable)).await.unwrap();
    let so_far = drain(&mut client, 7).await;
    assert_eq!(
        so_far,
        BTreeMap::from([(11, 1), (12, 1), (13, 2), (14, 1), (15, 1), (16, 1)])
    );
    server.stop().await.unwrap();
}

/// A client waits at the first number that it never gets to acknowledge, so only the responses
/// that it acknowledges have one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_contiguous() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let executable = client
        .compile("fake:add_one(f32[1]) -> (f32[1])")
        .await
        .unwrap();
    for round in 1..=50_u64 {
        client.user_context_id = round;
        let array = client.put(&*server.fake, 0, &[1.0]).await;
        let result = client.new_handle();
        let run = client.send(execute(executable, &[array], &[result]));
        let bad = client.send(execute(executable, &[4711], &[]));
        let ready = client.send(check_value_ready(&[result]));
        client.user_context_id = 0;
        let deleted = client.send(delete(&[array, result]));
        let gone = client.send(destruct(&[array, result]));
        client.answer(run).await.unwrap();
        client.answer(bad).await.unwrap_err();
        client.answer(ready).await.unwrap();
        let Response::DeleteArrayResponse(response) = client.answer(deleted).await.unwrap() else {
            panic!("no deletion");
        };
        client.answer(gone).await.unwrap();
        client
            .call(check_future(response.deletion_future_handle))
            .await
            .unwrap();
    }
    let log = client.log.clone();
    // The response to init is kept by the client for ever.
    assert_eq!(log[0].0.seq_num, -1);
    let numbered: Vec<i64> = log[1..]
        .iter()
        .filter(|(metadata, has_body)| {
            // What is not numbered looks like the very first number.
            *has_body && (metadata.seq_num != 0 || metadata.op_id == log[1].0.op_id)
        })
        .map(|(metadata, _)| metadata.seq_num)
        .collect();
    assert_eq!(
        numbered,
        (0..i64::try_from(numbered.len()).unwrap()).collect::<Vec<_>>()
    );
    // Compile, then for each round: make, run, ready.
    assert_eq!(numbered.len(), 1 + 50 * 3);
    for (metadata, has_body) in &log {
        if metadata.seq_num <= 0 && metadata.op_id != log[1].0.op_id || !has_body {
            assert!(
                metadata.destroyed_user_context_ids.is_empty(),
                "{metadata:?}"
            );
        }
    }
    server.stop().await.unwrap();
}

fn named(error: &Status) -> Option<&[u8]> {
    error
        .payload(USER_CONTEXT_PAYLOAD)
        .map(|payload| &payload[..])
}

/// The client shows the line of the user's program that caused an error, to those who wait for a
/// value. In other answers it would show the bare number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_names_the_request_that_caused_it() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let executable = client
        .compile("fake:add_one(f32[1]) -> (f32[1])")
        .await
        .unwrap();
    let failing = client.compile("fake:fail() -> (f32[1])").await.unwrap();

    client.user_context_id = 21;
    let error = client.call(compile("fake:nothing")).await.unwrap_err();
    assert_eq!(named(&error), None);

    // At once, and through the results.
    client.user_context_id = 22;
    let first = client.new_handle();
    let run = execute(executable, &[4711], &[first]);
    let error = client.call(run).await.unwrap_err();
    assert_eq!(named(&error), None);
    client.user_context_id = 23;
    let second = client.new_handle();
    let run = execute(executable, &[first], &[second]);
    let error = client.call(run).await.unwrap_err();
    assert_eq!(named(&error), None);
    client.user_context_id = 0;
    for array in [first, second] {
        let error = client.ready(&[array]).await.unwrap_err();
        assert_eq!(named(&error), Some(&b"22"[..]));
        let error = client.fetch(array).await.unwrap_err();
        assert_eq!(named(&error), Some(&b"22"[..]));
    }

    // The cause lives as long as an error that names it.
    client.user_context_id = 0;
    client.call(destruct(&[first])).await.unwrap();
    let so_far = drain(&mut client, 1).await;
    assert_eq!(so_far, BTreeMap::from([(21, 1)]));
    client.call(destruct(&[second])).await.unwrap();
    let so_far = drain(&mut client, 3).await;
    assert_eq!(so_far, BTreeMap::from([(21, 1), (22, 1), (23, 1)]));

    // Later, when the run has failed.
    client.user_context_id = 24;
    let third = client.new_handle();
    client.call(execute(failing, &[], &[third])).await.unwrap();
    client.user_context_id = 25;
    let error = client.ready(&[third]).await.unwrap_err();
    assert_eq!(named(&error), Some(&b"24"[..]));
    let error = client.fetch(third).await.unwrap_err();
    assert_eq!(named(&error), Some(&b"24"[..]));
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_is_under_way_keeps_its_context() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let gate = Gate::new();
    let slow = Fault::Slow(gate.clone());
    server.fake.faults().add(Op::Compile, When::Once, slow);
    client.user_context_id = 31;
    let op_id = client.send(compile("fake:add_one(f32[1]) -> (f32[1])"));
    client.user_context_id = 32;
    client.ready(&[]).await.unwrap();
    let so_far = drain(&mut client, 1).await;
    assert_eq!(so_far, BTreeMap::from([(32, 1)]));
    gate.open();
    let Response::CompileResponse(response) = client.answer(op_id).await.unwrap() else {
        panic!("no executable");
    };
    client
        .call(destruct_executable(response.loaded_executable_handle))
        .await
        .unwrap();
    let so_far = drain(&mut client, 2).await;
    assert_eq!(so_far, BTreeMap::from([(31, 1), (32, 1)]));
    server.stop().await.unwrap();
}
