//! Deletion under every kind of misbehavior, and from many threads.
//!
//! That `delete` does not wait is not measured with a clock: the runtime is held back by gates that
//! the test opens only after `delete` has returned.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ifrt::Status;
use ifrt::fake::fault::{Fault, Gate, Op, When};
use jaxlib_core::{Arg, Array, DeadReason, Kind, Target};

use crate::logs;
use crate::support::{DEADLINE, World, read};
use crate::witness::Event;

/// Every way in which a runtime can get a deletion wrong, with the gate that ends it.
fn faults() -> Vec<(Fault, Gate)> {
    let gate = Gate::new();
    let block = Gate::new();
    vec![
        (Fault::Slow(gate.clone()), gate.clone()),
        (Fault::Fail(Status::internal("broken")), gate.clone()),
        (Fault::Refuse(Status::unavailable("gone")), gate.clone()),
        (Fault::Never, gate.clone()),
        (Fault::DropPromise, gate.clone()),
        (Fault::Panic, gate.clone()),
        (Fault::AfterNext, gate),
        (Fault::Block(block.clone()), block),
    ]
}

fn check_dead(array: &Array) {
    assert!(array.is_deleted());
    array.delete();
    assert_eq!(
        read(array).unwrap_err().message(),
        "Array has been deleted with shape=float32[4]."
    );
    assert_eq!(
        array.block_until_ready().unwrap_err().message(),
        "BlockHostUntilReady() called on deleted or donated buffer"
    );
    assert!(array.addressable_shards().is_err());
    assert_eq!(array.aval().to_string(), "float32[4]");
    assert_eq!(array.to_string(), "Array(float32[4], deleted)");
    assert!(format!("{array:?}").contains("state: deleted"));
}

#[test]
fn whatever_the_runtime_does() {
    for (fault, gate) in faults() {
        let world = World::new();
        let bad = world.put(&[1.0; 4], Target::Default);
        let good = world.put(&[2.0; 4], Target::Default);
        let bystander = world.put(&[3.0; 4], Target::Default);
        world
            .fake
            .faults()
            .add(Op::Delete, When::Once, fault.clone());
        bad.delete();
        check_dead(&bad);
        good.delete();
        check_dead(&good);
        // The good one reaches the runtime, whatever happens to the bad one.
        world
            .witness
            .wait_for(|events| events.contains(&Event::Delete(1)));
        assert_eq!(read(&bystander).unwrap(), [3.0; 4], "{fault}");
        gate.open();
        world.drain();
        check_dead(&bad);
        assert_eq!(world.witness.deletions(0), 1);
        assert_eq!(world.fake.live_buffers(), 1, "{fault}");
    }
}

#[test]
fn a_failure_is_logged_once_and_counted() {
    logs::collect();
    for (fault, words) in [
        (
            Fault::Fail(Status::data_loss("bad sector")),
            "DATA_LOSS: bad sector",
        ),
        (
            Fault::Refuse(Status::unavailable("gone")),
            "UNAVAILABLE: gone",
        ),
        (Fault::DropPromise, "INTERNAL"),
        (Fault::Panic, "panicked"),
    ] {
        let world = World::new();
        let x = world.put(&[1.0; 4], Target::Default);
        world.fake.faults().add(Op::Delete, When::Always, fault);
        for _ in 0..3 {
            x.delete();
        }
        world.drain();
        let array = format!("array=[{}]", x.id());
        let lines = logs::lines_with(&["WARN", "failed to delete an array", &array]);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(words), "{lines:?}");
        let stats = world.client.deletion_stats();
        assert_eq!((stats.requested, stats.told, stats.failed), (1, 1, 1));
        assert_eq!(stats.pending, 0);
    }
}

