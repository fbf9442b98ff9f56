//! What one deletion does, for arrays in every state and runtimes with every fault.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::thread;

use ifrt::Status;
use ifrt::fake::fault::{Fault, Gate, Op, When};
use jaxlib_core::{Arg, Array, DeadReason, Kind, Source, Target, device_put_array};
use proptest::prelude::*;

use crate::logs;
use crate::support::{World, read};
use crate::witness::Event;

/// What an array has been through when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fresh,
    /// The program that makes it is still running.
    Pending,
    /// The program that makes it has failed.
    Failed,
    Empty,
    Donated,
    /// Another array over the same buffer is alive.
    Aliased,
    Spread,
    /// One of the parts of another one.
    Shard,
}

/// Where the call of `delete` comes from.
#[derive(Clone, Copy, Debug)]
enum From {
    Here,
    AnotherThread,
    ADrop,
    AnUnwindingDrop,
}

struct Deletes(Array);

impl Drop for Deletes {
    fn drop(&mut self) {
        self.0.delete();
    }
}

impl From {
    fn delete(self, array: &Array) {
        match self {
            Self::Here => array.delete(),
            Self::AnotherThread => thread::scope(|scope| {
                scope.spawn(|| array.delete());
            }),
            Self::ADrop => drop(Deletes(array.clone())),
            Self::AnUnwindingDrop => {
                let guard = Deletes(array.clone());
                let unwound = catch_unwind(AssertUnwindSafe(move || {
                    let _guard = guard;
                    panic_any("on purpose");
                }));
                assert!(unwound.is_err());
            }
        }
    }
}

/// A fault and whether it is counted as a failure of a deletion.
fn fault(number: usize, gate: &Gate) -> (Option<Fault>, bool) {
    match number {
        0 => (None, false),
        1 => (Some(Fault::Slow(gate.clone())), false),
        2 => (Some(Fault::Fail(Status::internal("broken"))), true),
        3 => (Some(Fault::Refuse(Status::unavailable("gone"))), true),
        4 => (Some(Fault::DropPromise), true),
        5 => (Some(Fault::Panic), true),
        6 => (Some(Fault::AfterNext), false),
        7 => (Some(Fault::Never), false),
        _ => (Some(Fault::Block(gate.clone())), false),
    }
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        Just(State::Fresh),
        Just(State::Pending),
        Just(State::Failed),
        Just(State::Empty),
        Just(State::Donated),
        Just(State::Aliased),
        Just(State::Spread),
        Just(State::Shard),
    ]
}

fn from() -> impl Strategy<Value = From> {
    prop_oneof![
        4 => Just(From::Here),
        2 => Just(From::AnotherThread),
        1 => Just(From::ADrop),
        1 => Just(From::AnUnwindingDrop),
    ]
}

/// An array in this state, and others that share a buffer with it.
fn make(world: &World, state: State, running: &Gate) -> (Array, Vec<Array>) {
    let alone = |array| (array, Vec::new());
    let x = world.put(&[1.0; 8], Target::Default);
    let strike = |fault| world.fake.faults().add(Op::Execute, When::Once, fault);
    match state {
        State::Fresh => alone(x),
        State::Empty => alone(world.put(&[], Target::Default)),
        State::Pending | State::Failed => {
            let f = world.compile("fake:identity(f32[8]) -> (f32[8])");
            strike(if state == State::Pending {
                Fault::Slow(running.clone())
            } else {
                Fault::Fail(Status::internal("the run has failed"))
            });
            alone(f.execute(&[Arg::Reference(&x)]).unwrap().remove(0))
        }
        State::Donated => {
            let f = world.compile("fake:identity(f32[8] donated) -> (f32[8])");
            drop(f.execute(&[Arg::Donate(&x)]).unwrap());
            assert!(x.is_deleted());
            alone(x)
        }
        State::Aliased => {
            let alias = device_put_array(&x, world.device(0), Source::MayAlias).unwrap();
            (x, vec![alias])
        }
        State::Spread => {
            let x = world.put(&[1.0; 8], world.split(4));
            let shards = x.addressable_shards().unwrap();
            (x, shards.into_iter().map(|shard| shard.data).collect())
        }
        State::Shard => {
            let x = world.put(&[1.0; 8], world.split(4));
            let shard = x.addressable_shards().unwrap().remove(2).data;
            (shard, vec![x])
        }
    }
}

