//! Deleting arrays, whatever else happens to them.

use std::sync::{Arc, Barrier};

use ifrt::{
    ArrayCopySemantics, Client, Code, DType, HostBuffer, HostData, ShardSemantics, ValueRef,
};

use crate::support::*;

#[test]
fn a_deleted_array_says_so_and_refuses_everything() {
    let client = client(1);
    let f = compile(&client, &add_one("4"));
    let x = put(&client, &[4], &[1.0; 4]);
    let before = x.ready();
    assert!(!x.is_deleted());
    assert_eq!(wait(x.delete()), Ok(()));
    assert!(x.is_deleted());
    assert_eq!(wait(x.delete()), Ok(()));
    assert_eq!(wait(before), Ok(()));
    let error = wait(x.ready()).unwrap_err();
    assert_eq!(
        error.message(),
        "GetReadyFuture() called on deleted or donated buffer"
    );
    for error in [
        fetch_bytes(&x).map(drop),
        run(&f, &[&x]).map(drop),
        x.disassemble(ArrayCopySemantics::ReuseInput, ShardSemantics::All)
            .map(drop),
        x.fully_replicated_shard(ArrayCopySemantics::ReuseInput)
            .map(drop),
        client
            .copy_arrays(
                &[Arc::clone(&x)],
                None,
                None,
                ArrayCopySemantics::AlwaysCopy,
            )
            .map(drop),
    ] {
        let error = error.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("deleted or donated"), "{error}");
    }
    // What the array is stays known.
    assert_eq!((x.dtype(), x.shape().dims()), (DType::F32, &[4][..]));
    assert_eq!(x.byte_size(), Ok(Some(16)));
    assert!(x.layout().unwrap().is_none());
    assert!(format!("{x:?}").contains("deleted"));
}

#[test]
fn deleting_from_many_threads_frees_once() {
    let client = client(1);
    let made_before = client.buffer_counts().made;
    for _ in 0..50 {
        let x = put(&client, &[4], &[1.0; 4]);
        let start = Barrier::new(16);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    start.wait();
                    assert_eq!(wait(x.delete()), Ok(()));
                    assert!(x.is_deleted());
                });
            }
        });
    }
    let counts = client.buffer_counts();
    assert_eq!(counts.made - made_before, 50);
    assert_eq!(counts.live(), 0);
}

#[test]
fn readers_and_runners_race_with_deletion() {
    let client = client(1);
    let f = compile(&client, &add_one("4"));
    for _ in 0..200 {
        let x = put(&client, &[4], &[1.0; 4]);
        let start = Barrier::new(3);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                match fetch_bytes(&x) {
                    Ok(bytes) => assert_eq!(floats_of(&bytes), [1.0; 4]),
                    Err(error) => assert_eq!(error.code(), Code::InvalidArgument),
                }
            });
            scope.spawn(|| {
                start.wait();
                match run(&f, &[&x]) {
                    Ok(outputs) => assert_eq!(fetch(&outputs[0]), [2.0; 4]),
                    Err(error) => assert_eq!(error.code(), Code::InvalidArgument),
                }
            });
            start.wait();
            assert_eq!(wait(x.delete()), Ok(()));
        });
        assert!(x.is_deleted());
    }
}

#[test]
fn an_input_may_be_deleted_while_its_consumer_runs() {
    let client = client(1);
    let f = compile(&client, &slow(2000));
    let expected = {
        let x = put(&client, &[64, 64], &vec![0.01; 4096]);
        fetch(&run(&f, &[&x]).unwrap()[0])
    };
    let x = put(&client, &[64, 64], &vec![0.01; 4096]);
    let y = run(&f, &[&x]).unwrap().remove(0);
    assert_eq!(wait(x.delete()), Ok(()));
    assert!(x.is_deleted());
    assert_eq!(fetch(&y), expected);
}

#[test]
fn a_pending_output_may_be_deleted() {
    let client = client(1);
    let f = compile(&client, &slow(2000));
    let x = put(&client, &[64, 64], &vec![0.01; 4096]);
    let y = run(&f, &[&x]).unwrap().remove(0);
    let read = y.copy_to_host(None);
    assert_eq!(wait(y.delete()), Ok(()));
    assert!(y.is_deleted());
    // The read was enqueued first, so it brings the data.
    let bytes = wait(read).unwrap().into_bytes().unwrap();
    assert_eq!(bytes.len(), 4096 * 4);
    assert_eq!(fetch_bytes(&y).unwrap_err().code(), Code::InvalidArgument);
}

/// More runs than the plugin's queue takes: some `execute` calls block inside the plugin with `x` as
/// their argument. Deleting `x` then must not wait for them, which the plugin itself would.
#[test]
fn deletion_does_not_wait_for_a_blocked_run() {
    let client = client(1);
    let f = compile(&client, &slow(3000));
    let x = put(&client, &[64, 64], &vec![0.01; 4096]);
    let last = std::thread::scope(|scope| {
        let runner = scope.spawn(|| {
            // The queue takes 32; the array is alive at the start, and may be deleted at any point.
            (0..40).map_while(|_| run(&f, &[&x]).ok()).last()
        });
        // By the time that several runs are in the queue, delete.
        while client.buffer_counts().made < 4 {
            std::thread::yield_now();
        }
        assert_eq!(wait(x.delete()), Ok(()));
        assert!(x.is_deleted());
        runner.join().unwrap()
    });
    assert_eq!(fetch(&last.unwrap()[0]).len(), 4096);
}

