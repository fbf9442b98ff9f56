//! Arrays against a model: any sequence of operations, over a runtime whose deletions go wrong in
//! every way.
//!
//! `PROPTEST_CASES` sets the number of cases.

mod threads;

use std::collections::HashMap;

use ifrt::Status;
use ifrt::fake::fault::{Fault, Gate, Op};
use jaxlib_core::{
    Arg, Array, DeadReason, Kind, LoadedExecutable, Sharding, Source, device_put_array,
};
use proptest::prelude::*;

use crate::support::{World, read};
use crate::witness::Event;

/// Where an array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Single(usize),
    Copies(usize),
    Split(usize),
}

impl Place {
    fn sharding(self, world: &World) -> Sharding {
        match self {
            Self::Single(device) => world.device(device),
            Self::Copies(count) => world.copies(count).into(),
            Self::Split(count) => world.split(count).into(),
        }
    }

    fn buffers(self) -> usize {
        match self {
            Self::Single(_) => 1,
            Self::Copies(count) | Self::Split(count) => count,
        }
    }

    fn module(self, len: usize) -> String {
        let spread = match self {
            Self::Single(_) | Self::Copies(_) => "replicated".to_owned(),
            Self::Split(count) => format!("tiled[{count}]"),
        };
        format!(
            "fake:add(f32[{len}] {spread} donated, f32[{len}] {spread}) -> (f32[{len}] {spread})"
        )
    }
}

/// Arrays are chosen by a number modulo how many there are.
#[derive(Clone, Debug)]
enum Command {
    Put(Place),
    Call { donate: bool, args: (usize, usize) },
    Clone(usize),
    Alias(usize),
    Copy(usize),
    Move(usize, Place),
    DonateTo(usize, Place),
    Shards(usize),
    Assemble(usize),
    Read(usize),
    Wait(usize),
    Delete(usize),
    DeleteAll(Vec<usize>),
    Drop(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Live,
    Deleted,
    Donated,
}

/// An array and what the model knows about it.
struct Entry {
    array: Array,
    values: Vec<f32>,
    place: Place,
    buffers: Vec<usize>,
    sharding: Sharding,
}

struct Model {
    world: World,
    lives: Vec<Life>,
    entries: Vec<Entry>,
    programs: HashMap<(Place, usize), LoadedExecutable>,
    puts: u16,
}

impl Model {
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
        self.entries.push(Entry {
            array,
            values,
            place,
            buffers,
            sharding,
        });
    }

    fn put(&mut self, place: Place) {
        self.puts += 1;
        let values: Vec<f32> = (0..8).map(|n| f32::from(8 * self.puts + n)).collect();
        let array = self.world.put(&values, place.sharding(&self.world));
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
                let Entry {
                    array,
                    values,
                    place,
                    buffers,
                    ..
                } = &model.entries[n];
                let (array, values, place) = (array.clone(), values.clone(), *place);
                let buffers = buffers.clone();
                model.share(array, values, place, buffers);
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
        let target = place.sharding(&self.world);
        let made = device_put_array(&self.entries[n].array, target, source);
        if let Some(array) = self.expect(n, made) {
            let values = self.entries[n].values.clone();
            if source == Source::Donate {
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
        for position in [0, shards.len() - 1] {
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
        } = &self.entries[n];
        if place.buffers() == 1 {
            return;
        }
        let Ok(shards) = array.addressable_shards() else {
            return;
        };
        let parts: Vec<Array> = shards.into_iter().map(|shard| shard.data).collect();
        let shape = array.shape().clone();
        let client = &self.world.client;
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
        let program = self.programs.entry((place, len)).or_insert_with(|| {
            self.world
                .compile_for(&place.module(len), &self.entries[a].array)
        });
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
            if donate {
                self.kill(a, Life::Donated);
            }
            self.add(array, sum, place);
        }
    }

    /// What must hold after every command.
    fn check(&self) {
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

    /// What must hold in the end: the living can be read, the runtime was asked once per handle and
    /// never for what it had consumed, and no memory is left.
    fn finish(mut self, gate: &Gate) {
        for n in 0..self.entries.len() {
            self.apply(&Command::Read(n));
        }
        self.entries.clear();
        gate.open();
        self.world.drain();
        check_handles(&self.world);
        assert_eq!(self.world.fake.live_buffers(), 0);
        assert_eq!(self.world.fake.live_bytes(), 0);
    }
}

fn check_handles(world: &World) {
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
fn spoil(world: &World, seed: u64, percent: u8) -> Gate {
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

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        (0_usize..3).prop_map(Place::Single),
        Just(Place::Copies(2)),
        Just(Place::Split(2)),
        Just(Place::Split(8)),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    let array = || 0_usize..1000;
    prop_oneof![
        4 => place().prop_map(Command::Put),
        4 => (any::<bool>(), (array(), array()))
            .prop_map(|(donate, args)| Command::Call { donate, args }),
        1 => array().prop_map(Command::Clone),
        2 => array().prop_map(Command::Alias),
        1 => array().prop_map(Command::Copy),
        2 => (array(), place()).prop_map(|(n, place)| Command::Move(n, place)),
        1 => (array(), place()).prop_map(|(n, place)| Command::DonateTo(n, place)),
        2 => array().prop_map(Command::Shards),
        1 => array().prop_map(Command::Assemble),
        2 => array().prop_map(Command::Read),
        1 => array().prop_map(Command::Wait),
        4 => array().prop_map(Command::Delete),
        1 => proptest::collection::vec(array(), 0..4).prop_map(Command::DeleteAll),
        2 => array().prop_map(Command::Drop),
    ]
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
        let mut model = Model {
            world,
            lives: Vec::new(),
            entries: Vec::new(),
            programs: HashMap::new(),
            puts: 0,
        };
        model.put(Place::Single(0));
        model.put(Place::Split(8));
        for command in &commands {
            model.apply(command);
            model.check();
        }
        model.finish(&gate);
    }
}
