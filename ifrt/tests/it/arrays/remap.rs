//! RMP: remapping shards.

use std::slice;
use std::sync::Arc;

use ifrt::ArrayCopySemantics::{AlwaysCopy, DonateInput, ReuseInput};
use ifrt::fake::FakeClient;
use ifrt::remap_plan::{Interval, Mapping};
use ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, Client, Code, DType, HostBuffer, HostData, MemoryKind,
    RemapPlan, Result, Sharding, ShardingKind, ShardingRef,
};

use crate::support::*;

/// Shards of `shard` along the first dimension.
fn even(client: &FakeClient, positions: &[usize], shard: &[i64]) -> ShardingRef {
    let kind = ShardingKind::ConcreteEven {
        shape: whole_shape(positions, shard),
        shard_shape: shape(shard),
        is_fully_replicated: false,
    };
    let devices = devices(client, positions);
    Arc::new(Sharding::new(kind, devices, MemoryKind::default()).unwrap())
}

fn whole_shape(positions: &[usize], shard: &[i64]) -> ifrt::Shape {
    let mut dims = shard.to_vec();
    dims[0] *= i64::try_from(positions.len()).unwrap();
    shape(&dims)
}

fn spec(client: &FakeClient, dtype: DType, positions: &[usize], shard: &[i64]) -> ArraySpec {
    ArraySpec {
        dtype,
        shape: whole_shape(positions, shard),
        sharding: even(client, positions, shard),
        layout: None,
    }
}

/// The shards count up from each of `bases`.
fn make(client: &FakeClient, spec: &ArraySpec, bases: &[i32]) -> ArrayRef {
    let shard = spec.sharding.shard_shape(&spec.shape).unwrap();
    let buffers = bases.iter().map(|base| {
        let values = (0..i32::try_from(shard.num_elements()).unwrap()).map(|n| base + n);
        let data = match spec.dtype {
            DType::F32 => values.flat_map(|n| (n as f32).to_ne_bytes()).collect(),
            _ => values.flat_map(i32::to_ne_bytes).collect(),
        };
        HostBuffer::dense(HostData::Shared(data), spec.dtype, shard.clone())
    });
    let arrays = vec![shards(spec.clone(), buffers)];
    client
        .make_arrays_from_host_buffer_shards(arrays)
        .unwrap()
        .remove(0)
}

/// The first element of each shard, whose others count up from it.
#[track_caller]
fn bases(array: &ArrayRef) -> Vec<f64> {
    let pieces = array
        .disassemble(ReuseInput, ifrt::ShardSemantics::Addressable)
        .unwrap();
    let base = |piece: &ArrayRef| {
        let bytes = wait(&piece.copy_to_host(None))
            .unwrap()
            .into_bytes()
            .unwrap();
        let (chunks, _) = bytes.as_chunks();
        let number = |chunk: &[u8; 4]| match piece.dtype() {
            DType::F32 => f64::from(f32::from_ne_bytes(*chunk)),
            _ => f64::from(i32::from_ne_bytes(*chunk)),
        };
        let values: Vec<f64> = chunks.iter().map(number).collect();
        let steps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(steps, vec![1.0; values.len() - 1]);
        values[0]
    };
    pieces.iter().map(base).collect()
}

fn interval([start, end, step]: [i64; 3]) -> Interval {
    Interval { start, end, step }
}

fn mapping(in_array: usize, out_array: usize, from: [i64; 3], to: [i64; 3]) -> Mapping {
    Mapping {
        in_array,
        out_array,
        from: vec![interval(from)],
        to: vec![interval(to)],
    }
}

fn run(
    client: &FakeClient,
    plan: &RemapPlan,
    inputs: &[ArrayRef],
    copy: ArrayCopySemantics,
) -> Result<Vec<ArrayRef>> {
    let outputs = client.remap_arrays(plan, inputs, copy)?;
    for (output, spec) in outputs.iter().zip(&plan.output_specs) {
        assert_eq!((output.dtype(), output.shape()), (spec.dtype, &spec.shape));
        assert!(Arc::ptr_eq(output.sharding(), &spec.sharding));
        let pieces = output
            .disassemble(ReuseInput, ifrt::ShardSemantics::All)
            .unwrap();
        let devices = pieces
            .iter()
            .flat_map(|piece| piece.sharding().devices().ids());
        assert!(devices.eq(spec.sharding.devices().ids()));
    }
    Ok(outputs)
}

/// The plain plan and the one that also lists devices; both must do the same.
fn plans(inputs: &[ArraySpec], outputs: &[ArraySpec], mappings: &[Mapping]) -> [RemapPlan; 2] {
    let parts = || (inputs.to_vec(), outputs.to_vec(), mappings.to_vec());
    let (input_specs, output_specs, moves) = parts();
    let plain = RemapPlan::new(input_specs, output_specs, moves);
    plain.validate().unwrap();
    let (input_specs, output_specs, moves) = parts();
    [
        plain,
        RemapPlan::create_optimized(input_specs, output_specs, moves).unwrap(),
    ]
}

