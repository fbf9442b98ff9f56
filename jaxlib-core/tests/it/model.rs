//! Arrays against a model: any sequence of operations, over a runtime whose deletions go wrong in
//! every way.
//!
//! `PROPTEST_CASES` sets the number of cases.

mod commands;
pub(crate) mod ground;
mod threads;

use std::collections::{BTreeSet, HashMap, HashSet};

use ifrt::Status;
use ifrt::fake::fault::{Fault, Gate, Op};
use jaxlib_core::{Arg, Array, DeadReason, HostRead, Kind, Sharding, Source, device_put_array};
use proptest::prelude::*;

use crate::support::{Stage, World, from_bytes, read};
use crate::witness::Event;
use commands::{Command, command};
use ground::{CpuWorld, Dialect, Ground, Place};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Live,
    Deleted,
    Donated,
}

/// An array and what the model knows about it.
#[derive(Clone)]
struct Entry {
    array: Array,
    values: Vec<f32>,
    place: Place,
    buffers: Vec<usize>,
    sharding: Sharding,
    /// Clones are one array.
    identity: usize,
}

struct Model<'a> {
    ground: &'a Ground<'a>,
    lives: Vec<Life>,
    entries: Vec<Entry>,
    /// Reads that were started, and what they must give.
    reads: Vec<(HostRead, Vec<f32>)>,
    puts: u16,
    identities: usize,
}

