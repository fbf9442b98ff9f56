//! NEW-16: random remap plans never panic, and valid ones do what a naive copy does.

use std::sync::Arc;

use ifrt::ArrayCopySemantics::{DonateInput, ReuseInput};
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::remap_plan::{InputDevices, Interval, Mapping};
use ifrt::{
    ArrayRef, ArraySpec, Client, DType, HostBuffer, HostData, MemoryKind, RemapPlan, Sharding,
    ShardingKind,
};
use proptest::prelude::*;

use crate::support::*;

const DEVICES: usize = 5;

fn fixture() -> Arc<FakeClient> {
    FakeClient::new(FakeOptions::fixture(DEVICES, 4))
}

/// Shards of `[1, width]` on these devices.
fn spec(client: &FakeClient, dtype: DType, positions: &[usize], width: i64) -> ArraySpec {
    let shape = shape(&[i64::try_from(positions.len()).unwrap(), width]);
    let kind = ShardingKind::ConcreteEven {
        shape: shape.clone(),
        shard_shape: crate::support::shape(&[1, width]),
        is_fully_replicated: false,
    };
    let devices = devices(client, positions);
    let sharding = Sharding::new(kind, devices, MemoryKind::default()).unwrap();
    ArraySpec {
        dtype,
        shape,
        sharding: Arc::new(sharding),
        layout: None,
    }
}

#[derive(Clone, Debug)]
struct RawSpec {
    positions: Vec<usize>,
    is_float: bool,
    width: i64,
}

impl RawSpec {
    fn resolve(&self, client: &FakeClient) -> ArraySpec {
        let dtype = if self.is_float {
            DType::F32
        } else {
            DType::S32
        };
        spec(client, dtype, &self.positions, self.width)
    }
}

fn raw_spec() -> impl Strategy<Value = RawSpec> {
    let positions = prop::collection::vec(0..DEVICES, 1..4);
    (positions, any::<bool>(), 0..3_i64).prop_map(|(positions, is_float, width)| RawSpec {
        positions,
        is_float,
        width,
    })
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => -2..6_i64,
        1 => any::<i64>(),
        1 => prop::sample::select(vec![i64::MIN, i64::MAX, i64::MAX - 1, i64::MIN + 1]),
    ]
}

fn interval() -> impl Strategy<Value = Interval> {
    (number(), number(), number()).prop_map(|(start, end, step)| Interval { start, end, step })
}

fn mapping() -> impl Strategy<Value = Mapping> {
    let intervals = || prop::collection::vec(interval(), 0..4);
    (0..4_usize, 0..4_usize, intervals(), intervals()).prop_map(
        |(in_array, out_array, from, to)| Mapping {
            in_array,
            out_array,
            from,
            to,
        },
    )
}

proptest! {
    #[test]
    fn new_16_any_plan_is_checked_without_panic(
        inputs in prop::collection::vec(raw_spec(), 0..3),
        outputs in prop::collection::vec(raw_spec(), 0..3),
        mappings in prop::collection::vec(mapping(), 0..4),
        listed in prop::collection::vec((0..4_usize, 0..4_usize, 0..DEVICES), 0..3),
    ) {
        let client = fixture();
        let resolve = |specs: &[RawSpec]| specs.iter().map(|one| one.resolve(&client)).collect();
        let mut plan = RemapPlan::new(resolve(&inputs), resolve(&outputs), mappings);
        for (output, in_array, position) in listed {
            let inputs = plan.input_devices_for_output_map.entry(output).or_default();
            let devices = devices(&client, &[position]);
            inputs.push(InputDevices { in_array, devices });
        }
        let valid = plan.validate();
        prop_assert_eq!(plan.sources().is_ok(), valid.is_ok());
        drop((plan.to_string(), plan.check_copy_semantics(ReuseInput)));
        let plain = RemapPlan::new(plan.input_specs, plan.output_specs, plan.mappings);
        let made = RemapPlan::create_optimized(
            plain.input_specs.clone(),
            plain.output_specs.clone(),
            plain.mappings.clone(),
        );
        // An optimized plan adds the rule that an output takes a device from an input only once.
        prop_assert!(plain.validate().is_ok() || made.is_err());
        if let Ok(made) = made {
            prop_assert_eq!(made.validate(), Ok(()));
            prop_assert_eq!(made.sources(), plain.sources());
        }
    }
}

/// Which input shard goes where: one list of `(input, shard)` per output.
type Moves = Vec<Vec<(usize, usize)>>;

/// Inputs by the devices of their shards, and outputs made of shards that are used once.
#[derive(Clone, Debug)]
struct Valid {
    inputs: Vec<Vec<usize>>,
    moves: Moves,
    width: i64,
}

fn valid() -> impl Strategy<Value = Valid> {
    let input = Just((0..4_usize).collect::<Vec<_>>())
        .prop_shuffle()
        .prop_flat_map(|all| (Just(all), 1..=4_usize))
        .prop_map(|(mut all, count)| {
            all.truncate(count);
            all
        });
    prop::collection::vec(input, 1..4)
        .prop_flat_map(|inputs| {
            let shards: Vec<(usize, usize)> = inputs
                .iter()
                .enumerate()
                .flat_map(|(array, input)| (0..input.len()).map(move |shard| (array, shard)))
                .collect();
            let count = shards.len();
            let outputs = prop::collection::vec(0..4_usize, count);
            (Just(inputs), Just(shards).prop_shuffle(), outputs, 0..4_i64)
        })
        .prop_map(|(inputs, shards, outputs, width)| {
            let mut moves: Moves = vec![Vec::new(); 3];
            for (shard, output) in shards.into_iter().zip(outputs) {
                // Number three means that nobody takes the shard.
                if let Some(output) = moves.get_mut(output) {
                    output.push(shard);
                }
            }
            moves.retain(|output| !output.is_empty());
            if moves.is_empty() {
                moves.push(vec![(0, 0)]);
            }
            Valid {
                inputs,
                moves,
                width,
            }
        })
}