fn check_dead(world: &World, array: &Array, reason: DeadReason) {
    let expected = Some(Kind::ArrayDeleted {
        aval: array.aval().clone(),
        reason,
    });
    let program = world.compile("fake:identity(f32[8]) -> (f32[8])");
    let words = format!("Array has been deleted with shape={}.", array.aval());
    for error in [
        read(array).unwrap_err(),
        array.read().map(drop).unwrap_err(),
        array.copy_to_host_async().unwrap_err(),
        array.is_ready().unwrap_err(),
        array.addressable_shards().map(drop).unwrap_err(),
        device_put_array(array, Target::Default, Source::MayAlias).unwrap_err(),
        device_put_array(array, world.device(5), Source::Copy).unwrap_err(),
        device_put_array(array, world.device(5), Source::Donate).unwrap_err(),
        program
            .execute(&[Arg::Reference(array)])
            .map(drop)
            .unwrap_err(),
        program
            .execute(&[Arg::Donate(array)])
            .map(drop)
            .unwrap_err(),
    ] {
        assert_eq!(Kind::of(&error), expected, "{error}");
        assert!(error.message().starts_with(&words), "{error}");
    }
    let error = array.block_until_ready().unwrap_err();
    assert_eq!(Kind::of(&error), expected);
    assert!(
        error
            .message()
            .contains("called on deleted or donated buffer")
    );
    assert!(
        array
            .to_string()
            .contains(array.aval().to_string().as_str())
    );
    assert!(format!("{array:?}").contains("state: d"));
}

proptest! {
    #[test]
    fn deletion_under_every_fault(
        state in state(),
        number in 0_usize..9,
        times in 1_usize..4,
        from in from(),
    ) {
        logs::collect();
        let world = World::new();
        let running = Gate::new();
        let (array, sharing) = make(&world, state, &running);
        let bystander = world.put(&[7.0; 8], Target::Default);
        let last = world.witness.next_handle() - 1;
        let before = (
            array.aval().clone(),
            array.sharding().clone(),
            array.is_committed(),
            array.weak_type(),
        );
        let gate = Gate::new();
        let (fault, is_failure) = fault(number, &gate);
        if let Some(fault) = fault {
            world.fake.faults().add(Op::Delete, When::Once, fault);
        }
        // The gate is closed: whoever waited for the runtime would wait for ever.
        for _ in 0..times {
            from.delete(&array);
            prop_assert!(array.is_deleted());
        }
        world.witness.forget();
        let reason = if state == State::Donated {
            DeadReason::Donated
        } else {
            DeadReason::Deleted
        };
        check_dead(&world, &array, reason);
        for other in &sharing {
            prop_assert!(other.is_deleted());
            prop_assert!(read(other).is_err());
        }
        // Nobody was asked whether what is known to be dead is dead.
        let asked = world.witness.events();
        prop_assert!(!asked.iter().any(|event| matches!(event, Event::IsDeleted(_))));
        let after = (
            array.aval().clone(),
            array.sharding().clone(),
            array.is_committed(),
            array.weak_type(),
        );
        prop_assert_eq!(before, after);
        prop_assert_eq!(read(&bystander).unwrap(), [7.0; 8]);
        if state != State::Shard {
            // All their buffers are dead: there is nothing to tell the runtime any more.
            sharing.iter().for_each(Array::delete);
        }
        // A good one behind the bad one reaches the runtime while that still hangs.
        bystander.delete();
        world.witness.wait_for(|events| events.contains(&Event::Delete(last)));
        gate.open();
        running.open();
        world.drain();
        let stats = world.client.deletion_stats();
        let was_told = u64::from(state != State::Donated);
        prop_assert_eq!(stats.requested, 1 + was_told);
        prop_assert_eq!(stats.told, stats.requested);
        if state != State::Donated {
            prop_assert_eq!(stats.failed, u64::from(is_failure));
            let id = format!("array=[{}]", array.id());
            let lines = logs::lines_with(&["failed to delete an array", &id]);
            prop_assert_eq!(lines.len(), usize::from(is_failure), "{:?}", lines);
        }
        drop((array, sharing, bystander));
        world.drain();
        prop_assert_eq!(world.fake.live_buffers(), 0);
    }

    #[test]
    fn the_client_goes_away(
        number in 0_usize..8,
        held in 1_usize..8,
        deleted in 0_usize..8,
        drops_arrays_first in any::<bool>(),
    ) {
        let world = World::new();
        let gate = Gate::new();
        if let (Some(fault), _) = fault(number, &gate) {
            world.fake.faults().add(Op::Delete, When::Always, fault);
        }
        let arrays: Vec<Array> = (0..held)
            .map(|_| world.put(&[1.0; 8], Target::Default))
            .collect();
        arrays.iter().take(deleted).for_each(Array::delete);
        let (client, fake, witness) = world.into_parts();
        if drops_arrays_first {
            drop(arrays);
            drop(client);
        } else {
            drop(client);
            // An array is alive for as long as it is held, and can still be deleted.
            for (n, array) in arrays.iter().enumerate() {
                prop_assert_eq!(array.is_deleted(), n < deleted);
            }
            arrays.iter().for_each(Array::delete);
            prop_assert!(arrays.iter().all(Array::is_deleted));
            drop(arrays);
        }
        let told = (0..u64::try_from(held).unwrap())
            .filter(|handle| witness.deletions(*handle) == 1)
            .count();
        let expected = if drops_arrays_first { deleted.min(held) } else { held };
        prop_assert_eq!(told, expected);
        gate.open();
        drop(fake);
    }
}