impl Model<'_> {
    fn dead(&self, entry: usize) -> Option<DeadReason> {
        let lives = self.entries[entry]
            .buffers
            .iter()
            .map(|buffer| self.lives[*buffer]);
        lives
            .map(|life| match life {
                Life::Live => None,
                Life::Deleted => Some(DeadReason::Deleted),
                Life::Donated => Some(DeadReason::Donated),
            })
            .find(Option::is_some)?
    }

    fn add(&mut self, array: Array, values: Vec<f32>, place: Place) {
        let first = self.lives.len();
        self.lives
            .extend(std::iter::repeat_n(Life::Live, place.buffers()));
        let buffers = (first..self.lives.len()).collect();
        self.share(array, values, place, buffers);
    }

    fn share(&mut self, array: Array, values: Vec<f32>, place: Place, buffers: Vec<usize>) {
        let sharding = array.sharding().clone();
        self.identities += 1;
        let identity = self.identities;
        self.entries.push(Entry {
            array,
            values,
            place,
            buffers,
            sharding,
            identity,
        });
    }

    fn put(&mut self, place: Place) {
        self.puts += 1;
        let values: Vec<f32> = (0..8).map(|n| f32::from(8 * self.puts + n)).collect();
        let array = self
            .ground
            .stage
            .put(&values, place.sharding(self.ground.stage));
        self.add(array, values, place);
    }

    fn kill(&mut self, entry: usize, life: Life) {
        for buffer in &self.entries[entry].buffers {
            if self.lives[*buffer] == Life::Live {
                self.lives[*buffer] = life;
            }
        }
    }

    fn pick(&self, number: usize) -> Option<usize> {
        number.checked_rem(self.entries.len())
    }

    /// Does it with the arrays and with the model, and compares.
    fn apply(&mut self, command: &Command) {
        match command {
            Command::Put(place) => self.put(*place),
            Command::Call { donate, args } => self.call(*donate, *args),
            Command::Clone(n) => self.with(*n, |model, n| {
                let entry = model.entries[n].clone();
                model.entries.push(entry);
            }),
            Command::Alias(n) => self.with(*n, |model, n| {
                let target = model.entries[n].sharding.clone();
                let made = device_put_array(&model.entries[n].array, target, Source::MayAlias);
                if let Some(array) = model.expect(n, made) {
                    let Entry {
                        values,
                        place,
                        buffers,
                        ..
                    } = &model.entries[n];
                    let (values, place, buffers) = (values.clone(), *place, buffers.clone());
                    model.share(array, values, place, buffers);
                }
            }),
            Command::Copy(n) => self.with(*n, |model, n| {
                model.put_elsewhere(n, model.entries[n].place, Source::Copy);
            }),
            Command::Move(n, place) => self.with(*n, |model, n| {
                if model.fits(n, *place) && model.entries[n].place != *place {
                    model.put_elsewhere(n, *place, Source::MayAlias);
                }
            }),
            Command::DonateTo(n, place) => self.with(*n, |model, n| {
                if model.fits(n, *place) {
                    model.put_elsewhere(n, *place, Source::Donate);
                }
            }),
            Command::Shards(n) => self.with(*n, Self::shards),
            Command::Assemble(n) => self.with(*n, Self::assemble),
            Command::Read(n) => self.with(*n, |model, n| {
                let found = read(&model.entries[n].array);
                if let Some(values) = model.expect(n, found) {
                    assert_eq!(values, model.entries[n].values);
                }
            }),
            Command::StartRead(n) => self.with(*n, |model, n| {
                let read = model.entries[n].array.read();
                if let Some(read) = model.expect(n, read) {
                    model.reads.push((read, model.entries[n].values.clone()));
                }
            }),
            Command::CopyToHost(n) => self.with(*n, |model, n| {
                let copied = model.entries[n].array.copy_to_host_async();
                model.expect(n, copied);
            }),
            Command::IsReady(n) => self.with(*n, |model, n| {
                let is_ready = model.entries[n].array.is_ready();
                model.expect(n, is_ready);
            }),
            Command::Wait(n) => self.with(*n, |model, n| {
                match (model.dead(n), model.entries[n].array.block_until_ready()) {
                    (None, result) => result.unwrap(),
                    (Some(_), result) => assert!(
                        result
                            .unwrap_err()
                            .message()
                            .contains("called on deleted or donated")
                    ),
                }
            }),
            Command::Delete(n) => self.with(*n, |model, n| {
                model.entries[n].array.delete();
                model.kill(n, Life::Deleted);
            }),
            Command::DeleteAll(numbers) => {
                let picked: Vec<usize> = numbers.iter().filter_map(|n| self.pick(*n)).collect();
                Array::delete_all(picked.iter().map(|n| &self.entries[*n].array));
                picked.iter().for_each(|n| self.kill(*n, Life::Deleted));
            }
            Command::Drop(n) => self.with(*n, |model, n| {
                model.entries.remove(n);
            }),
        }
    }

    fn with(&mut self, number: usize, f: impl FnOnce(&mut Self, usize)) {
        if let Some(picked) = self.pick(number) {
            f(self, picked);
        }
    }

    /// The result of an operation on an array; a dead one must have failed with the right words.
    fn expect<T>(&self, n: usize, result: ifrt::Result<T>) -> Option<T> {
        let aval = self.entries[n].array.aval();
        match (self.dead(n), result) {
            (None, result) => Some(result.unwrap()),
            (Some(reason), result) => {
                let status = result.map(drop).unwrap_err();
                let aval = aval.clone();
                assert_eq!(Kind::of(&status), Some(Kind::ArrayDeleted { aval, reason }));
                assert!(
                    status
                        .message()
                        .contains("Array has been deleted with shape=float32[")
                );
                None
            }
        }
    }

    fn fits(&self, n: usize, place: Place) -> bool {
        match place {
            Place::Split(count) => self.entries[n].values.len().is_multiple_of(count),
            Place::Single(_) | Place::Copies(_) => true,
        }
    }

    fn put_elsewhere(&mut self, n: usize, place: Place, source: Source) {
        let target = place.sharding(self.ground.stage);
        let made = device_put_array(&self.entries[n].array, target, source);
        if let Some(array) = self.expect(n, made) {
            let values = self.entries[n].values.clone();
            if source == Source::Donate && self.is_consumed(n) {
                // Through the host it is a deletion, which is a loss as well.
                let life = match self.entries[n].array.to_string().contains("donated") {
                    true => Life::Donated,
                    false => Life::Deleted,
                };
                self.kill(n, life);
            }
            self.add(array, values, place);
        }
    }

    /// True if the runtime has made use of a donation, which a real one need not.
    fn is_consumed(&self, n: usize) -> bool {
        let is_dead = self.entries[n].array.is_deleted();
        assert!(is_dead || self.ground.dialect == Dialect::StableHlo);
        is_dead
    }

    fn shards(&mut self, n: usize) {
        let shards = self.entries[n].array.addressable_shards();
        let Some(shards) = self.expect(n, shards) else {
            return;
        };
        let Entry {
            values,
            place,
            buffers,
            ..
        } = &self.entries[n];
        let (values, place, buffers) = (values.clone(), *place, buffers.clone());
        assert_eq!(shards.len(), place.buffers());
        // The first and the last are enough to keep.
        for position in BTreeSet::from([0, shards.len() - 1]) {
            let shard = &shards[position];
            let device = usize::try_from(shard.device.id().0).unwrap();
            let own = match place {
                Place::Split(count) => {
                    let len = values.len() / count;
                    values[position * len..(position + 1) * len].to_vec()
                }
                Place::Single(_) | Place::Copies(_) => values.clone(),
            };
            let buffers = vec![buffers[position]];
            self.share(shard.data.clone(), own, Place::Single(device), buffers);
        }
    }

    /// The same array again, from its shards.
    fn assemble(&mut self, n: usize) {
        let Entry {
            array,
            values,
            place,
            buffers,
            sharding,
            ..
        } = &self.entries[n];
        if place.buffers() == 1 {
            return;
        }
        let Ok(shards) = array.addressable_shards() else {
            return;
        };
        let parts: Vec<Array> = shards.into_iter().map(|shard| shard.data).collect();
        let shape = array.shape().clone();
        let client = &self.ground.stage.client;
        let made = Array::from_single_device_arrays(client, shape, sharding.clone(), &parts);
        let (values, place, buffers) = (values.clone(), *place, buffers.clone());
        self.share(made.unwrap(), values, place, buffers);
    }

    fn call(&mut self, donate: bool, args: (usize, usize)) {
        let (Some(a), Some(b)) = (self.pick(args.0), self.pick(args.1)) else {
            return;
        };
        let place = self.entries[a].place;
        let len = self.entries[a].values.len();
        let program = self.ground.add(place, len, &self.entries[a].array);
        let (x, y) = (&self.entries[a], &self.entries[b]);
        let first = if donate {
            Arg::Donate(&x.array)
        } else {
            Arg::Reference(&x.array)
        };
        let result = program.execute(&[first, Arg::Reference(&y.array)]);
        for n in [a, b] {
            if self.dead(n).is_some() {
                self.expect(n, result);
                return;
            }
        }
        let shared = x.buffers.iter().any(|buffer| y.buffers.contains(buffer));
        if y.place != place || y.values.len() != len {
            assert!(result.is_err(), "{place:?} {:?}", y.place);
        } else if donate && shared {
            let error = result.unwrap_err();
            assert!(error.message().contains("`f(donate(a), a)`"), "{error}");
        } else {
            let sum: Vec<f32> = x.values.iter().zip(&y.values).map(|(x, y)| x + y).collect();
            let array = result.unwrap().remove(0);
            if donate && self.is_consumed(a) {
                self.kill(a, Life::Donated);
            }
            self.add(array, sum, place);
        }
    }

    /// What must hold after every command.
    fn check(&self) {
        let held = self.entries.iter().enumerate();
        let live: HashSet<usize> = held
            .filter(|(n, _)| self.dead(*n).is_none())
            .map(|(_, entry)| entry.identity)
            .collect();
        let reading = self.reads.len();
        let listed = self.ground.stage.client.live_arrays();
        // A read keeps its array; whether somebody else holds it is not looked at.
        assert!(listed.len() >= live.len() && listed.len() <= live.len() + reading);
        assert!(listed.iter().all(|array| !array.is_deleted()));
        for (n, entry) in self.entries.iter().enumerate() {
            let dead = self.dead(n);
            assert_eq!(
                entry.array.is_deleted(),
                dead.is_some(),
                "{:?}",
                entry.array
            );
            let word = match dead {
                None => "state: live",
                Some(DeadReason::Deleted) => "state: deleted",
                Some(DeadReason::Donated) => "state: donated",
            };
            assert!(
                format!("{:?}", entry.array).contains(word),
                "{:?}",
                entry.array
            );
            let len = entry.values.len();
            assert!(
                entry
                    .array
                    .to_string()
                    .starts_with(&format!("Array(float32[{len}]"))
            );
            assert_eq!(entry.array.sharding(), &entry.sharding);
            assert!(entry.array.is_committed() && !entry.array.weak_type());
        }
    }

    /// What must hold in the end: the living can be read, reads that were started are exact whatever
    /// happened to their arrays, and the runtime was asked once per handle and never for what it had
    /// consumed.
    fn finish(mut self, gate: Option<&Gate>) {
        for n in 0..self.entries.len() {
            self.apply(&Command::Read(n));
        }
        for (read, values) in std::mem::take(&mut self.reads) {
            assert_eq!(from_bytes(read.wait().unwrap().bytes().unwrap()), values);
        }
        self.entries.clear();
        if let Some(gate) = gate {
            gate.open();
        }
        let stage = self.ground.stage;
        assert_eq!(stage.client.live_arrays().len(), 0);
        stage.drain();
        check_handles(stage);
    }
}

