//! RP: the rules of a remap plan, on four devices with shards of `[2,3]`.

use std::sync::Arc;

use super::super::InputDevices;
use super::*;
use crate::array::ArrayCopySemantics::{DonateInput, ReuseInput};
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::fake::{FakeClient, FakeOptions};
use crate::layout::Layout;
use crate::memory::MemoryKind;
use crate::shape::Shape;
use crate::sharding::{Sharding, ShardingKind};
use crate::status::Code;
use crate::{Client, RemapPlan};

fn client() -> Arc<FakeClient> {
    FakeClient::new(FakeOptions::fixture(4, 4))
}

fn devices(client: &FakeClient, positions: &[usize]) -> DeviceList {
    let devices = client.devices();
    positions
        .iter()
        .map(|position| Arc::clone(&devices[*position]))
        .collect()
}

/// One shard of `[2,3]` per device, one below the other.
fn spec_on(client: &FakeClient, dtype: DType, positions: &[usize]) -> ArraySpec {
    let rows = 2 * i64::try_from(positions.len()).unwrap();
    let shape = Shape::new([rows, 3]).unwrap();
    let kind = ShardingKind::ConcreteEven {
        shape: shape.clone(),
        shard_shape: Shape::new([2, 3]).unwrap(),
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

fn spec(positions: &[usize]) -> ArraySpec {
    spec_on(&client(), DType::S32, positions)
}

fn interval(start: i64, end: i64, step: i64) -> Interval {
    Interval { start, end, step }
}

fn mapping(in_array: usize, out_array: usize, from: Interval, to: Interval) -> Mapping {
    Mapping {
        in_array,
        out_array,
        from: vec![from],
        to: vec![to],
    }
}

/// The first shard becomes the first shard.
fn first(in_array: usize, out_array: usize) -> Mapping {
    mapping(in_array, out_array, interval(0, 1, 1), interval(0, 1, 1))
}

fn plan(inputs: &[&ArraySpec], outputs: &[&ArraySpec], mappings: &[Mapping]) -> RemapPlan {
    let own = |specs: &[&ArraySpec]| specs.iter().copied().cloned().collect();
    RemapPlan::new(own(inputs), own(outputs), mappings.to_vec())
}

fn optimized(plan: RemapPlan) -> Result<RemapPlan> {
    RemapPlan::create_optimized(plan.input_specs, plan.output_specs, plan.mappings)
}

#[track_caller]
fn invalid_with<T: std::fmt::Debug>(result: Result<T>, text: &str) {
    let status = result.expect_err("the plan should have been refused");
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(
        status.message().contains(text),
        "{status} does not contain {text:?}"
    );
}

/// Both ways to check a plan must say the same.
#[track_caller]
fn refused(plan: RemapPlan, text: &str) {
    invalid_with(plan.validate(), text);
    invalid_with(plan.sources(), text);
    invalid_with(optimized(plan), text);
}

#[test]
fn rp_01_no_mapping() {
    let one = spec(&[0]);
    refused(
        plan(&[&one, &one], &[], &[]),
        "Must have at least one mapping",
    );
    refused(
        plan(&[], &[&one], &[first(0, 0)]),
        "Must have at least one input",
    );
}

#[test]
fn rp_02_two_dtypes_change_places() {
    let client = client();
    let (ints, floats) = (
        spec_on(&client, DType::S32, &[0]),
        spec_on(&client, DType::F32, &[0]),
    );
    let swapped = plan(
        &[&ints, &floats],
        &[&floats, &ints],
        &[first(0, 1), first(1, 0)],
    );
    assert_eq!(swapped.sources(), Ok(vec![vec![(1, 0)], vec![(0, 0)]]));
    assert!(optimized(swapped).is_ok());
}

#[test]
fn rp_03_04_dtypes_differ() {
    let client = client();
    let (ints, floats) = (
        spec_on(&client, DType::S32, &[0]),
        spec_on(&client, DType::F32, &[0]),
    );
    let text = "Input and output must have the same dtype";
    refused(plan(&[&ints], &[&floats], &[first(0, 0)]), text);
    let both = spec_on(&client, DType::F32, &[0, 0]);
    let second = mapping(0, 0, interval(0, 1, 1), interval(1, 2, 1));
    refused(
        plan(&[&ints, &floats], &[&both], &[first(1, 0), second]),
        text,
    );
}

#[test]
fn rp_05_06_layouts() {
    let with = |text: &str| ArraySpec {
        layout: Some(Layout::parse(text).unwrap()),
        ..spec(&[0])
    };
    let text = "Input and output must have the same layout";
    let (descending, ascending) = (with("{1,0}"), with("{0,1}"));
    refused(plan(&[&descending], &[&ascending], &[first(0, 0)]), text);
    refused(plan(&[&descending], &[&spec(&[0])], &[first(0, 0)]), text);
    let same = plan(&[&descending], &[&with("{1,0}")], &[first(0, 0)]);
    assert_eq!(same.validate(), Ok(()));
}

#[test]
fn rp_07_08_arrays_that_do_not_exist() {
    let one = spec(&[0]);
    refused(
        plan(&[&one], &[&one], &[first(1, 0)]),
        "mappings[0].in_array must be in [0, 0], but is 1",
    );
    refused(
        plan(&[&one], &[&one], &[first(0, 1)]),
        "mappings[0].out_array must be in [0, 0], but is 1",
    );
    refused(
        plan(&[&one], &[&one], &[first(0, 0), first(usize::MAX, 0)]),
        "mappings[1].in_array must be in [0, 0], but is 18446744073709551615",
    );
}

#[test]
fn rp_09_as_many_intervals_on_both_sides() {
    let two = spec(&[0, 1]);
    let uneven = Mapping {
        in_array: 0,
        out_array: 0,
        from: vec![interval(0, 1, 1), interval(1, 2, 1)],
        to: vec![interval(0, 2, 1)],
    };
    refused(
        plan(&[&two], &[&two], &[uneven]),
        "mappings[0].from and mappings[0].to must have the same number of intervals, but has 2 \
         and 1 intervals",
    );
}

/// The bad interval on either side of a plan over so many shards.
#[track_caller]
fn bad_interval(shards: usize, bad: Interval, text: &str) {
    let positions: Vec<usize> = (0..shards).collect();
    let array = spec(&positions);
    let whole = interval(0, i64::try_from(shards).unwrap(), 1);
    for (from, to) in [(bad, whole), (whole, bad)] {
        refused(plan(&[&array], &[&array], &[mapping(0, 0, from, to)]), text);
    }
}

#[test]
fn rp_10_starts_and_ends() {
    bad_interval(1, interval(-1, 1, 1), "start must be in [0, 0], but is -1");
    bad_interval(1, interval(1, 1, 1), "start must be in [0, 0], but is 1");
    bad_interval(
        1,
        interval(0, -1, 1),
        "end must be in [0, 1] if step is 1, but is -1",
    );
    bad_interval(
        1,
        interval(0, 2, 1),
        "end must be in [0, 1] if step is 1, but is 2",
    );
}

#[test]
fn rp_11_ends_of_strided_intervals() {
    bad_interval(
        4,
        interval(0, 6, 2),
        "end must be in [0, 5] if step is 2, but is 6",
    );
}

#[test]
fn rp_12_steps() {
    bad_interval(1, interval(0, 1, 0), "step must be positive, but is 0");
    bad_interval(1, interval(0, 1, -1), "step must be positive, but is -1");
}

#[test]
fn rp_13_the_last_shard_of_an_interval() {
    bad_interval(
        2,
        interval(0, 3, 2),
        "interval addresses shard 2, which is out of range [0, 2)",
    );
}

#[test]
fn numbers_at_the_edge_of_64_bits() {
    for (start, end, step) in [
        (i64::MIN, i64::MAX, 1),
        (0, i64::MAX, i64::MAX),
        (0, i64::MIN, i64::MIN),
        (i64::MAX, i64::MIN, 1),
        (0, i64::MAX - 1, i64::MAX),
    ] {
        let array = spec(&[0, 1]);
        let bad = interval(start, end, step);
        let whole = interval(0, 2, 1);
        for (from, to) in [(bad, whole), (whole, bad), (bad, bad)] {
            let plan = plan(&[&array], &[&array], &[mapping(0, 0, from, to)]);
            assert!(plan.validate().is_err(), "{bad:?}");
            assert!(optimized(plan).is_err(), "{bad:?}");
        }
    }
}

#[test]
fn sides_of_different_lengths() {
    let two = spec(&[0, 1]);
    let uneven = mapping(0, 0, interval(0, 1, 1), interval(0, 2, 1));
    refused(
        plan(&[&two], &[&two], &[uneven]),
        "mappings[0] maps an interval of 1 shards to one of 2",
    );
}

#[test]
fn rp_14_an_input_shard_goes_to_one_place() {
    let two = spec(&[0, 1]);
    let twice = Mapping {
        in_array: 0,
        out_array: 0,
        from: vec![interval(0, 1, 1), interval(0, 1, 1)],
        to: vec![interval(0, 1, 1), interval(1, 2, 1)],
    };
    refused(
        plan(&[&two], &[&two], &[twice]),
        "Input array 0 addressable shard 0 is already used",
    );
}

#[test]
fn rp_15_every_output_shard_comes_from_somewhere() {
    let two = spec(&[0, 1]);
    refused(
        plan(&[&two], &[&two], &[first(0, 0)]),
        "Output array 0 addressable shard 1 is unassigned",
    );
    refused(
        plan(&[&two], &[&spec(&[0]), &two], &[first(0, 0)]),
        "Output array 1 addressable shard 0 is unassigned",
    );
}

#[test]
fn rp_16_an_output_shard_comes_from_one_place() {
    let two = spec(&[0, 1]);
    let twice = Mapping {
        in_array: 0,
        out_array: 0,
        from: vec![interval(0, 1, 1), interval(1, 2, 1)],
        to: vec![interval(0, 1, 1), interval(0, 1, 1)],
    };
    refused(
        plan(&[&two], &[&two], &[twice]),
        "Output array 0 addressable shard 0 is already assigned",
    );
}

#[test]
fn rp_17_shards_stay_on_their_devices() {
    let whole = interval(0, 2, 1);
    refused(
        plan(
            &[&spec(&[0, 1])],
            &[&spec(&[1, 0])],
            &[mapping(0, 0, whole, whole)],
        ),
        "Output array 0 addressable devices and sharding devices do not match",
    );
}

#[test]
fn shard_shapes_must_be_equal() {
    let long = ArraySpec {
        shape: Shape::new([3, 3]).unwrap(),
        sharding: {
            let shape = Shape::new([3, 3]).unwrap();
            let kind = ShardingKind::ConcreteEven {
                shape: shape.clone(),
                shard_shape: shape,
                is_fully_replicated: true,
            };
            let devices = devices(&client(), &[0]);
            Arc::new(Sharding::new(kind, devices, MemoryKind::default()).unwrap())
        },
        ..spec(&[0])
    };
    refused(
        plan(&[&spec(&[0])], &[&long], &[first(0, 0)]),
        "Input and output must have the same shard shape",
    );
}

#[test]
fn rp_18_19_20_what_must_be_donated() {
    let (one, two) = (spec(&[0]), spec(&[0, 1]));
    let low = mapping(0, 0, interval(0, 1, 1), interval(0, 1, 1));
    let one_to_one = plan(&[&one], &[&one], std::slice::from_ref(&low));
    let rest = mapping(0, 1, interval(1, 2, 1), interval(0, 1, 1));
    let one_to_two = plan(&[&two], &[&one, &spec(&[1])], &[low.clone(), rest]);
    let high = mapping(1, 0, interval(0, 1, 1), interval(1, 2, 1));
    let two_to_one = plan(&[&one, &spec(&[1])], &[&two], &[low, high]);
    for (plan, reusable) in [(one_to_one, true), (one_to_two, true), (two_to_one, false)] {
        assert_eq!(plan.validate(), Ok(()));
        assert_eq!(plan.check_copy_semantics(DonateInput), Ok(()));
        let reused = plan.check_copy_semantics(ReuseInput);
        if reusable {
            assert_eq!(reused, Ok(()));
        } else {
            invalid_with(
                reused,
                "kDonateInput is required if multiple inputs are mapped to one output",
            );
        }
    }
}

#[test]
fn rp_21_device_lists_that_contradict_the_mappings() {
    let client = client();
    let spec = |positions: &[usize]| spec_on(&client, DType::S32, positions);
    let (one, two) = (spec(&[0]), spec(&[0, 1]));
    let low = mapping(0, 0, interval(0, 1, 1), interval(0, 1, 1));
    let high = mapping(1, 0, interval(0, 1, 1), interval(1, 2, 1));
    let plain = plan(&[&one, &spec(&[1])], &[&two], &[low, high]);
    let with = |output: usize, inputs: &[(usize, &[usize])]| {
        let of_input = |(in_array, positions): &(usize, &[usize])| InputDevices {
            in_array: *in_array,
            devices: devices(&client, positions),
        };
        let mut plan = plain.clone();
        let inputs = inputs.iter().map(of_input).collect();
        plan.input_devices_for_output_map.insert(output, inputs);
        plan
    };
    for (plan, text) in [
        (with(1, &[(0, &[0]), (1, &[1])]), "not in `mappings`"),
        (with(0, &[(0, &[0])]), "has 1 inputs"),
        (with(0, &[(3, &[0]), (4, &[1])]), "references input array 3"),
        (
            with(0, &[(0, &[1]), (1, &[1])]),
            "does not reference that device",
        ),
    ] {
        invalid_with(plan.validate(), text);
    }
    assert_eq!(with(0, &[(0, &[0]), (1, &[1])]).validate(), Ok(()));
    let found = optimized(plain.clone()).unwrap();
    assert_eq!(found, with(0, &[(0, &[0]), (1, &[1])]));
    assert_ne!(found, plain);
}

#[test]
fn rp_22_equality_and_hashes_agree() {
    use std::hash::{BuildHasher, RandomState};
    let client = client();
    let one = spec_on(&client, DType::S32, &[0]);
    let plain = plan(&[&one], &[&one], &[first(0, 0)]);
    let plans = [
        RemapPlan::default(),
        plan(&[&one], &[&one], &[]),
        optimized(plain.clone()).unwrap(),
        plain,
    ];
    let hasher = RandomState::new();
    for (i, plan) in plans.iter().enumerate() {
        for (j, other) in plans.iter().enumerate() {
            assert_eq!(plan == other, i == j);
        }
        assert_eq!(hasher.hash_one(plan), hasher.hash_one(plan.clone()));
    }
}

#[test]
fn rp_23_24_optimizing_a_bad_plan() {
    let four = spec(&[0, 1, 2, 3]);
    for (bad, text) in [
        (
            interval(0, 5, 2),
            "interval addresses shard 4, which is out of range [0, 4)",
        ),
        (interval(-1, 4, 1), "start must be in [0, 3], but is -1"),
    ] {
        let bad = mapping(0, 0, bad, bad);
        invalid_with(optimized(plan(&[&four], &[&four], &[bad])), text);
    }
}
