//! Several threads over the same arrays.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use jaxlib_core::{Arg, Array, Kind, LoadedExecutable};
use proptest::prelude::*;

use super::ground::{Dialect, Ground, Place};
use super::{FAR, ON_CPU, check_handles, far_cases, spoil};
use crate::support::{World, read};

#[derive(Clone, Debug)]
enum Command {
    Delete(usize),
    DeleteShard(usize, usize),
    Read(usize),
    Wait(usize),
    Call(usize, usize),
    Donate(usize, usize),
    Ask(usize),
    Drop(usize),
}

/// The arrays that all threads use, and whether somebody has certainly killed them.
struct Pool<'a> {
    arrays: Vec<(Array, f32)>,
    dead: Vec<AtomicBool>,
    add: &'a LoadedExecutable,
}

fn accept<T>(result: ifrt::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(status) => {
            let words = status.message();
            let clash = words.contains("Toy example for this bug");
            let dead = matches!(Kind::of(&status), Some(Kind::ArrayDeleted { .. }));
            assert!(clash || dead, "{status}");
            None
        }
    }
}

impl Pool<'_> {
    fn get(&self, n: usize) -> (&Array, f32) {
        let (array, value) = &self.arrays[n % self.arrays.len()];
        (array, *value)
    }

    fn killed(&self, n: usize) {
        assert!(self.get(n).0.is_deleted());
        self.dead[n % self.dead.len()].store(true, Ordering::SeqCst);
    }

    fn call(&self, first: Arg<'_>, second: usize, expected: f32) {
        let args = [first, Arg::Reference(self.get(second).0)];
        if let Some(mut results) = accept(self.add.execute(&args)) {
            assert_eq!(read(&results.remove(0)).unwrap(), [expected; 8]);
        }
    }

    fn apply(&self, command: &Command) {
        match *command {
            Command::Delete(n) => {
                self.get(n).0.delete();
                self.killed(n);
            }
            Command::DeleteShard(n, shard) => {
                if let Some(shards) = accept(self.get(n).0.addressable_shards()) {
                    shards[shard % shards.len()].data.delete();
                    self.killed(n);
                }
            }
            Command::Read(n) => {
                let (array, value) = self.get(n);
                if let Some(values) = accept(read(array)) {
                    assert_eq!(values, [value; 8]);
                }
            }
            Command::Wait(n) => {
                accept(self.get(n).0.block_until_ready());
            }
            Command::Call(a, b) => {
                let ((x, value), (_, other)) = (self.get(a), self.get(b));
                self.call(Arg::Reference(x), b, value + other);
            }
            Command::Donate(a, b) => {
                let ((x, value), (_, other)) = (self.get(a), self.get(b));
                self.call(Arg::Donate(x), b, value + other);
            }
            Command::Ask(n) => {
                let was_dead = self.dead[n % self.dead.len()].load(Ordering::SeqCst);
                let is_dead = self.get(n).0.is_deleted();
                assert!(is_dead || !was_dead, "dead arrays stay dead");
                assert!(!self.get(n).0.to_string().is_empty());
            }
            Command::Drop(n) => drop(self.get(n).0.clone()),
        }
    }
}

fn command() -> impl Strategy<Value = Command> {
    let n = || 0_usize..1000;
    prop_oneof![
        2 => n().prop_map(Command::Delete),
        1 => (n(), n()).prop_map(|(n, shard)| Command::DeleteShard(n, shard)),
        3 => n().prop_map(Command::Read),
        1 => n().prop_map(Command::Wait),
        3 => (n(), n()).prop_map(|(a, b)| Command::Call(a, b)),
        2 => (n(), n()).prop_map(|(a, b)| Command::Donate(a, b)),
        2 => n().prop_map(Command::Ask),
        1 => n().prop_map(Command::Drop),
    ]
}

/// Runs the scripts side by side over six arrays, and looks at what is left.
fn run(ground: &Ground<'_>, scripts: &[Vec<Command>]) {
    let stage = ground.stage;
    let arrays: Vec<(Array, f32)> = (0..6_u8)
        .map(|n| {
            let value = f32::from(n + 1);
            (stage.put(&[value; 8], stage.split(8)), value)
        })
        .collect();
    let pool = Pool {
        dead: arrays.iter().map(|_| AtomicBool::new(false)).collect(),
        add: &ground.add(Place::Split(8), 8, &arrays[0].0),
        arrays,
    };
    let barrier = Barrier::new(scripts.len());
    thread::scope(|scope| {
        for script in scripts {
            let (pool, barrier) = (&pool, &barrier);
            scope.spawn(move || {
                barrier.wait();
                script.iter().for_each(|command| pool.apply(command));
            });
        }
    });
    for ((array, value), dead) in pool.arrays.iter().zip(&pool.dead) {
        match array.is_deleted() {
            true => assert!(read(array).is_err()),
            false => {
                assert!(!dead.load(Ordering::SeqCst));
                assert_eq!(read(array).unwrap(), [*value; 8]);
            }
        }
    }
}

fn scripts() -> impl Strategy<Value = Vec<Vec<Command>>> {
    proptest::collection::vec(proptest::collection::vec(command(), 1..12), 2..8)
}

proptest! {
    #[test]
    fn threads_see_one_truth(
        scripts in scripts(),
        seed in any::<u64>(),
        percent in prop_oneof![Just(0_u8), Just(50)],
    ) {
        let world = World::new();
        let gate = spoil(&world, seed, percent);
        run(&Ground::new(&world, Dialect::Fake), &scripts);
        gate.open();
        world.drain();
        check_handles(&world);
        prop_assert_eq!(world.fake.live_buffers(), 0);
    }

    #[test]
    fn threads_see_one_truth_on_the_plugin(scripts in scripts()) {
        ON_CPU.with(|(world, ground)| {
            world.stage.witness.forget();
            run(ground, &scripts);
            world.stage.drain();
            check_handles(&world.stage);
            world.wait_until_empty();
        });
    }
}

proptest! {
    #![proptest_config(far_cases())]

    #[test]
    fn threads_see_one_truth_on_a_server(
        scripts in scripts(),
        seed in any::<u64>(),
        percent in prop_oneof![Just(0_u8), Just(50)],
    ) {
        FAR.with(|(world, ground)| {
            world.witness.forget();
            world.fake.faults().clear();
            let gate = spoil(world, seed, percent);
            run(ground, &scripts);
            gate.open();
            world.drain();
            check_handles(world);
            world.wait_until_empty();
        });
    }
}