#[test]
fn a_late_failure_is_logged_too() {
    logs::collect();
    let world = World::new();
    let x = world.put(&[1.0; 4], Target::Default);
    world
        .fake
        .faults()
        .add(Op::Delete, When::Once, Fault::Never);
    x.delete();
    world.drain();
    let array = format!("array=[{}]", x.id());
    assert_eq!(
        world.client.deletion_stats().failed,
        0,
        "nothing failed yet"
    );
    assert_eq!(logs::lines_with(&[&array]).len(), 0);
    // With the runtime goes the promise, long after the client has forgotten the array.
    drop((x, world));
    let lines = logs::lines_with(&["WARN", "failed to delete an array", &array]);
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[test]
fn one_bad_array_after_the_other_does_not_hold_up_the_good_ones() {
    let world = World::new();
    let gate = Gate::new();
    let bad: Vec<Array> = (0..6)
        .map(|_| world.put(&[1.0; 4], Target::Default))
        .collect();
    let good: Vec<Array> = (0..20)
        .map(|_| world.put(&[1.0; 4], Target::Default))
        .collect();
    for _ in &bad {
        let fault = Fault::Block(gate.clone());
        world.fake.faults().add(Op::Delete, When::Once, fault);
    }
    for array in bad.iter().chain(&good) {
        array.delete();
        assert!(array.is_deleted());
    }
    world
        .witness
        .wait_for(|events| events.contains(&Event::Delete(25)));
    assert_eq!(gate.held(), 6, "all bad ones hang");
    assert!(
        !world.client.drain_deletions(Duration::ZERO),
        "they are not done"
    );
    assert!(world.client.deletion_stats().replaced_workers >= 6);
    gate.open();
    world.drain();
    for handle in 0..26 {
        assert_eq!(world.witness.deletions(handle), 1);
    }
}

#[test]
fn the_runtime_hears_of_deletions_in_order() {
    let world = World::new();
    let arrays: Vec<Array> = (0..200)
        .map(|_| world.put(&[1.0; 4], Target::Default))
        .collect();
    for array in &arrays {
        array.delete();
    }
    world.drain();
    let events = world.witness.events();
    let order: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            Event::Delete(handle) => Some(*handle),
            _ => None,
        })
        .collect();
    assert_eq!(order, (0..200).collect::<Vec<u64>>());
}

#[test]
fn many_threads_delete_one_array() {
    for sharding in [1, 8] {
        let world = World::new();
        let x = world.put(&[1.0; 8], world.split(sharding));
        let alias = x.clone();
        let barrier = Barrier::new(16);
        thread::scope(|scope| {
            for n in 0..16 {
                let own = if n % 2 == 0 { &x } else { &alias };
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    own.delete();
                    assert!(own.is_deleted());
                });
            }
        });
        world.drain();
        assert_eq!(world.witness.deletions(0), 1);
        assert_eq!(world.fake.delete_counts().most_of_one_buffer, 1);
    }
}

#[test]
fn after_deletion_nobody_asks_the_runtime() {
    let world = World::new();
    let x = world.put(&[1.0; 4], Target::Default);
    assert!(!x.is_deleted());
    let asked = |world: &World| {
        let events = world.witness.events();
        events
            .iter()
            .filter(|event| matches!(event, Event::IsDeleted(_)))
            .count()
    };
    let before = asked(&world);
    assert!(before > 0);
    x.delete();
    for _ in 0..100 {
        assert!(x.is_deleted());
    }
    assert_eq!(asked(&world), before);
}

#[test]
fn several_at_once() {
    let world = World::new();
    let other = World::new();
    let arrays: Vec<Array> = (0..5)
        .map(|_| world.put(&[1.0; 4], Target::Default))
        .collect();
    let stranger = other.put(&[1.0; 4], Target::Default);
    arrays[1].delete();
    world.drain();
    let members = arrays.iter().chain([&arrays[0], &stranger]);
    Array::delete_all(members);
    assert!(arrays.iter().chain([&stranger]).all(Array::is_deleted));
    world.drain();
    other.drain();
    assert_eq!(world.witness.batches(), 1);
    for handle in 0..5 {
        assert_eq!(world.witness.deletions(handle), 1);
    }
    assert_eq!(other.witness.deletions(0), 1);
    assert_eq!(other.witness.batches(), 0, "one is no batch");
    Array::delete_all(&arrays);
    Array::delete_all([]);
    world.drain();
    assert_eq!(world.witness.batches(), 1);
}

#[test]
fn a_batch_survives_everything_too() {
    logs::collect();
    for (fault, gate) in faults() {
        let world = World::new();
        let arrays: Vec<Array> = (0..3)
            .map(|_| world.put(&[1.0; 4], Target::Default))
            .collect();
        let good = world.put(&[1.0; 4], Target::Default);
        world.fake.faults().add(Op::Delete, When::Once, fault);
        Array::delete_all(&arrays);
        arrays.iter().for_each(check_dead);
        good.delete();
        world
            .witness
            .wait_for(|events| events.contains(&Event::Delete(3)));
        gate.open();
        world.drain();
    }
}