fn check_handles(world: &Stage) {
    let mut asked: HashMap<u64, usize> = HashMap::new();
    let events = world.witness.events();
    for event in &events {
        if let Event::Delete(handle) | Event::DeleteTogether(handle) = event {
            *asked.entry(*handle).or_default() += 1;
        }
    }
    for event in &events {
        if let Event::Donated(handle) = event {
            assert_eq!(asked.get(handle), None, "{events:?}");
        }
    }
    assert!(asked.values().all(|count| *count == 1), "{events:?}");
}

/// Lets deletions go wrong in every way.
pub(crate) fn spoil(world: &World, seed: u64, percent: u8) -> Gate {
    let gate = Gate::new();
    let faults = [
        Fault::Slow(gate.clone()),
        Fault::Fail(Status::internal("broken")),
        Fault::Refuse(Status::unavailable("gone")),
        Fault::Never,
        Fault::DropPromise,
        Fault::Panic,
        Fault::AfterNext,
        Fault::Block(gate.clone()),
    ];
    world
        .fake
        .faults()
        .scatter(seed, percent, &[Op::Delete], &faults);
    gate
}

fn run(ground: &Ground<'_>, commands: &[Command], gate: Option<&Gate>) {
    let mut model = Model {
        ground,
        lives: Vec::new(),
        entries: Vec::new(),
        reads: Vec::new(),
        puts: 0,
        identities: 0,
    };
    model.put(Place::Single(0));
    model.put(Place::Split(8));
    for command in commands {
        model.apply(command);
        model.check();
    }
    model.finish(gate);
}