const LARGE: usize = 64 << 20;

/// Freeing 64 MiB takes the system milliseconds, so it must happen on the client's own thread.
#[test]
fn large_arrays_are_freed_by_the_thread_that_frees() {
    let client = client(1);
    let zeros = vec![0; LARGE];
    let make = || put_bytes(&client, DType::U8, &[i64::try_from(LARGE).unwrap()], &zeros).unwrap();
    let x = make();
    assert_eq!(wait(x.delete()), Ok(()));
    assert!(x.is_deleted());
    drop(x);
    // Also if nobody deletes it.
    drop(make());
    let gone = client.gone();
    let in_place = client.buffer_counts().freed_in_place;
    assert_eq!(in_place, 0);
    while client.buffer_counts().live() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(client.buffer_counts().freed_by_reaper, 2);
    drop(client);
    assert_eq!(wait(gone), Ok(()));
}

#[test]
fn small_arrays_are_freed_in_place() {
    let client = client(1);
    for _ in 0..10 {
        let x = put(&client, &[4], &[1.0; 4]);
        assert_eq!(wait(x.delete()), Ok(()));
        drop(put(&client, &[4], &[1.0; 4]));
    }
    let counts = client.buffer_counts();
    assert_eq!(
        (counts.freed_in_place, counts.freed_by_reaper, counts.live()),
        (20, 0, 0)
    );
}

#[test]
fn arrays_that_share_buffers_die_together() {
    let client = client(2);
    let devices: ifrt::DeviceList = client.devices().iter().cloned().collect();
    let sharding = ifrt::Sharding::hlo(
        ifrt::xla::HloSharding::Replicated,
        devices,
        ifrt::MemoryKind::default(),
    );
    let make = || {
        let host = HostBuffer::dense(HostData::Borrowed(&[1, 2]), DType::U8, shape(&[2]));
        client
            .make_array_from_host_buffer(host, sharding.clone().unwrap(), None)
            .unwrap()
    };
    let reuse = ArrayCopySemantics::ReuseInput;
    let x = make();
    let shards = x.disassemble(reuse, ShardSemantics::All).unwrap();
    let alias = client
        .copy_arrays(&[Arc::clone(&x)], None, None, reuse)
        .unwrap()
        .remove(0);
    let copy = client
        .copy_arrays(
            &[Arc::clone(&x)],
            None,
            None,
            ArrayCopySemantics::AlwaysCopy,
        )
        .unwrap()
        .remove(0);
    wait(shards[1].delete()).unwrap();
    assert!(x.is_deleted() && alias.is_deleted() && shards[1].is_deleted());
    assert!(!shards[0].is_deleted() && !copy.is_deleted());
    assert_eq!(fetch_bytes(&shards[0]).unwrap(), [1, 2]);
    wait(x.delete()).unwrap();
    assert!(shards[0].is_deleted());
    assert_eq!(fetch_bytes(&copy).unwrap(), [1, 2]);
}

#[test]
fn dropping_an_alias_deletes_nothing() {
    let client = client(1);
    let x = put(&client, &[4], &[1.0; 4]);
    let reuse = ArrayCopySemantics::ReuseInput;
    let alias = client
        .copy_arrays(&[Arc::clone(&x)], None, None, reuse)
        .unwrap()
        .remove(0);
    drop(alias);
    assert_eq!(fetch(&x), [1.0; 4]);
    assert_eq!(client.buffer_counts().live(), 1);
}

#[test]
fn lists_of_values() {
    let client = client(1);
    let arrays: Vec<_> = (0..5).map(|_| put(&client, &[4], &[1.0; 4])).collect();
    let values: Vec<ValueRef> = arrays
        .iter()
        .map(|array| Arc::clone(array) as ValueRef)
        .collect();
    assert_eq!(wait(client.ready(&values)), Ok(()));
    wait(arrays[2].delete()).unwrap();
    assert_eq!(
        wait(client.ready(&values)).unwrap_err().message(),
        "GetReadyFuture() called on deleted or donated buffer"
    );
    assert_eq!(wait(client.delete_values(&values)), Ok(()));
    assert!(arrays.iter().all(|array| array.is_deleted()));
    assert_eq!(wait(client.delete_values(&values)), Ok(()));
}

#[test]
fn deletion_works_after_the_user_has_dropped_the_client() {
    let client = client(1);
    let gone = client.gone();
    let x = put(&client, &[4], &[1.0; 4]);
    drop(client);
    assert_eq!(fetch(&x), [1.0; 4]);
    assert_eq!(wait(x.delete()), Ok(()));
    assert_eq!(wait(x.delete()), Ok(()));
    assert!(x.is_deleted() && !gone.is_ready());
    drop(x);
    assert_eq!(wait(gone), Ok(()));
}