#[test]
fn dropping_is_not_deleting() {
    let world = World::new();
    let x = world.put(&[1.0; 4], Target::Default);
    let clone = x.clone();
    drop(x);
    assert_eq!(read(&clone).unwrap(), [1.0; 4]);
    drop(clone);
    assert_eq!(world.fake.live_buffers(), 0);
    assert_eq!(world.witness.events().last(), Some(&Event::Dropped(0)));
    assert_eq!(world.witness.deletions(0), 0);
    assert_eq!(world.client.deletion_stats().requested, 0);
}

#[test]
fn a_large_array_is_released_by_another_thread() {
    let world = World::new();
    let releasing = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&releasing);
    world.witness.set_hook(move |event| {
        if let Event::Dropped(handle) = event {
            seen.lock().unwrap().push((handle, thread::current().id()));
        }
    });
    drop(world.put(&[1.0; 4], Target::Default));
    drop(world.put(&[1.0; 1 << 20], Target::Default));
    world.drain();
    let own = thread::current().id();
    let releasing = releasing.lock().unwrap();
    let by_us: Vec<(u64, bool)> = releasing.iter().map(|(n, id)| (*n, *id == own)).collect();
    assert_eq!(by_us, [(0, true), (1, false)]);
    assert_eq!(world.client.deletion_stats().released, 1);
}

#[test]
fn the_runtime_may_call_back() {
    let world = World::new();
    let arrays: Vec<Array> = (0..4)
        .map(|_| world.put(&[1.0; 4], Target::Default))
        .collect();
    let inside = arrays.clone();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let client = world.client.clone();
    world.witness.set_hook(move |event| {
        let Event::Delete(handle) = event else {
            return;
        };
        // From within the deletion of one array: look at all, delete the next, read, wait.
        counted.fetch_add(1, Ordering::SeqCst);
        let next = usize::try_from(handle).unwrap() + 1;
        assert!(inside[next - 1].is_deleted());
        if let Some(next) = inside.get(next) {
            assert_eq!(read(next).unwrap(), [1.0; 4]);
            next.delete();
            assert!(next.is_deleted());
        }
        assert!(
            !client.drain_deletions(DEADLINE),
            "it would wait for itself"
        );
        client.deletion_stats();
    });
    arrays[0].delete();
    world
        .witness
        .wait_for(|events| events.contains(&Event::Delete(3)));
    world.drain();
    assert_eq!(calls.load(Ordering::SeqCst), 4);
    // The hook holds arrays, which hold the client, which holds the hook.
    world.witness.set_hook(|_| {});
}

#[test]
fn deleting_while_unwinding() {
    struct Deletes(Array);
    impl Drop for Deletes {
        fn drop(&mut self) {
            self.0.delete();
        }
    }
    let world = World::new();
    let x = world.put(&[1.0; 4], Target::Default);
    let guard = Deletes(x.clone());
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _guard = guard;
        panic!("on purpose");
    }));
    assert!(unwound.is_err());
    assert!(x.is_deleted());
}

#[test]
fn a_deletion_waits_for_calls_that_are_being_enqueued() {
    let world = World::new();
    let f = world.compile("fake:add(f32[4], f32[4]) -> (f32[4])");
    let gate = Gate::new();
    world
        .fake
        .faults()
        .add(Op::Execute, When::Once, Fault::Block(gate.clone()));
    let x = world.put(&[1.0; 4], Target::Default);
    thread::scope(|scope| {
        let call = scope.spawn(|| f.execute(&[Arg::Reference(&x), Arg::Reference(&x)]));
        // Whatever fails below, the call comes to an end.
        let _open = gate.open_on_drop();
        gate.wait_until_held(1, DEADLINE).unwrap();
        x.delete();
        assert!(x.is_deleted(), "at once for everybody");
        assert!(read(&x).is_err());
        world.drain();
        assert_eq!(world.witness.deletions(0), 0, "but the call comes first");
        gate.open();
        let result = call.join().unwrap().unwrap().remove(0);
        assert_eq!(read(&result).unwrap(), [2.0; 4]);
    });
    world.drain();
    assert_eq!(world.witness.deletions(0), 1);
}

