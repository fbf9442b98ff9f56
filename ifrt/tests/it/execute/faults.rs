//! Executions that are slow, cancelled, refused or broken.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use ifrt::fake::FakeClient;
use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt::{Client, Code, ExecuteOptions, HostValue, LoadedExecutableRef, Status};

use crate::support::*;

const MODULE: &str = "fake:add_one(f32[2] donated) -> (f32[2])";

fn executable(client: &FakeClient) -> LoadedExecutableRef {
    wait(&compile(client, MODULE, None)).unwrap()
}

fn with_status() -> ExecuteOptions {
    ExecuteOptions {
        fill_status: true,
        ..ExecuteOptions::default()
    }
}

#[test]
fn slow_executions_take_their_inputs_at_once() {
    let (client, gate) = (client(), Gate::new());
    let executable = executable(&client);
    client
        .faults()
        .add(Op::Execute, When::Always, Fault::Slow(gate.clone()));
    let mut array = array(&client, &[2], &single(&client, 0));
    // Each run takes the output of the one before, long before that is ready.
    for _ in 0..3 {
        let args = [Arc::clone(&array)];
        let mut result = executable.execute(&args, &with_status(), None).unwrap();
        assert!(array.is_deleted(), "donated");
        assert!(!result.status.unwrap().is_ready());
        array = result.outputs.remove(0);
    }
    assert_eq!(client.live_buffers(), 1);
    let read = array.copy_to_host(None);
    assert!(gate.step() && gate.step());
    assert!(!read.is_ready(), "the third run is still held back");
    gate.open();
    assert_eq!(
        floats_of(&wait(&read).unwrap().into_bytes().unwrap()),
        [3.0, 4.0]
    );
}

#[test]
fn results_may_come_out_of_order() {
    let client = client();
    let executable = wait(&compile(&client, "fake:zeros() -> (f32[1])", None)).unwrap();
    client
        .faults()
        .add(Op::Execute, When::Once, Fault::AfterNext);
    let run = || {
        executable
            .execute(&[], &with_status(), None)
            .unwrap()
            .status
            .unwrap()
    };
    let first = run();
    assert!(!first.is_ready());
    let second = run();
    assert!(second.is_ready() && first.is_ready());
}

#[test]
fn exe_11_cancellation() {
    let (client, gate) = (client(), Gate::new());
    let executable = executable(&client);
    let cancelled = Status::cancelled("not wanted any more");
    client
        .faults()
        .add(Op::Execute, When::Once, Fault::Slow(gate.clone()));
    let input = array(&client, &[2], &single(&client, 0));
    let result = executable.execute(&[input], &with_status(), None).unwrap();
    let handle = result.cancellation_handle.unwrap();
    for _ in 0..2 {
        client.cancel_execution(&handle, cancelled.clone());
    }
    assert_eq!(wait(&result.status.unwrap()), Err(cancelled.clone()));
    assert_eq!(read(&result.outputs[0]), Err(cancelled.clone()));
    gate.open();
    assert_eq!(
        read(&result.outputs[0]),
        Err(cancelled.clone()),
        "it stays cancelled"
    );

    let gate = Gate::new();
    client
        .faults()
        .add(Op::Execute, When::Once, Fault::Slow(gate.clone()));
    let input = array(&client, &[2], &single(&client, 0));
    let result = executable.execute(&[input], &with_status(), None).unwrap();
    gate.open();
    client.cancel_execution(&result.cancellation_handle.unwrap(), cancelled);
    assert_eq!(read(&result.outputs[0]).unwrap(), [1.0, 2.0], "too late");
    let input = array(&client, &[2], &single(&client, 0));
    let quick = executable.execute(&[input], &with_status(), None).unwrap();
    assert!(
        quick.cancellation_handle.is_none(),
        "nothing is left to cancel"
    );
}