#[test]
fn rmp_01_one_shard_of_two() {
    let client = client();
    let input = spec(&client, DType::S32, &[0, 1], &[2, 3]);
    let output = spec(&client, DType::S32, &[1], &[2, 3]);
    let moves = vec![mapping(0, 0, [1, 2, 1], [0, 1, 1])];
    for plan in plans(slice::from_ref(&input), &[output], &moves) {
        let array = make(&client, &input, &[0, 6]);
        for copy in [ReuseInput, DonateInput] {
            let outputs = run(&client, &plan, slice::from_ref(&array), copy).unwrap();
            assert_eq!(bases(&outputs[0]), [6.0]);
            assert_eq!(array.is_deleted(), copy == DonateInput);
        }
    }
    assert_eq!(
        client.live_buffers(),
        0,
        "the shard that nobody took is freed"
    );
}

fn interleaved(client: &FakeClient) -> ([RemapPlan; 2], [ArrayRef; 2]) {
    let inputs = [
        spec(client, DType::S32, &[0, 1], &[2, 3]),
        spec(client, DType::S32, &[2, 3], &[2, 3]),
    ];
    let output = spec(client, DType::S32, &[0, 2, 1, 3], &[2, 3]);
    let moves = vec![
        mapping(0, 0, [0, 2, 1], [0, 4, 2]),
        mapping(1, 0, [0, 2, 1], [1, 4, 2]),
    ];
    let arrays = [
        make(client, &inputs[0], &[0, 6]),
        make(client, &inputs[1], &[100, 106]),
    ];
    (plans(&inputs, &[output], &moves), arrays)
}

#[test]
fn rmp_02_two_arrays_into_one() {
    let client = client();
    for plain in [true, false] {
        let ([plan, optimized], arrays) = interleaved(&client);
        let plan = if plain { plan } else { optimized };
        let outputs = run(&client, &plan, &arrays, DonateInput).unwrap();
        assert_eq!(bases(&outputs[0]), [0.0, 100.0, 6.0, 106.0]);
        assert!(arrays.iter().all(|array| array.is_deleted()));
    }
}

#[test]
fn rmp_03_two_arrays_into_one_must_be_donated() {
    let client = client();
    let (plans, arrays) = interleaved(&client);
    for plan in plans {
        let refused = run(&client, &plan, &arrays, ReuseInput).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert_eq!(
            refused.message(),
            "kDonateInput is required if multiple inputs are mapped to one output"
        );
        assert!(arrays.iter().all(|array| !array.is_deleted()));
    }
}

#[test]
fn rmp_04_one_array_into_two() {
    let client = client();
    let input = spec(&client, DType::S32, &[0, 2, 1, 3], &[2, 3]);
    let outputs = [
        spec(&client, DType::S32, &[0, 1], &[2, 3]),
        spec(&client, DType::S32, &[2, 3], &[2, 3]),
    ];
    let moves = vec![
        mapping(0, 0, [0, 4, 2], [0, 2, 1]),
        mapping(0, 1, [1, 4, 2], [0, 2, 1]),
    ];
    for plan in plans(slice::from_ref(&input), &outputs, &moves) {
        let array = make(&client, &input, &[0, 100, 6, 106]);
        for copy in [ReuseInput, DonateInput] {
            let outputs = run(&client, &plan, slice::from_ref(&array), copy).unwrap();
            assert_eq!(bases(&outputs[0]), [0.0, 6.0]);
            assert_eq!(bases(&outputs[1]), [100.0, 106.0]);
        }
    }
}

#[test]
fn rmp_05_unchanged() {
    let client = client();
    let specs = [
        spec(&client, DType::S32, &[0, 1, 2, 3], &[2, 3]),
        spec(&client, DType::S32, &[0, 1], &[3, 5]),
    ];
    let moves = vec![
        mapping(0, 0, [0, 4, 1], [0, 4, 1]),
        mapping(1, 1, [0, 2, 1], [0, 2, 1]),
    ];
    for plan in plans(&specs, &specs, &moves) {
        let arrays = [
            make(&client, &specs[0], &[10, 20, 30, 40]),
            make(&client, &specs[1], &[50, 60]),
        ];
        for copy in [ReuseInput, DonateInput] {
            let outputs = run(&client, &plan, &arrays, copy).unwrap();
            assert_eq!(bases(&outputs[0]), [10.0, 20.0, 30.0, 40.0]);
            assert_eq!(bases(&outputs[1]), [50.0, 60.0]);
        }
    }
}

