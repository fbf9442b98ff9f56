//! Deletion: what the contract promises, whatever the runtime below does.

mod faults;
mod property;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use ifrt::fake::FakeClient;
use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt::value::READY_ON_DELETED;
use ifrt::{ArrayRef, Client, Code, Completion, ExecuteOptions, Status, ValueRef};

use crate::support::*;

const INPUT: [f32; 6] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];

fn small(client: &FakeClient) -> ArrayRef {
    array(client, &[2, 3], &single(client, 0))
}

fn values(arrays: &[ArrayRef]) -> Vec<ValueRef> {
    arrays
        .iter()
        .map(|array| Arc::clone(array) as ValueRef)
        .collect()
}

fn ready_on_deleted() -> Status {
    Status::invalid_argument(READY_ON_DELETED)
}

#[test]
fn arr_50_to_55_without_faults() {
    let client = client();
    let arrays: Vec<ArrayRef> = (0..10).map(|_| small(&client)).collect();
    assert_eq!(wait(&arrays[0].ready()), Ok(()), "ARR-50");
    assert_eq!(wait(&client.ready(&values(&arrays[..4]))), Ok(()), "ARR-51");

    assert!(!arrays[0].is_deleted(), "ARR-55");
    let first = arrays[0].delete();
    assert!(
        arrays[0].is_deleted(),
        "ARR-55: before the completion is awaited"
    );
    let second = arrays[0].delete();
    assert_eq!(wait(&first), Ok(()), "ARR-52");
    assert_eq!(wait(&second), Ok(()), "ARR-54");
    assert!(arrays[0].is_deleted(), "ARR-52");

    assert_eq!(
        wait(&client.delete_values(&values(&arrays))),
        Ok(()),
        "ARR-53"
    );
    assert!(arrays.iter().all(|array| array.is_deleted()), "ARR-53");
    assert_eq!(client.delete_counts().total, 10, "one deletion per array");
    assert_eq!((client.live_bytes(), client.live_buffers()), (0, 0));
}

#[test]
fn new_01_deletion_returns_before_the_runtime_is_done() {
    let (client, gate) = (client(), Gate::new());
    client
        .faults()
        .add(Op::Delete, When::Always, Fault::Slow(gate.clone()));
    let array = small(&client);
    let deletion = array.delete();
    assert!(array.is_deleted());
    assert!(
        !deletion.is_ready() && gate.held() == 1,
        "the runtime is still at it"
    );
    gate.open();
    assert_eq!(deletion.peek(), Some(Ok(())));
}

#[test]
fn new_02_a_failed_deletion_stays_a_deletion() {
    let client = client();
    let failure = Status::internal("cannot free");
    client
        .faults()
        .add(Op::Delete, When::Always, Fault::Fail(failure.clone()));
    let array = small(&client);
    for _ in 0..3 {
        assert_eq!(wait(&array.delete()), Err(failure.clone()));
        assert!(array.is_deleted());
    }
    assert_eq!(client.delete_counts().total, 1);
    assert_eq!(wait(&array.ready()), Err(ready_on_deleted()));
}

#[test]
fn new_03_a_deletion_that_never_completes_holds_nobody() {
    let client = client();
    client.faults().add(Op::Delete, When::Always, Fault::Never);
    let array = small(&client);
    let deletions = [array.delete(), array.delete()];
    assert!(array.is_deleted());
    assert!(deletions.iter().all(|deletion| !deletion.is_ready()));
    assert_eq!(read(&array).unwrap_err().code(), Code::InvalidArgument);
    drop((array, client));
    let lost = deletions
        .each_ref()
        .map(|deletion| wait(deletion).unwrap_err().code());
    assert_eq!(
        lost,
        [Code::Internal; 2],
        "the promise dies with the runtime"
    );
}

#[test]
fn new_04_dropping_the_completion_cancels_nothing() {
    let (client, gate) = (client(), Gate::new());
    client
        .faults()
        .add(Op::Delete, When::Always, Fault::Slow(gate.clone()));
    let array = small(&client);
    drop(array.delete());
    assert!(array.is_deleted());
    assert_eq!(client.delete_counts().total, 1);
    assert_eq!(client.live_bytes(), 0);
    gate.open();
    drop(array);
    assert_eq!(client.delete_counts().total, 1, "dropping is not deletion");
}

