//! What is counted and listed, and what the runtime may do meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use jaxlib_core::{Array, Source, Target, device_put_array};
use proptest::prelude::*;

use crate::model::spoil;
use crate::support::{World, read};
use crate::witness::Event;

/// Arrays, some of which share a buffer with the one before.
fn arrays(world: &World, shares: &[bool]) -> Vec<Array> {
    let mut arrays: Vec<Array> = Vec::new();
    for shares in shares {
        let made = match arrays.last() {
            Some(last) if *shares => {
                device_put_array(last, world.device(0), Source::MayAlias).unwrap()
            }
            _ => world.put(&[1.0; 4], Target::Default),
        };
        arrays.push(made);
    }
    arrays
}

fn liveness(arrays: &[Array]) -> Vec<bool> {
    arrays.iter().map(|array| !array.is_deleted()).collect()
}

proptest! {
    #[test]
    fn many_at_once(
        shares in proptest::collection::vec(any::<bool>(), 1..12),
        picked in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        seed in any::<u64>(),
        percent in prop_oneof![Just(0_u8), Just(50)],
    ) {
        let (one_by_one, together) = (World::new(), World::new());
        let gates = (spoil(&one_by_one, seed, percent), spoil(&together, seed, percent));
        let first = arrays(&one_by_one, &shares);
        let second = arrays(&together, &shares);
        let picked: Vec<usize> = picked.iter().map(|index| index.index(shares.len())).collect();
        for n in &picked {
            first[*n].delete();
        }
        Array::delete_all(picked.iter().map(|n| &second[*n]));
        prop_assert_eq!(liveness(&first), liveness(&second));
        prop_assert!(together.witness.batches() <= 1);
        for (n, array) in second.iter().enumerate() {
            prop_assert_eq!(read(array).is_ok(), liveness(&second)[n]);
        }
        gates.0.open();
        gates.1.open();
        one_by_one.drain();
        together.drain();
        let requested = |world: &World| world.client.deletion_stats().requested;
        prop_assert_eq!(requested(&one_by_one), requested(&together));
    }

    #[test]
    fn dropping_is_not_deleting(
        shares in proptest::collection::vec(any::<bool>(), 1..12),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 12),
    ) {
        let world = World::new();
        let mut arrays = arrays(&world, &shares);
        for index in order {
            if arrays.is_empty() {
                break;
            }
            drop(arrays.remove(index.index(arrays.len())));
            for array in &arrays {
                prop_assert_eq!(read(array).unwrap(), [1.0; 4]);
            }
        }
        world.drain();
        let events = world.witness.events();
        let is_deletion =
            |event: &Event| matches!(event, Event::Delete(_) | Event::DeleteTogether(_));
        prop_assert!(!events.iter().any(is_deletion));
        prop_assert_eq!(world.client.deletion_stats().requested, 0);
        prop_assert_eq!(world.fake.live_buffers(), 0);
    }

    /// From several threads that make, delete and drop arrays while another looks at the list.
    #[test]
    fn the_list_of_the_living(
        scripts in proptest::collection::vec(proptest::collection::vec(0_u8..4, 1..30), 2..5),
    ) {
        let world = World::new();
        let working = AtomicUsize::new(scripts.len());
        let kept = thread::scope(|scope| {
            let workers: Vec<_> = scripts
                .iter()
                .map(|script| {
                    let (world, working) = (&world, &working);
                    scope.spawn(move || {
                        let mut arrays = Vec::new();
                        for deed in script {
                            match deed {
                                0 | 1 => arrays.push(world.put(&[1.0; 4], Target::Default)),
                                2 => drop(arrays.pop()),
                                _ => arrays.last().into_iter().for_each(Array::delete),
                            }
                        }
                        working.fetch_sub(1, Ordering::Release);
                        arrays
                    })
                })
                .collect();
            while working.load(Ordering::Acquire) > 0 {
                for array in world.client.live_arrays() {
                    // It may have died since, and then it says so.
                    assert!(read(&array).is_ok() || array.is_deleted());
                }
            }
            let kept: Vec<Vec<Array>> = workers
                .into_iter()
                .map(|worker| worker.join().unwrap())
                .collect();
            kept
        });
        let id_of = |array: &Array| array.id();
        let mut expected: Vec<u64> = kept
            .iter()
            .flatten()
            .filter(|array| !array.is_deleted())
            .map(id_of)
            .collect();
        let mut listed: Vec<u64> = world.client.live_arrays().iter().map(id_of).collect();
        expected.sort_unstable();
        listed.sort_unstable();
        prop_assert_eq!(listed, expected);
        drop(kept);
        prop_assert!(world.client.live_arrays().is_empty());
    }

    #[test]
    fn the_runtime_calls_back(
        victims in proptest::collection::vec((any::<prop::sample::Index>(), 0_u8..6), 1..12),
        shares in proptest::collection::vec(any::<bool>(), 2..8),
    ) {
        let world = World::new();
        let arrays = arrays(&world, &shares);
        let inside = arrays.clone();
        let deeds: Vec<(usize, u8)> = victims
            .iter()
            .map(|(index, deed)| (index.index(arrays.len()), *deed))
            .collect();
        let script = deeds.clone();
        let next = AtomicUsize::new(0);
        let client = world.client.clone();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        world.witness.set_hook(move |_| {
            // As often as the script is long; what it does calls the runtime, which calls back.
            let Some((n, deed)) = script.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            counted.fetch_add(1, Ordering::Relaxed);
            let array = &inside[*n];
            match deed {
                0 => array.delete(),
                1 => Array::delete_all(&inside),
                2 => drop(read(array)),
                3 => drop(client.live_arrays()),
                4 => drop(array.block_until_ready()),
                _ => assert!(!array.to_string().is_empty()),
            }
        });
        for (n, _) in deeds {
            let array = &arrays[n];
            array.is_deleted();
            array.delete();
            prop_assert!(array.is_deleted());
        }
        drop(world.client.live_arrays());
        world.drain();
        prop_assert!(calls.load(Ordering::Relaxed) > 0);
        // The hook holds arrays, which hold the client, which holds the hook.
        world.witness.set_hook(|_| {});
        drop(arrays);
        world.drain();
        prop_assert_eq!(world.fake.live_buffers(), 0);
    }
}