#[test]
fn deletion_during_a_donating_call() {
    let world = World::new();
    let f = world.compile("fake:add(f32[4] donated, f32[4]) -> (f32[4])");
    let gate = Gate::new();
    world
        .fake
        .faults()
        .add(Op::Execute, When::Once, Fault::Block(gate.clone()));
    let state = world.put(&[1.0; 4], Target::Default);
    let ones = world.put(&[1.0; 4], Target::Default);
    thread::scope(|scope| {
        let call = scope.spawn(|| f.execute(&[Arg::Donate(&state), Arg::Reference(&ones)]));
        // Whatever fails below, the call comes to an end.
        let _open = gate.open_on_drop();
        gate.wait_until_held(1, DEADLINE).unwrap();
        assert!(!state.is_deleted(), "the call might still fail");
        let error = read(&state).unwrap_err();
        let expected = Kind::ArrayDeleted {
            aval: state.aval().clone(),
            reason: DeadReason::Donated,
        };
        assert_eq!(Kind::of(&error), Some(expected));
        state.delete();
        assert!(state.is_deleted());
        gate.open();
        let result = call.join().unwrap().unwrap().remove(0);
        assert_eq!(read(&result).unwrap(), [2.0; 4]);
    });
    assert!(state.is_deleted());
    world.drain();
    assert_eq!(world.witness.deletions(0), 0, "the runtime has consumed it");
}

#[test]
fn a_busy_buffer_is_not_donated() {
    let world = World::new();
    let read_only = world.compile("fake:identity(f32[4]) -> (f32[4])");
    let step = world.compile("fake:add(f32[4] donated, f32[4]) -> (f32[4])");
    let gate = Gate::new();
    world
        .fake
        .faults()
        .add(Op::Execute, When::Once, Fault::Block(gate.clone()));
    let state = world.put(&[1.0; 4], Target::Default);
    let ones = world.put(&[1.0; 4], Target::Default);
    thread::scope(|scope| {
        let call = scope.spawn(|| read_only.execute(&[Arg::Reference(&state)]));
        // Whatever fails below, the call comes to an end.
        let _open = gate.open_on_drop();
        gate.wait_until_held(1, DEADLINE).unwrap();
        let sum = step
            .execute(&[Arg::Donate(&state), Arg::Reference(&ones)])
            .unwrap()
            .remove(0);
        assert_eq!(read(&sum).unwrap(), [2.0; 4]);
        assert!(!state.is_deleted());
        gate.open();
        let same = call.join().unwrap().unwrap().remove(0);
        assert_eq!(read(&same).unwrap(), [1.0; 4]);
    });
    drop(
        step.execute(&[Arg::Donate(&state), Arg::Reference(&ones)])
            .unwrap(),
    );
    assert!(state.is_deleted(), "now nobody is using it");
}

#[test]
fn known_bug_a1_reading_against_deleting() {
    let tries = 100_000;
    let world = World::new();
    let (mut values, mut errors) = (0, 0);
    let barrier = Barrier::new(2);
    let slot: Mutex<Option<Array>> = Mutex::new(None);
    thread::scope(|scope| {
        let killer = scope.spawn(|| {
            for _ in 0..tries {
                barrier.wait();
                let x = slot.lock().unwrap().clone().unwrap();
                barrier.wait();
                x.delete();
            }
        });
        for _ in 0..tries {
            let x = world.put(&[1.0, 2.0, 3.0, 4.0], Target::Default);
            *slot.lock().unwrap() = Some(x.clone());
            barrier.wait();
            barrier.wait();
            match read(&x) {
                Ok(found) => {
                    assert_eq!(found, [1.0, 2.0, 3.0, 4.0]);
                    values += 1;
                }
                Err(error) => {
                    assert_eq!(
                        error.message(),
                        "Array has been deleted with shape=float32[4]."
                    );
                    errors += 1;
                }
            }
        }
        killer.join().unwrap();
    });
    assert_eq!(values + errors, tries);
    *slot.lock().unwrap() = None;
    world.drain();
    assert_eq!(world.fake.live_buffers(), 0);
}