#[test]
fn new_05_a_second_deletion_sends_nothing() {
    let client = client();
    let array = array(&client, &[4, 2], &tiled(&client, &[0, 1], &[2, 1]));
    let buffers = client.buffers_of(&array).unwrap();
    for _ in 0..5 {
        array.delete().detach();
    }
    let counts: Vec<u64> = buffers
        .iter()
        .map(|buffer| client.deletes_of(*buffer))
        .collect();
    assert_eq!(counts, [1, 1]);
    assert_eq!(client.faults().calls(Op::Delete), 2);
}

#[test]
fn new_06_reads_before_a_deletion_succeed_and_later_ones_fail() {
    let (client, gate) = (client(), Gate::new());
    client
        .faults()
        .add(Op::CopyToHost, When::Once, Fault::Slow(gate.clone()));
    let array = small(&client);
    let before = array.copy_to_host(None);
    assert_eq!(wait(&array.delete()), Ok(()));
    let after = array.copy_to_host(None);
    assert!(!before.is_ready());
    gate.open();
    let bytes = wait(&before).unwrap().into_bytes().unwrap();
    assert_eq!(floats_of(&bytes), INPUT);
    assert_eq!(
        wait(&after),
        Err(Status::invalid_argument(
            "CopyToHostBuffer() called on deleted or donated buffer"
        ))
    );
}

#[test]
fn new_06_every_operation_fails_after_a_deletion() {
    use ifrt::{ArrayCopySemantics::ReuseInput, ShardSemantics::Addressable};
    let client = client();
    let array = small(&client);
    array.delete().detach();
    let one = [Arc::clone(&array)];
    let sharding = Arc::clone(array.sharding());
    let spec = ifrt::ArraySpec {
        dtype: array.dtype(),
        shape: array.shape().clone(),
        sharding: Arc::clone(&sharding),
        layout: None,
    };
    let specs = [spec];
    let donate = ifrt::ArrayCopySemantics::DonateInput;
    let assembled = client.assemble_array(
        array.dtype(),
        array.shape().clone(),
        sharding,
        &one,
        ReuseInput,
        Addressable,
    );
    let module = "fake:add_one(f32[2,3]) -> (f32[2,3])";
    let executable = wait(&compile(&client, module, None)).unwrap();
    let executed = executable.execute(&one, &ExecuteOptions::default(), None);
    for (operation, error) in [
        (
            "disassemble",
            array.disassemble(ReuseInput, Addressable).err(),
        ),
        ("replica", array.fully_replicated_shard(ReuseInput).err()),
        ("assemble", assembled.err()),
        (
            "copy",
            client.copy_arrays(&one, None, None, ReuseInput).err(),
        ),
        ("bitcast", client.bitcast_arrays(&one, &specs, donate).err()),
        (
            "reshard",
            client.reshard_arrays(&one, &specs, ReuseInput).err(),
        ),
        ("execute", executed.err()),
    ] {
        let error = error.expect(operation);
        assert_eq!(error.code(), Code::InvalidArgument, "{operation}");
        assert!(error.message().contains("deleted or donated"), "{error}");
    }
}

#[test]
fn new_07_deleting_the_input_of_a_pending_execution() {
    let (client, gate) = (client(), Gate::new());
    let module = "fake:add_one(f32[2,3]) -> (f32[2,3])";
    let executable = wait(&compile(&client, module, None)).unwrap();
    client
        .faults()
        .add(Op::Execute, When::Once, Fault::Slow(gate.clone()));
    let input = small(&client);
    let args = [Arc::clone(&input)];
    let result = executable
        .execute(&args, &ExecuteOptions::default(), None)
        .unwrap();
    let output = &result.outputs[0];
    assert_eq!(wait(&input.delete()), Ok(()));
    assert!(!output.ready().is_ready());
    gate.open();
    assert_eq!(read(output).unwrap(), INPUT.map(|value| value + 1.0));
}