proptest! {
    #[test]
    fn arrays_behave_as_the_model(
        commands in proptest::collection::vec(command(), 1..40),
        seed in any::<u64>(),
        percent in prop_oneof![Just(0_u8), Just(50), Just(100)],
    ) {
        let world = World::new();
        let gate = spoil(&world, seed, percent);
        run(&Ground::new(&world, Dialect::Fake), &commands, Some(&gate));
        assert_eq!(world.fake.live_buffers(), 0);
        assert_eq!(world.fake.live_bytes(), 0);
    }

    #[test]
    fn arrays_on_the_plugin_behave_as_the_model(
        commands in proptest::collection::vec(command(), 1..40),
    ) {
        ON_CPU.with(|(world, ground)| {
            world.stage.witness.forget();
            run(ground, &commands, None);
            world.wait_until_empty();
        });
    }
}

/// A case over a server takes ten times as long, so there are a tenth of them.
fn far_cases() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig {
        cases: (config.cases / 10).max(1),
        ..config
    }
}

proptest! {
    #![proptest_config(far_cases())]

    #[test]
    fn arrays_on_a_server_behave_as_the_model(
        commands in proptest::collection::vec(command(), 1..40),
        seed in any::<u64>(),
        percent in prop_oneof![Just(0_u8), Just(50), Just(100)],
    ) {
        FAR.with(|(world, ground)| {
            world.witness.forget();
            world.fake.faults().clear();
            let gate = spoil(world, seed, percent);
            run(ground, &commands, Some(&gate));
            world.wait_until_empty();
        });
    }
}

thread_local! {
    /// A server is worth keeping for the next case.
    static FAR: (&'static World, &'static Ground<'static>) = {
        let world: &World = Box::leak(Box::new(World::far()));
        (world, Box::leak(Box::new(Ground::new(world, Dialect::Fake))))
    };

    /// Compiled programs are worth keeping for the next case.
    static ON_CPU: (&'static CpuWorld, Ground<'static>) = {
        let world: &CpuWorld = Box::leak(Box::new(CpuWorld::new()));
        (world, Ground::new(&world.stage, Dialect::StableHlo))
    };
}