#[test]
fn refused_and_panicking_executions_donate_nothing() {
    let client = client();
    let executable = executable(&client);
    let input = array(&client, &[2], &single(&client, 0));
    let run = || executable.execute(&[Arc::clone(&input)], &with_status(), None);
    let full = Status::resource_exhausted("the queue is full");
    client
        .faults()
        .add(Op::Execute, When::Once, Fault::Refuse(full.clone()));
    assert_eq!(run().unwrap_err(), full);
    client.faults().add(Op::Execute, When::Once, Fault::Panic);
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    assert!(!input.is_deleted());
    assert_eq!(client.live_buffers(), 1, "outputs of refused runs are gone");
    assert!(run().is_ok());
}

#[test]
fn memory_that_is_full_refuses_the_run() {
    let client = FakeClient::new(ifrt::fake::FakeOptions {
        memory_bytes: 100,
        ..ifrt::fake::FakeOptions::default()
    });
    let module = "fake:zeros(f32[2] donated) -> (f32[30])";
    let executable = wait(&compile(&client, module, None)).unwrap();
    let input = array(&client, &[2], &single(&client, 0));
    let args = [Arc::clone(&input)];
    let refused = executable.execute(&args, &with_status(), None).unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(!input.is_deleted());
}

#[test]
fn lost_and_failed_executions_poison_their_outputs() {
    let client = client();
    let executable = executable(&client);
    let boom = Status::aborted("boom");
    for (fault, code) in [
        (Fault::Fail(boom), Code::Aborted),
        (Fault::DropPromise, Code::Internal),
    ] {
        client.faults().add(Op::Execute, When::Once, fault);
        let input = array(&client, &[2], &single(&client, 0));
        let args = [Arc::clone(&input)];
        let result = executable.execute(&args, &with_status(), None).unwrap();
        assert!(input.is_deleted());
        assert_eq!(wait(&result.status.unwrap()).unwrap_err().code(), code);
        assert_eq!(read(&result.outputs[0]).unwrap_err().code(), code);
    }
}

#[test]
fn broken_kernels_break_only_their_outputs() {
    let client = client();
    client.register_kernel("panics", Arc::new(|_| panic!("as planned")));
    client.register_kernel(
        "short",
        Arc::new(|_| Ok(vec![HostValue::Bytes(Bytes::new())])),
    );
    client.register_kernel("silent", Arc::new(|_| Ok(vec![])));
    client.register_kernel(
        "wordy",
        Arc::new(|_| {
            Ok(vec![HostValue::Strings(
                [Bytes::new(), Bytes::new()].into(),
            )])
        }),
    );
    for name in ["panics", "short", "silent", "wordy"] {
        let module = format!("fake:{name}() -> (f32[2])");
        let executable = wait(&compile(&client, &module, None)).unwrap();
        let result = executable.execute(&[], &with_status(), None).unwrap();
        let status = wait(&result.outputs[0].ready()).unwrap_err();
        assert_eq!(status.code(), Code::Internal, "{name}");
        assert!(status.message().contains(name), "{status}");
    }
}

#[test]
fn every_fault_of_compile_comes_through_the_completion() {
    let (client, gate) = (client(), Gate::new());
    let boom = Status::internal("boom");
    for fault in [Fault::Fail(boom.clone()), Fault::Refuse(boom.clone())] {
        client.faults().add(Op::Compile, When::Once, fault);
        assert_eq!(wait(&compile(&client, MODULE, None)).unwrap_err(), boom);
    }
    client
        .faults()
        .add(Op::Compile, When::Once, Fault::Slow(gate.clone()));
    let slow = compile(&client, MODULE, None);
    let quick = compile(&client, MODULE, None);
    assert!(!slow.is_ready() && quick.is_ready());
    gate.open();
    assert!(wait(&slow).is_ok());
    client
        .faults()
        .add(Op::Compile, When::Once, Fault::DropPromise);
    assert_eq!(
        wait(&compile(&client, MODULE, None)).unwrap_err().code(),
        Code::Internal
    );
}