#[test]
fn rmp_06_two_dtypes_into_four_arrays() {
    let client = client();
    let inputs = [
        spec(&client, DType::F32, &[0, 1, 2, 3], &[2, 3]),
        spec(&client, DType::S32, &[0, 1], &[3, 5]),
    ];
    let outputs = [
        spec(&client, DType::F32, &[0, 1], &[2, 3]),
        spec(&client, DType::F32, &[2, 3], &[2, 3]),
        spec(&client, DType::S32, &[0], &[3, 5]),
        spec(&client, DType::S32, &[1], &[3, 5]),
    ];
    let moves = vec![
        mapping(0, 0, [0, 2, 1], [0, 2, 1]),
        mapping(0, 1, [2, 4, 1], [0, 2, 1]),
        mapping(1, 2, [0, 1, 1], [0, 1, 1]),
        mapping(1, 3, [1, 2, 1], [0, 1, 1]),
    ];
    for plan in plans(&inputs, &outputs, &moves) {
        let arrays = [
            make(&client, &inputs[0], &[10, 20, 30, 40]),
            make(&client, &inputs[1], &[50, 60]),
        ];
        for copy in [ReuseInput, DonateInput] {
            let outputs = run(&client, &plan, &arrays, copy).unwrap();
            let found: Vec<Vec<f64>> = outputs.iter().map(bases).collect();
            assert_eq!(
                found,
                [vec![10.0, 20.0], vec![30.0, 40.0], vec![50.0], vec![60.0]]
            );
        }
    }
}

#[test]
fn rmp_07_inputs_that_the_plan_is_not_for() {
    let client = client();
    let right = spec(&client, DType::S32, &[0], &[2, 3]);
    let moves = vec![mapping(0, 0, [0, 1, 1], [0, 1, 1])];
    let [plan, _] = plans(slice::from_ref(&right), slice::from_ref(&right), &moves);
    let other = |dtype, positions: &[usize], shard: &[i64]| {
        make(&client, &spec(&client, dtype, positions, shard), &[0])
    };
    let good = make(&client, &right, &[0]);
    for (inputs, text) in [
        (
            vec![Arc::clone(&good), Arc::clone(&good)],
            "RemapArrays expects 1 input arrays, but got 2",
        ),
        (
            vec![other(DType::F32, &[0], &[2, 3])],
            "RemapArrays expects input #0 to have dtype",
        ),
        (
            vec![other(DType::S32, &[0], &[20, 30])],
            "RemapArrays expects input #0 to have shape",
        ),
        (
            vec![other(DType::S32, &[1], &[2, 3])],
            "RemapArrays expects input #0 to be on",
        ),
    ] {
        let refused = client.remap_arrays(&plan, &inputs, ReuseInput).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().starts_with(text), "{refused}");
    }
    let one = [Arc::clone(&good)];
    let copied = client.remap_arrays(&plan, &one, AlwaysCopy).unwrap_err();
    assert_eq!(copied.message(), "Invalid ArrayCopySemantics");
    good.delete().detach();
    let dead = client.remap_arrays(&plan, &one, ReuseInput).unwrap_err();
    assert_eq!(
        dead.message(),
        "RemapArrays() called on deleted or donated buffer"
    );
}

#[test]
fn an_output_cannot_claim_another_memory() {
    let client = client();
    let input = spec(&client, DType::S32, &[0], &[2, 3]);
    let pinned = Some(MemoryKind::new("pinned_host"));
    let output = ArraySpec {
        sharding: input.sharding.with_device_assignment(None, pinned).unwrap(),
        ..input.clone()
    };
    let moves = vec![mapping(0, 0, [0, 1, 1], [0, 1, 1])];
    let [plan, _] = plans(slice::from_ref(&input), &[output], &moves);
    let array = make(&client, &input, &[0]);
    let refused = client
        .remap_arrays(&plan, &[Arc::clone(&array)], DonateInput)
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(!array.is_deleted());
}

#[test]
fn a_short_shard_cannot_become_a_long_one() {
    let client = client();
    let input = ArraySpec {
        dtype: DType::S32,
        shape: shape(&[3]),
        sharding: tiled(&client, &[0, 1], &[2]),
        layout: None,
    };
    let output = ArraySpec {
        sharding: tiled(&client, &[1, 0], &[2]),
        ..input.clone()
    };
    let moves = [
        mapping(0, 0, [0, 1, 1], [1, 2, 1]),
        mapping(0, 0, [1, 2, 1], [0, 1, 1]),
    ];
    // Both shardings have tiles of two, of which the last is short.
    let [plan, _] = plans(slice::from_ref(&input), &[output], &moves);
    let parts = [&[1, 2][..], &[3]].map(|values| {
        let data = values.iter().copied().flat_map(i32::to_ne_bytes).collect();
        let count = i64::try_from(values.len()).unwrap();
        HostBuffer::dense(HostData::Shared(data), DType::S32, shape(&[count]))
    });
    let arrays = vec![shards(input, parts)];
    let array = client
        .make_arrays_from_host_buffer_shards(arrays)
        .unwrap()
        .remove(0);
    let refused = client
        .remap_arrays(&plan, slice::from_ref(&array), DonateInput)
        .unwrap_err();
    assert!(
        refused.message().contains("from shard 1 of input #0"),
        "{refused}"
    );
    assert!(!array.is_deleted());
}