#[test]
fn donating_against_deleting_has_one_winner() {
    let world = World::new();
    let f = world.compile("fake:add(f32[4] donated, f32[4]) -> (f32[4])");
    let ones = world.put(&[1.0; 4], Target::Default);
    let barrier = Barrier::new(2);
    for _ in 0..2_000 {
        let handle = world.witness.next_handle();
        let x = world.put(&[1.0; 4], Target::Default);
        let called = thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                x.delete();
                assert!(x.is_deleted());
            });
            barrier.wait();
            f.execute(&[Arg::Donate(&x), Arg::Reference(&ones)])
        });
        world.drain();
        assert!(x.is_deleted());
        let donated = world.witness.events().contains(&Event::Donated(handle));
        match called {
            Ok(mut results) => {
                assert_eq!(read(&results.remove(0)).unwrap(), [2.0; 4]);
                assert!(donated);
                assert_eq!(world.witness.deletions(handle), 0);
            }
            Err(error) => {
                assert!(
                    matches!(Kind::of(&error), Some(Kind::ArrayDeleted { .. })),
                    "{error}"
                );
                assert!(!donated);
                assert_eq!(world.witness.deletions(handle), 1);
            }
        }
        world.witness.forget();
    }
}

#[test]
fn deleting_against_calling() {
    let world = World::new();
    let x = world.put(&[0.0; 8], world.split(8));
    let f = world.compile_for(
        "fake:add(f32[8] tiled[8], f32[8] tiled[8]) -> (f32[8] tiled[8])",
        &x,
    );
    let barrier = Barrier::new(3);
    for n in 0..500_u16 {
        let value = f32::from(n);
        let x = world.put(&[value; 8], world.split(8));
        let shard = x.addressable_shards().unwrap().remove(5).data;
        let called = thread::scope(|scope| {
            for victim in [&x, &shard] {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    victim.delete();
                });
            }
            barrier.wait();
            f.execute(&[Arg::Reference(&x), Arg::Reference(&x)])
        });
        match called {
            Ok(mut results) => assert_eq!(read(&results.remove(0)).unwrap(), [2.0 * value; 8]),
            Err(error) => {
                assert!(
                    matches!(Kind::of(&error), Some(Kind::ArrayDeleted { .. })),
                    "{error}"
                );
            }
        }
        assert!(x.is_deleted() && shard.is_deleted());
    }
    drop(x);
    world.drain();
    assert_eq!(world.fake.live_buffers(), 0);
}

#[test]
fn is_deleted_never_becomes_false_again() {
    let world = World::new();
    for _ in 0..500 {
        let x = world.put(&[1.0; 4], Target::Default);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut was_deleted = false;
                    while !done.load(Ordering::Acquire) {
                        let is_deleted = x.is_deleted();
                        assert!(is_deleted || !was_deleted);
                        was_deleted = is_deleted;
                    }
                    assert!(x.is_deleted());
                });
            }
            x.delete();
            done.store(true, Ordering::Release);
        });
    }
}

#[test]
fn a_client_that_goes_away_does_not_wait_for_ever() {
    let gate = Gate::new();
    let world = World::new();
    world
        .fake
        .faults()
        .add(Op::Delete, When::Once, Fault::Block(gate.clone()));
    let x = world.put(&[1.0; 4], Target::Default);
    x.delete();
    gate.wait_until_held(1, DEADLINE).unwrap();
    let (client, fake, _) = world.into_parts();
    drop(client);
    let began = Instant::now();
    drop(x);
    assert!(
        began.elapsed() < DEADLINE,
        "the last reference to the client"
    );
    assert_eq!(gate.held(), 1, "the runtime still hangs");
    gate.open();
    assert_eq!(fake.live_buffers(), 0);
}

#[test]
fn a_client_that_goes_away_hands_over_what_was_asked_for() {
    for (fault, gate) in faults() {
        if matches!(fault, Fault::Block(_)) {
            continue;
        }
        let world = World::new();
        world.fake.faults().add(Op::Delete, When::Always, fault);
        let arrays: Vec<Array> = (0..50)
            .map(|_| world.put(&[1.0; 4], Target::Default))
            .collect();
        Array::delete_all(&arrays[..20]);
        arrays.iter().for_each(Array::delete);
        let (client, fake, witness) = world.into_parts();
        drop((client, arrays));
        let told = (0..50)
            .filter(|handle| witness.deletions(*handle) == 1)
            .count();
        assert_eq!(told, 50);
        gate.open();
        drop(fake);
    }
}
