//! What the tests of remap plans beside the code leave: device maps, shards of different shapes,
//! text.

use ifrt::fake::FakeClient;
use ifrt::remap_plan::{Interval, Mapping, RemapPlan};
use ifrt::sharding::ShardingKind;
use ifrt::xla::HloSharding;
use ifrt::{ArraySpec, DType, MemoryKind, Result, Sharding, ShardingRef};

use super::{assert_invalid, fixture, list, shape};

/// An array of shards of shape [2, 3] on these devices.
fn spec(client: &FakeClient, dtype: DType, positions: &[usize]) -> ArraySpec {
    let rows = 2 * i64::try_from(positions.len()).unwrap();
    let kind = ShardingKind::ConcreteEven {
        shape: shape(&[rows, 3]),
        shard_shape: shape(&[2, 3]),
        is_fully_replicated: false,
    };
    let devices = list(client, positions);
    ArraySpec {
        dtype,
        shape: shape(&[rows, 3]),
        sharding: Sharding::new(kind, devices, MemoryKind::default())
            .unwrap()
            .into(),
        layout: None,
    }
}

fn s32(client: &FakeClient, positions: &[usize]) -> ArraySpec {
    spec(client, DType::S32, positions)
}

fn interval([start, end, step]: [i64; 3]) -> Interval {
    Interval { start, end, step }
}

fn map(in_array: usize, out_array: usize, from: &[[i64; 3]], to: &[[i64; 3]]) -> Mapping {
    Mapping {
        in_array,
        out_array,
        from: from.iter().copied().map(interval).collect(),
        to: to.iter().copied().map(interval).collect(),
    }
}

fn optimized(plan: &RemapPlan) -> Result<RemapPlan> {
    RemapPlan::create_optimized(
        plan.input_specs.clone(),
        plan.output_specs.clone(),
        plan.mappings.clone(),
    )
}

/// One input and one output with one mapping.
fn one(client: &FakeClient, count: usize, from: &[[i64; 3]], to: &[[i64; 3]]) -> RemapPlan {
    let positions: Vec<usize> = (0..count).collect();
    let specs = vec![s32(client, &positions)];
    RemapPlan::new(specs.clone(), specs, vec![map(0, 0, from, to)])
}

fn joined(client: &FakeClient) -> RemapPlan {
    let (first, second) = ([[0, 1, 1]], [[1, 2, 1]]);
    RemapPlan::new(
        vec![s32(client, &[0]), s32(client, &[1])],
        vec![s32(client, &[0, 1])],
        vec![map(0, 0, &first, &first), map(1, 0, &first, &second)],
    )
}

/// An array of 3 rows on two devices, split as `kind` says.
fn three_rows(client: &FakeClient, kind: ShardingKind, positions: &[usize]) -> ArraySpec {
    let devices = list(client, positions);
    ArraySpec {
        shape: shape(&[3, 3]),
        sharding: Sharding::new(kind, devices, MemoryKind::default())
            .unwrap()
            .into(),
        ..s32(client, positions)
    }
}

#[test]
fn shards_of_different_shapes_are_compared_one_by_one() {
    let client = fixture(4, 4);
    let rows = |rows: [i64; 2]| {
        ShardingKind::concrete(shape(&[3, 3]), rows.map(|n| shape(&[n, 3])).into())
    };
    let crossed = vec![map(0, 0, &[[0, 1, 1], [1, 2, 1]], &[[1, 2, 1], [0, 1, 1]])];
    for (output, fits) in [([2, 1], true), ([1, 2], false)] {
        let plan = RemapPlan::new(
            vec![three_rows(&client, rows([1, 2]), &[0, 1])],
            vec![three_rows(&client, rows(output), &[1, 0])],
            crossed.clone(),
        );
        if fits {
            assert_eq!(plan.validate(), Ok(()));
        } else {
            assert_invalid(
                plan.validate(),
                "Input and output must have the same shard shape: ",
            );
        }
    }
}

#[test]
fn a_device_is_used_once_if_there_is_a_device_map() {
    let client = fixture(4, 4);
    let twice: ShardingRef = {
        let devices = list(&client, &[0, 0]);
        let kind = ShardingKind::Hlo(HloSharding::tile([2, 1]).unwrap());
        Sharding::new(kind, devices, MemoryKind::default())
            .unwrap()
            .into()
    };
    let spec = ArraySpec {
        sharding: twice,
        ..s32(&client, &[0, 1])
    };
    let mappings = vec![map(0, 0, &[[0, 2, 1]], &[[0, 2, 1]])];
    let plan = RemapPlan::new(vec![spec.clone()], vec![spec], mappings);
    assert_eq!(plan.validate(), Ok(()));
    assert_invalid(
        optimized(&plan),
        "used more than once in mappings from input array 0 to output array 0",
    );
}

#[test]
fn device_maps_share_whole_lists() {
    let client = fixture(6, 4);
    let whole = optimized(&one(&client, 4, &[[0, 4, 1]], &[[0, 4, 1]])).unwrap();
    let devices = &whole.input_devices_for_output_map[&0][0].devices;
    assert_eq!(devices, whole.input_specs[0].sharding.devices());
    // Of a list with devices that cannot be reached, positions count those that can.
    let input = s32(&client, &[4, 0, 5, 1]);
    let part = RemapPlan::new(
        vec![input],
        vec![s32(&client, &[1])],
        vec![map(0, 0, &[[1, 2, 1]], &[[0, 1, 1]])],
    );
    let part = optimized(&part).unwrap();
    let devices = &part.input_devices_for_output_map[&0][0].devices;
    assert_eq!(*devices, list(&client, &[1]));
}

#[test]
fn intervals_are_slices() {
    let shards = |bounds| interval(bounds).shards().collect::<Vec<usize>>();
    assert_eq!(shards([0, 5, 2]), [0, 2, 4]);
    assert_eq!(shards([1, 2, i64::MAX]), [1]);
    for nothing in [
        [3, 3, 1],
        [4, 3, 1],
        [0, 9, 0],
        [0, 9, -1],
        [i64::MIN, i64::MAX, 1],
    ] {
        assert_eq!(shards(nothing), [0; 0]);
    }
}

#[test]
fn text() {
    let client = fixture(4, 4);
    let text = optimized(&joined(&client)).unwrap().to_string();
    assert!(
        text.starts_with("RemapPlan(input_specs=[ArraySpec(dtype=s32,shape=[2,3],"),
        "{text}"
    );
    assert!(
        text.ends_with(
            "mappings=[Mapping(in_array=0,out_array=0,from=[[0:1:1]],to=[[0:1:1]]),\
             Mapping(in_array=1,out_array=0,from=[[0:1:1]],to=[[1:2:1]])],\
             output_map=[o0:{i0:#1,i1:#1}])"
        ),
        "{text}"
    );
}