#[test]
fn new_08_deletion_from_many_threads_is_one_deletion() {
    let client = client();
    let failure = Status::unavailable("lost");
    client
        .faults()
        .add(Op::Delete, When::Always, Fault::Fail(failure.clone()));
    let array = array(&client, &[4], &replicated(&client, &[0, 1, 2]));
    let barrier = Barrier::new(16);
    let results: Vec<_> = std::thread::scope(|scope| {
        let delete = || {
            barrier.wait();
            let deletion = array.delete();
            assert!(array.is_deleted());
            wait(&deletion)
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(delete)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(results, vec![Err(failure); 16]);
    assert_eq!(client.delete_counts().total, 3, "one per buffer");
    assert_eq!(client.delete_counts().most_of_one_buffer, 1);
}

#[test]
fn new_09_deletion_and_donation() {
    let client = client();
    let module = "fake:add_one(f32[2,3] donated) -> (f32[2,3])";
    let executable = wait(&compile(&client, module, None)).unwrap();
    let run = |array: &ArrayRef| {
        executable.execute(&[Arc::clone(array)], &ExecuteOptions::default(), None)
    };
    let donated = small(&client);
    run(&donated).unwrap();
    assert!(donated.is_deleted());
    assert_eq!(
        wait(&donated.delete()),
        Ok(()),
        "deleting a donated array does nothing"
    );
    assert_eq!(client.delete_counts().total, 0);
    assert_eq!(wait(&donated.ready()), Err(ready_on_deleted()));
    assert!(run(&donated).is_err(), "donated twice");

    let deleted = small(&client);
    assert_eq!(wait(&deleted.delete()), Ok(()));
    assert_eq!(run(&deleted).unwrap_err().code(), Code::InvalidArgument);
    assert!(deleted.is_deleted());
}

#[test]
fn new_10_a_lost_promise_is_an_error_and_no_hang() {
    let client = client();
    client
        .faults()
        .add(Op::Delete, When::Once, Fault::DropPromise);
    let array = small(&client);
    let results = [wait(&array.delete()), wait(&array.delete())];
    assert_eq!(results[0], results[1]);
    assert_eq!(
        results[0],
        Err(Status::internal("Promise destroyed without being set"))
    );
}

#[test]
fn new_11_the_text_that_jaxlib_compares() {
    let client = client();
    let array = small(&client);
    array.delete().detach();
    let status = wait(&array.ready()).unwrap_err();
    assert_eq!(
        status.to_string(),
        "INVALID_ARGUMENT: GetReadyFuture() called on deleted or donated buffer"
    );
    let joined = client.ready(&values(&[small(&client), array]));
    assert_eq!(wait(&joined), Err(status));
}

#[test]
fn new_13_callbacks_may_use_everything_again() {
    let (client, gate) = (client(), Gate::new());
    let slow = Fault::Slow(gate.clone());
    client.faults().add(Op::MakeArray, When::Once, slow.clone());
    client.faults().add(Op::Delete, When::Always, slow);
    let array = small(&client);
    let ready = array.ready();
    let log = Arc::new(Mutex::new(Vec::new()));
    {
        let (array, log, again) = (Arc::clone(&array), Arc::clone(&log), ready.clone());
        ready.on_ready(move |result| {
            log.lock().unwrap().push(format!("ready {result:?}"));
            let inner = Arc::clone(&log);
            again.on_ready(move |_| inner.lock().unwrap().push("inner".to_owned()));
            let deletion = array.delete();
            assert!(array.is_deleted());
            deletion.on_ready(move |result| {
                log.lock().unwrap().push(format!("deleted {result:?}"));
                assert_eq!(array.delete().peek(), Some(Ok(())));
            });
        });
    }
    assert!(log.lock().unwrap().is_empty());
    gate.open();
    assert_eq!(
        *log.lock().unwrap(),
        ["ready Ok(())", "inner", "deleted Ok(())"]
    );
    assert_eq!(client.delete_counts().total, 1);
}

/// Host memory that counts how often it is given back.
struct Owner(Arc<AtomicUsize>, Vec<u8>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.1
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn counted(bytes: usize) -> (ifrt::HostData<'static>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let owner = Owner(Arc::clone(&count), vec![7; bytes]);
    (
        ifrt::HostData::Shared(bytes::Bytes::from_owner(owner)),
        count,
    )
}

#[test]
fn new_14_host_memory_is_given_back_exactly_once() {
    let client = client();
    let given_back = |count: &AtomicUsize| count.load(Ordering::SeqCst);
    let buffer = |data| ifrt::HostBuffer::dense(data, ifrt::DType::U8, shape(&[8]));
    let on = replicated(&client, &[0, 1, 2]);

    let (data, count) = counted(8);
    let made = client
        .make_array_from_host_buffer(buffer(data), Arc::clone(&on), None)
        .unwrap();
    let piece = made
        .fully_replicated_shard(ifrt::ArrayCopySemantics::ReuseInput)
        .unwrap();
    assert_eq!(given_back(&count), 0, "the devices share the memory");
    drop(made);
    assert_eq!(given_back(&count), 0, "one shard still uses it");
    drop(piece);
    assert_eq!(given_back(&count), 1, "dropped with the last shard");

    let (data, count) = counted(8);
    let made = client
        .make_array_from_host_buffer(buffer(data), Arc::clone(&on), None)
        .unwrap();
    let pending = made.copy_to_host(None);
    made.delete().detach();
    assert_eq!(given_back(&count), 0, "a read still uses it");
    drop(pending);
    assert_eq!(
        given_back(&count),
        1,
        "deleted, though the array is still held"
    );
    drop(made);
    assert_eq!(given_back(&count), 1);

    let (data, count) = counted(8);
    let strided = ifrt::HostBuffer {
        byte_strides: Some([2].into()),
        shape: shape(&[4]),
        ..buffer(data)
    };
    let copied = client
        .make_array_from_host_buffer(strided, Arc::clone(&on), None)
        .unwrap();
    assert_eq!(given_back(&count), 1, "copied during the call");
    drop(copied);
    assert_eq!(given_back(&count), 1);

    let (data, count) = counted(7);
    assert!(
        client
            .make_array_from_host_buffer(buffer(data), Arc::clone(&on), None)
            .is_err()
    );
    assert_eq!(given_back(&count), 1, "a refused call keeps nothing");

    for fault in [
        Fault::Refuse(Status::internal("no")),
        Fault::Fail(Status::internal("no")),
        Fault::DropPromise,
    ] {
        let (data, count) = counted(8);
        client
            .faults()
            .add(Op::MakeArray, When::Once, fault.clone());
        let made = client.make_array_from_host_buffer(buffer(data), Arc::clone(&on), None);
        if let Ok(made) = &made {
            assert!(wait(&made.ready()).is_err(), "{fault}");
        }
        drop(made);
        assert_eq!(given_back(&count), 1, "{fault}");
    }
}

#[test]
fn deleting_an_alias_deletes_the_shard() {
    use ifrt::{ArrayCopySemantics::ReuseInput, ShardSemantics::Addressable};
    let client = client();
    let whole = array(&client, &[4], &replicated(&client, &[0, 1]));
    let pieces = whole.disassemble(ReuseInput, Addressable).unwrap();
    assert_eq!(wait(&pieces[0].delete()), Ok(()));
    assert!(whole.is_deleted(), "a shard of it is gone");
    assert!(!pieces[1].is_deleted());
    assert_eq!(wait(&whole.ready()), Err(ready_on_deleted()));
    assert_eq!(wait(&whole.delete()), Ok(()));
    assert!(pieces[1].is_deleted());
    assert_eq!(client.delete_counts().total, 2);
    assert_eq!(client.delete_counts().most_of_one_buffer, 1);
}

#[test]
fn a_ready_completion_from_before_the_deletion_keeps_its_meaning() {
    let (client, gate) = (client(), Gate::new());
    client
        .faults()
        .add(Op::MakeArray, When::Once, Fault::Slow(gate.clone()));
    let array = small(&client);
    let before: Completion = array.ready();
    array.delete().detach();
    gate.open();
    assert_eq!(wait(&before), Ok(()));
    assert_eq!(wait(&array.ready()), Err(ready_on_deleted()));
}
