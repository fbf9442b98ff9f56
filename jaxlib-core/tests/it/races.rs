//! Every pair of operations on one array from two threads.
//!
//! `RACE_TRIES` sets how often each pair is tried; `cargo xtask test --all` takes more. The tests
//! are of most use under ThreadSanitizer, which finds races that have no visible effect:
//!
//! ```text
//! RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=thread RACE_TRIES=100000 cargo test -Zbuild-std \
//!   --target x86_64-unknown-linux-gnu -p jaxlib-core --test it races -- --skip plugin
//! ```

use std::sync::Barrier;
use std::thread;

use jaxlib_core::{Arg, Array, Kind, LoadedExecutable, Source, device_put_array};

use crate::model::ground::{CpuWorld, Dialect, Ground, Place};
use crate::support::{Stage, World, from_bytes, read};

/// Arrays that are made before both threads go through them.
const BATCH: usize = 64;

type Operation = fn(&Scene<'_>, &Array);

/// What the operations need besides the array.
struct Scene<'a> {
    stage: &'a Stage,
    add: &'a LoadedExecutable,
    ones: &'a Array,
}

/// Everything that can be done to an array.
const OPERATIONS: [(&str, Operation); 14] = [
    ("to_host", |_, x| {
        if let Some(values) = accept(read(x)) {
            assert_eq!(values, [5.0; 8]);
        }
    }),
    ("delete", |_, x| {
        x.delete();
        assert!(x.is_deleted());
    }),
    ("read", |_, x| {
        if let Some(read) = accept(x.read()) {
            // Accepted, so it is exact whatever happens meanwhile.
            let host = read.wait().unwrap();
            assert_eq!(from_bytes(host.bytes().unwrap()), [5.0; 8]);
        }
    }),
    ("copy_to_host_async", |_, x| {
        accept(x.copy_to_host_async());
    }),
    ("block_until_ready", |_, x| {
        accept(x.block_until_ready());
    }),
    ("is_ready", |_, x| {
        accept(x.is_ready());
    }),
    ("is_deleted", |_, x| {
        let before = x.is_deleted();
        assert!(x.is_deleted() || !before);
    }),
    ("shards", |_, x| {
        if let Some(shards) = accept(x.addressable_shards()) {
            accept(read(&shards[0].data));
        }
    }),
    ("alias", |_, x| {
        let alias = device_put_array(x, x.sharding().clone(), Source::MayAlias);
        if let Some(alias) = accept(alias) {
            let was_deleted = x.is_deleted();
            assert!(alias.is_deleted() || !was_deleted);
        }
    }),
    ("copy", |_, x| {
        let copy = device_put_array(x, x.sharding().clone(), Source::Copy);
        if let Some(copy) = accept(copy) {
            assert_eq!(read(&copy).unwrap(), [5.0; 8]);
        }
    }),
    ("call", |scene, x| call(scene, Arg::Reference(x))),
    ("donate", |scene, x| call(scene, Arg::Donate(x))),
    ("delete_all", |_, x| Array::delete_all([x, x])),
    ("list and print", |scene, x| {
        let live = scene.stage.client.live_arrays();
        assert!(live.len() <= 4 * BATCH);
        assert!(!format!("{x} {x:?}").is_empty());
    }),
];

fn call(scene: &Scene<'_>, first: Arg<'_>) {
    if let Some(mut sums) = accept(scene.add.execute(&[first, Arg::Reference(scene.ones)])) {
        assert_eq!(read(&sums.remove(0)).unwrap(), [6.0; 8]);
    }
}

/// A result, unless the array was dead.
#[track_caller]
fn accept<T>(result: ifrt::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(status) => {
            assert!(
                matches!(Kind::of(&status), Some(Kind::ArrayDeleted { .. })),
                "{status}"
            );
            None
        }
    }
}

fn tries(default: usize) -> usize {
    let set = std::env::var("RACE_TRIES").ok();
    set.map_or(default, |text| text.parse().unwrap())
}

/// Both operations on the same arrays in the same order, side by side.
fn race(scene: &Scene<'_>, place: Place, pair: [Operation; 2], tries: usize) {
    let mut left = tries;
    while left > 0 {
        let count = left.min(BATCH);
        left -= count;
        let arrays: Vec<Array> = (0..count)
            .map(|_| {
                let sharding = place.sharding(scene.stage);
                scene.stage.put(&[5.0; 8], sharding)
            })
            .collect();
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            for operation in pair {
                let (arrays, barrier) = (&arrays, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    arrays.iter().for_each(|array| operation(scene, array));
                });
            }
        });
    }
}

fn every_pair(ground: &Ground<'_>, place: Place, tries: usize) {
    let stage = ground.stage;
    let ones = stage.put(&[1.0; 8], place.sharding(stage));
    let add = ground.add(place, 8, &ones);
    let scene = Scene {
        stage,
        add: &add,
        ones: &ones,
    };
    for (n, (_, first)) in OPERATIONS.iter().enumerate() {
        for (_, second) in &OPERATIONS[n..] {
            race(&scene, place, [*first, *second], tries);
        }
    }
    drop(ones);
    stage.drain();
    assert!(stage.client.live_arrays().is_empty());
}

#[test]
fn every_pair_of_operations() {
    let world = World::new();
    for place in [Place::Single(0), Place::Split(4)] {
        every_pair(&Ground::new(&world, Dialect::Fake), place, tries(50));
    }
    assert_eq!(world.fake.live_buffers(), 0);
}

#[test]
fn every_pair_of_operations_on_the_plugin() {
    let world = CpuWorld::new();
    for place in [Place::Single(0), Place::Split(4)] {
        every_pair(
            &Ground::new(&world.stage, Dialect::StableHlo),
            place,
            tries(20),
        );
    }
    world.wait_until_empty();
}

/// Stock JAX dies of this within two thousand tries.
#[test]
fn known_bug_a1_reading_against_deleting_in_batches() {
    let world = World::new();
    let ground = Ground::new(&world, Dialect::Fake);
    let ones = world.put(&[1.0; 8], world.device(0));
    let add = ground.add(Place::Single(0), 8, &ones);
    let scene = Scene {
        stage: &world,
        add: &add,
        ones: &ones,
    };
    let [(_, to_host), (_, delete), ..] = OPERATIONS;
    race(&scene, Place::Single(0), [to_host, delete], tries(10_000));
}