/// Runs of equal distance become one interval.
fn intervals(shards: &[(usize, usize)]) -> (Vec<Interval>, Vec<Interval>) {
    let (mut from, mut to) = (Vec::new(), Vec::new());
    let mut rest = shards;
    while let Some((first, _)) = rest.split_first() {
        let step = |at: usize| {
            let (here, next) = (rest.get(at)?, rest.get(at + 1)?);
            let by = (next.0.checked_sub(here.0)?, next.1.checked_sub(here.1)?);
            (by.0 > 0 && by.1 > 0).then_some(by)
        };
        let by = step(0).unwrap_or((1, 1));
        let count = 1
            + (0..rest.len())
                .take_while(|at| step(*at) == Some(by))
                .count();
        let interval = |start: usize, by: usize| {
            let number = |n: usize| i64::try_from(n).unwrap();
            Interval {
                start: number(start),
                end: number(start + (count - 1) * by + 1),
                step: number(by),
            }
        };
        from.push(interval(first.0, by.0));
        to.push(interval(first.1, by.1));
        rest = &rest[count..];
    }
    (from, to)
}

fn mappings(moves: &Moves) -> Vec<Mapping> {
    let mut mappings = Vec::new();
    for (out_array, output) in moves.iter().enumerate() {
        for in_array in 0..3 {
            let numbered = output.iter().enumerate();
            let own = numbered.filter(|(_, (array, _))| *array == in_array);
            let shards: Vec<(usize, usize)> = own.map(|(to, (_, from))| (*from, to)).collect();
            if shards.is_empty() {
                continue;
            }
            let (from, to) = intervals(&shards);
            mappings.push(Mapping {
                in_array,
                out_array,
                from,
                to,
            });
        }
    }
    mappings
}

/// Shard `s` of array `a` holds `100 a + 10 s`, `100 a + 10 s + 1`, …
fn values(array: usize, shard: usize, width: i64) -> Vec<f32> {
    let base = 100 * array + 10 * shard;
    (0..width).map(|n| base as f32 + n as f32).collect()
}

fn make(client: &FakeClient, array: usize, spec: &ArraySpec, width: i64) -> ArrayRef {
    let buffers = (0..spec.sharding.devices().len()).map(|shard| {
        let data = bytes_of(&values(array, shard, width));
        HostBuffer::dense(HostData::Shared(data), spec.dtype, shape(&[1, width]))
    });
    let arrays = vec![shards(spec.clone(), buffers)];
    client
        .make_arrays_from_host_buffer_shards(arrays)
        .unwrap()
        .remove(0)
}

proptest! {
    #[test]
    fn new_16_valid_plans_do_what_a_naive_copy_does(valid in valid()) {
        let client = fixture();
        let Valid { inputs, moves, width } = &valid;
        let spec = |positions: &[usize]| spec(&client, DType::F32, positions, *width);
        let input_specs: Vec<ArraySpec> = inputs.iter().map(|input| spec(input)).collect();
        let output_specs: Vec<ArraySpec> = moves
            .iter()
            .map(|output| {
                let positions = output.iter().map(|(array, shard)| inputs[*array][*shard]);
                spec(&positions.collect::<Vec<_>>())
            })
            .collect();
        let plan = RemapPlan::new(input_specs.clone(), output_specs.clone(), mappings(moves));
        prop_assert_eq!(plan.validate(), Ok(()));
        prop_assert_eq!(plan.sources(), Ok(moves.clone()));
        let optimized =
            RemapPlan::create_optimized(input_specs.clone(), output_specs, mappings(moves)).unwrap();
        let donated_only = plan.check_copy_semantics(ReuseInput).is_err();
        for plan in [&plan, &optimized] {
            for copy in [ReuseInput, DonateInput] {
                let specs = input_specs.iter().enumerate();
                let arrays: Vec<ArrayRef> =
                    specs.map(|(array, spec)| make(&client, array, spec, *width)).collect();
                let outputs = client.remap_arrays(plan, &arrays, copy);
                if copy == ReuseInput && donated_only {
                    prop_assert!(outputs.is_err());
                    continue;
                }
                let outputs = outputs.unwrap();
                prop_assert!(arrays.iter().all(|array| array.is_deleted() == (copy == DonateInput)));
                for (output, sources) in outputs.iter().zip(moves) {
                    let naive: Vec<Vec<f32>> = sources
                        .iter()
                        .map(|(array, shard)| values(*array, *shard, *width))
                        .collect();
                    prop_assert_eq!(read_shards(output).unwrap(), naive);
                }
                // What nobody took is gone with the inputs.
                drop(arrays);
                let taken: usize = moves.iter().map(Vec::len).sum();
                prop_assert_eq!(client.live_buffers(), taken);
            }
        }
    }
}
