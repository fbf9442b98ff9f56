//! Deletion under random operations and faults, against a model.
//!
//! The model knows which array holds which buffers and which buffers live. Gates stay closed while
//! the operations run, so an operation that waited for the runtime would hang the test.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};

use ifrt::fake::FakeClient;
use ifrt::fake::fault::{Fault, Gate, Op};
use ifrt::value::READY_ON_DELETED;
use ifrt::{
    ArrayCopySemantics, ArrayRef, Completion, ExecuteOptions, HostValue, LoadedExecutableRef,
    Result, ShardSemantics, Status,
};
use proptest::prelude::*;

use crate::support::*;

const VALUES: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

fn boom() -> Status {
    Status::internal("boom")
}

/// The faults with which every call returns; a deletion that blocks its caller has tests of its own.
fn faults(gate: &Gate) -> [Fault; 5] {
    [
        Fault::Slow(gate.clone()),
        Fault::Fail(boom()),
        Fault::Never,
        Fault::DropPromise,
        Fault::AfterNext,
    ]
}

/// True for the errors that the faults above cause.
fn is_injected(status: &Status) -> bool {
    *status == boom() || status.message() == "Promise destroyed without being set"
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Make {
        replicas: usize,
    },
    /// A single-device array of one shard.
    Piece {
        array: usize,
        shard: usize,
    },
    /// Another array of the same buffers.
    Share(usize),
    Delete(usize),
    Read(usize),
    Ready(usize),
    Donate(usize),
    Drop(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let array = 0..8_usize;
    prop_oneof![
        3 => (1..4_usize).prop_map(|replicas| Action::Make { replicas }),
        2 => (array.clone(), 0..3_usize).prop_map(|(array, shard)| Action::Piece { array, shard }),
        1 => array.clone().prop_map(Action::Share),
        4 => array.clone().prop_map(Action::Delete),
        3 => array.clone().prop_map(Action::Read),
        1 => array.clone().prop_map(Action::Ready),
        2 => array.clone().prop_map(Action::Donate),
        1 => array.prop_map(Action::Drop),
    ]
}

struct Held {
    array: ArrayRef,
    /// Buffers by number; the same number means a shared buffer.
    buffers: Vec<usize>,
    deletions: Vec<Completion>,
    /// Deleted or donated itself, which shows even without living buffers.
    gone: bool,
}

struct World {
    client: Arc<FakeClient>,
    donor: LoadedExecutableRef,
    held: Vec<Held>,
    /// Whether each buffer lives.
    alive: Vec<bool>,
    /// Every deletion completion, by array.
    deletions: Vec<Vec<Completion>>,
    /// Reads of live arrays.
    reads: Vec<Completion<HostValue>>,
    asked: BTreeSet<usize>,
    /// How many of these the runtime may not have heard of, because it panicked before.
    unheard: u64,
}

impl World {
    /// `of_delete` are further faults of deletions.
    fn new(seed: u64, percent: u8, gate: &Gate, of_delete: &[Fault]) -> Self {
        let client = client();
        let module = "fake:identity(f32[4] donated) -> (f32[4])";
        let donor = wait(&compile(&client, module, None)).unwrap();
        let ops = [
            Op::Delete,
            Op::CopyToHost,
            Op::Ready,
            Op::Execute,
            Op::MakeArray,
        ];
        client.faults().scatter(seed, percent, &ops, &faults(gate));
        client
            .faults()
            .scatter(!seed, percent / 2, &[Op::Delete], of_delete);
        Self {
            client,
            donor,
            held: Vec::new(),
            alive: Vec::new(),
            deletions: Vec::new(),
            reads: Vec::new(),
            asked: BTreeSet::new(),
            unheard: 0,
        }
    }

    fn hold(&mut self, array: ArrayRef, buffers: Vec<usize>) {
        self.held.push(Held {
            array,
            buffers,
            deletions: Vec::new(),
            gone: false,
        });
    }

    fn is_dead(&self, index: usize) -> bool {
        let held = &self.held[index];
        held.gone || held.buffers.iter().any(|buffer| !self.alive[*buffer])
    }

    fn act(&mut self, action: Action) -> Result<(), TestCaseError> {
        let count = self.held.len();
        let at = |index: usize| index % count.max(1);
        match action {
            Action::Make { replicas } => {
                let positions: Vec<usize> = (0..replicas).collect();
                let sharding = replicated(&self.client, &positions);
                let array = array_of(&self.client, &VALUES, &[4], &sharding);
                let first = self.alive.len();
                self.alive.extend(vec![true; replicas]);
                self.hold(array, (first..first + replicas).collect());
            }
            _ if count == 0 => {}
            Action::Piece { array, shard } => {
                let index = at(array);
                let copy = ArrayCopySemantics::ReuseInput;
                let pieces = self.held[index]
                    .array
                    .disassemble(copy, ShardSemantics::Addressable);
                prop_assert_eq!(pieces.is_err(), self.is_dead(index));
                if let Ok(mut pieces) = pieces {
                    let shard = shard % pieces.len();
                    let buffer = self.held[index].buffers[shard];
                    self.hold(pieces.swap_remove(shard), vec![buffer]);
                }
            }
            Action::Share(array) => {
                let index = at(array);
                let copy = ArrayCopySemantics::ReuseInput;
                let one = [Arc::clone(&self.held[index].array)];
                let shared = ifrt::Client::copy_arrays(&*self.client, &one, None, None, copy);
                prop_assert_eq!(shared.is_err(), self.is_dead(index));
                if let Ok(mut shared) = shared {
                    let buffers = self.held[index].buffers.clone();
                    self.hold(shared.remove(0), buffers);
                }
            }
            Action::Delete(array) => {
                let held = &mut self.held[at(array)];
                let deletion = catch_unwind(AssertUnwindSafe(|| held.array.delete()));
                prop_assert!(held.array.is_deleted(), "at once");
                match deletion {
                    Ok(deletion) => held.deletions.push(deletion),
                    Err(_) => self.unheard += held.buffers.len() as u64,
                }
                held.gone = true;
                for buffer in &held.buffers {
                    if std::mem::replace(&mut self.alive[*buffer], false) {
                        self.asked.insert(*buffer);
                    }
                }
            }
            Action::Read(array) => {
                let index = at(array);
                let dead = self.is_dead(index);
                let read = self.held[index].array.copy_to_host(None);
                if dead {
                    let error = wait(&read).unwrap_err();
                    let text = "CopyToHostBuffer() called on deleted or donated buffer";
                    prop_assert_eq!(error.message(), text);
                } else {
                    self.reads.push(read);
                }
            }
            Action::Ready(array) => {
                let index = at(array);
                let ready = self.held[index].array.ready();
                let expected = Status::invalid_argument(READY_ON_DELETED);
                let found = ready.peek() == Some(Err(expected));
                prop_assert_eq!(found, self.is_dead(index));
            }
            Action::Donate(array) => {
                let index = at(array);
                let arg = Arc::clone(&self.held[index].array);
                // The program runs on the first device only.
                let fits = arg.sharding().devices() == &devices(&self.client, &[0]);
                let result = self.donor.execute(&[arg], &ExecuteOptions::default(), None);
                prop_assert_eq!(result.is_ok(), fits && !self.is_dead(index));
                if let Ok(mut result) = result {
                    self.held[index].gone = true;
                    let buffer = self.held[index].buffers[0];
                    self.alive[buffer] = false;
                    let output = self.alive.len();
                    self.alive.push(true);
                    self.hold(result.outputs.remove(0), vec![output]);
                }
            }
            Action::Drop(array) => {
                let index = at(array);
                let held = self.held.swap_remove(index);
                self.deletions.push(held.deletions);
            }
        }
        self.check()
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let mut live: BTreeSet<usize> = BTreeSet::new();
        for (index, held) in self.held.iter().enumerate() {
            prop_assert_eq!(held.array.is_deleted(), self.is_dead(index));
            let buffers = held.buffers.iter().copied();
            live.extend(buffers.filter(|buffer| self.alive[*buffer]));
        }
        prop_assert_eq!(self.client.live_buffers(), live.len());
        prop_assert_eq!(self.client.live_bytes(), 16 * live.len() as u64);
        let counts = self.client.delete_counts();
        let asked = self.asked.len() as u64;
        prop_assert!(counts.total <= asked && counts.total + self.unheard >= asked);
        prop_assert!(counts.most_of_one_buffer <= 1);
        Ok(())
    }

    /// After the gate was opened.
    fn check_results(mut self) -> Result<(), TestCaseError> {
        let kept = self.held.drain(..).map(|held| held.deletions);
        for deletions in self.deletions.drain(..).chain(kept) {
            let results: Vec<_> = deletions.iter().map(Completion::peek).collect();
            prop_assert!(
                results.windows(2).all(|pair| pair[0] == pair[1]),
                "{results:?}"
            );
            for result in results.into_iter().flatten() {
                prop_assert!(
                    result.as_ref().map_or_else(is_injected, |()| true),
                    "{result:?}"
                );
            }
        }
        for read in self.reads.drain(..) {
            match read.peek() {
                Some(Ok(value)) => {
                    let bytes = value.into_bytes().unwrap();
                    prop_assert_eq!(floats_of(&bytes), VALUES, "the data from before");
                }
                Some(Err(status)) => prop_assert!(is_injected(&status), "{status}"),
                None => {} // Never, or the data never came.
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn one_thread(
        seed: u64,
        percent in 0..=100_u8,
        actions in prop::collection::vec(action(), 1..40),
    ) {
        let gate = Gate::new();
        let mut world = World::new(seed, percent, &gate, &[Fault::Refuse(boom()), Fault::Panic]);
        let plan = world.client.faults().clone();
        for action in actions {
            let acted = world.act(action);
            prop_assert!(acted.is_ok(), "{action:?}: {acted:?}\n{plan}");
        }
        gate.open();
        let checked = world.check_results();
        prop_assert!(checked.is_ok(), "{checked:?}\n{plan}");
    }
}

/// What a thread does to the shared arrays.
#[derive(Clone, Copy, Debug)]
enum Step {
    Delete(usize),
    Read(usize),
    Donate(usize),
    Look(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let array = 0..SHARED;
    prop_oneof![
        array.clone().prop_map(Step::Delete),
        array.clone().prop_map(Step::Read),
        array.clone().prop_map(Step::Donate),
        array.prop_map(Step::Look),
    ]
}

const SHARED: usize = 3;

/// What a thread saw, by array.
#[derive(Default)]
struct Seen {
    deletions: Vec<Completion>,
    donated: usize,
    wrong: Vec<String>,
}

fn run_steps(arrays: &[ArrayRef], donor: &LoadedExecutableRef, steps: &[Step]) -> Vec<Seen> {
    let mut seen: Vec<Seen> = arrays.iter().map(|_| Seen::default()).collect();
    let mut gone = [false; SHARED];
    for step in steps {
        match *step {
            Step::Delete(index) => {
                seen[index].deletions.push(arrays[index].delete());
                gone[index] = true;
            }
            Step::Read(index) => {
                let read = arrays[index].copy_to_host(None);
                if gone[index] && !matches!(read.peek(), Some(Err(_))) {
                    seen[index]
                        .wrong
                        .push(format!("{step:?} after the end: {read:?}"));
                }
            }
            Step::Donate(index) => {
                let args = [Arc::clone(&arrays[index])];
                let result = donor.execute(&args, &ExecuteOptions::default(), None);
                if result.is_ok() {
                    seen[index].donated += 1;
                    if gone[index] {
                        seen[index].wrong.push("donated after the end".to_owned());
                    }
                }
                gone[index] = true;
            }
            Step::Look(index) => {
                let deleted = arrays[index].is_deleted();
                gone[index] |= deleted;
            }
        }
        for (index, gone) in gone.iter().enumerate() {
            if *gone && !arrays[index].is_deleted() {
                seen[index]
                    .wrong
                    .push(format!("alive again after {step:?}"));
            }
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn several_threads(
        seed: u64,
        percent in 0..=100_u8,
        steps in prop::collection::vec(prop::collection::vec(step(), 1..12), 2..=8),
    ) {
        let gate = Gate::new();
        let world = World::new(seed, percent, &gate, &[Fault::Refuse(boom())]);
        let sharding = single(&world.client, 0);
        let arrays: Vec<ArrayRef> = (0..SHARED)
            .map(|_| array_of(&world.client, &VALUES, &[4], &sharding))
            .collect();
        let barrier = Barrier::new(steps.len());
        let seen: Vec<Vec<Seen>> = std::thread::scope(|scope| {
            let run = |steps: &Vec<Step>| {
                let (barrier, arrays, donor) = (&barrier, &arrays, &world.donor);
                let steps = steps.clone();
                scope.spawn(move || {
                    barrier.wait();
                    run_steps(arrays, donor, &steps)
                })
            };
            let threads: Vec<_> = steps.iter().map(run).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        gate.open();
        let plan = world.client.faults();
        for (index, array) in arrays.iter().enumerate() {
            let of_array = || seen.iter().map(|thread| &thread[index]);
            let wrong: Vec<_> = of_array().flat_map(|one| &one.wrong).collect();
            prop_assert!(wrong.is_empty(), "{wrong:?}\n{plan}");
            let results: Vec<_> = of_array()
                .flat_map(|one| &one.deletions)
                .map(Completion::peek)
                .collect();
            prop_assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{results:?}\n{plan}");
            let donated: usize = of_array().map(|one| one.donated).sum();
            prop_assert!(donated <= 1, "donated {donated} times\n{plan}");
            let gone = donated > 0 || !results.is_empty();
            prop_assert_eq!(array.is_deleted(), gone, "{}", plan);
        }
        let counts = world.client.delete_counts();
        prop_assert!(counts.most_of_one_buffer <= 1, "{counts:?}\n{plan}");
        let live = arrays.iter().filter(|array| !array.is_deleted()).count();
        prop_assert_eq!(world.client.live_buffers(), live, "outputs were dropped; {}", plan);
    }
}
