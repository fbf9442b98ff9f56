//! Sharding specs: the checks of the list on shardings (SHD, which stand beside the code) without
//! devices. SSP-`n` is SHD-`n`; those about devices (SSP-04, SSP-10, SSP-14, SSP-15, SSP-21,
//! SSP-28) and about the spec of a sharding (SSP-31) become SSP-32.

use ifrt::shape::{BoundedDynamicShapeTag, DynamicShape};
use ifrt::sharding::{ShardingKind, ShardingParam};
use ifrt::xla::HloSharding;
use ifrt::{Code, IndexDomain, MemoryKind, Result, Sharding, ShardingSpec};

use super::{assert_hash_is_consistent, assert_invalid, fixture, list, shape};

fn concrete(dims: &[i64], shards: &[&[i64]]) -> ShardingKind {
    ShardingKind::concrete(shape(dims), shards.iter().map(|dims| shape(dims)).collect())
}

fn with_domains(kind: ShardingKind, domains: Vec<IndexDomain>) -> ShardingKind {
    match kind {
        ShardingKind::Concrete {
            shape,
            shard_shapes,
            ..
        } => ShardingKind::Concrete {
            shape,
            shard_shapes,
            index_domains: Some(domains),
        },
        other => other,
    }
}

/// One-dimensional parts with these starts and extents.
fn parts(parts: &[(i64, i64)]) -> Vec<IndexDomain> {
    let part = |(start, extent): &(i64, i64)| IndexDomain::new([*start], shape(&[*extent]));
    parts.iter().map(part).collect()
}

fn dynamic(dims: &[i64], shards: &[&[i64]]) -> ShardingKind {
    ShardingKind::ConcreteDynamic {
        shape: bounded(dims),
        shard_shapes: shards.iter().map(|dims| bounded(dims)).collect(),
    }
}

/// A shape whose first dimension is only bounded.
fn bounded(dims: &[i64]) -> DynamicShape {
    let mut tag = vec![false; dims.len()];
    tag[0] = true;
    DynamicShape::new(shape(dims), BoundedDynamicShapeTag::new(tag).unwrap()).unwrap()
}

fn even(dims: &[i64], shard: &[i64], is_fully_replicated: bool) -> ShardingKind {
    ShardingKind::ConcreteEven {
        shape: shape(dims),
        shard_shape: shape(shard),
        is_fully_replicated,
    }
}

fn param(tiles: &[i64], permutation: &[i32], axes: &[i32]) -> ShardingParam {
    ShardingParam::new(tiles.into(), permutation.into(), axes.into(), vec![]).unwrap()
}

/// Tiles, permutation, axes and shape; the origins in the order of the devices.
type ParamCase = (
    &'static [i64],
    &'static [i32],
    &'static [i32],
    &'static [i64],
    [&'static [i64]; 6],
);

const PARAM_CASES: [ParamCase; 4] = [
    (
        &[2, 3],
        &[0, 1],
        &[2, 3],
        &[6, 6],
        [&[0, 0], &[0, 2], &[0, 4], &[3, 0], &[3, 2], &[3, 4]],
    ),
    (
        &[2, 3],
        &[1, 0],
        &[3, 2],
        &[6, 6],
        [&[0, 0], &[0, 4], &[3, 2], &[0, 2], &[3, 0], &[3, 4]],
    ),
    (
        &[2, 1],
        &[0, 1],
        &[2, 3],
        &[6, 6],
        [&[0, 0], &[0, 0], &[0, 0], &[3, 0], &[3, 0], &[3, 0]],
    ),
    (&[], &[0], &[6], &[], [&[]; 6]),
];

fn spec(kind: ShardingKind, num_shards: usize) -> ShardingSpec {
    ShardingSpec::new(kind, num_shards).unwrap()
}

#[test]
fn ssp_01_no_spec_is_without_shards_or_with_other_shards_than_it_lists() {
    for kind in [
        ShardingKind::SingleDevice,
        ShardingKind::opaque(),
        concrete(&[1], &[]),
        even(&[1], &[1], true),
        ShardingKind::Hlo(HloSharding::Replicated),
    ] {
        let error = ShardingSpec::new(kind, 0).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
    let two = concrete(&[3], &[&[1], &[2]]);
    assert_invalid(
        ShardingSpec::new(two, 3),
        "ConcreteShardingSpec lists 2 shards",
    );
    assert_invalid(ShardingSpec::opaque(1 << 25), "at most 16777216");
}

#[test]
fn ssp_02_to_ssp_06_single_device() {
    let one = ShardingSpec::single_device();
    assert!(one.is_fully_replicated());
    let dims = shape(&[10, 20]);
    assert_eq!(one.shard_shape(&dims), Ok(dims.clone()));
    assert!(one.has_same_partitioning(&ShardingSpec::single_device()));
    let whole = vec![IndexDomain::whole(dims.clone())];
    assert_eq!(one.index_domains(&dims), Ok(whole));
    assert_eq!(one.disassemble(&dims), Ok(vec![(dims, one.clone())]));
    let bounded = bounded(&[10, 20]);
    assert_eq!(one.disassemble_dynamic(&bounded), Ok(vec![(bounded, one)]));
}

#[test]
fn ssp_07_hash() {
    let opaque = [ShardingKind::opaque(), ShardingKind::opaque()];
    let make = || {
        [
            ShardingSpec::single_device(),
            spec(opaque[0].clone(), 2),
            spec(opaque[1].clone(), 2),
            spec(concrete(&[3], &[&[1], &[2]]), 2),
            spec(dynamic(&[3], &[&[1], &[2]]), 2),
            spec(even(&[2], &[1], false), 2),
            spec(even(&[2], &[1], false), 3),
            spec(ShardingKind::Param(param(&[1, 2], &[0], &[2])), 2),
            spec(ShardingKind::Hlo(HloSharding::Replicated), 2),
        ]
    };
    assert_hash_is_consistent(&make(), &make());
}

#[test]
fn ssp_08_ssp_09_and_ssp_11_opaque() {
    let opaque = ShardingSpec::opaque(2).unwrap();
    assert!(!opaque.is_fully_replicated());
    let dims = shape(&[30]);
    let shapes = "OpaqueShardingSpec does not have shard shape information";
    assert_invalid(opaque.shard_shape(&dims), shapes);
    assert_invalid(opaque.disassemble(&dims), shapes);
    assert_invalid(opaque.disassemble_dynamic(&bounded(&[30])), shapes);
    assert_invalid(
        opaque.index_domains(&dims),
        "OpaqueShardingSpec does not have index domain information",
    );
    assert!(opaque.has_same_partitioning(&opaque));
    assert!(!opaque.has_same_partitioning(&ShardingSpec::opaque(2).unwrap()));
}

#[test]
fn ssp_12_and_ssp_13_concrete() {
    let uneven = spec(concrete(&[30], &[&[10], &[20]]), 2);
    assert!(!uneven.is_fully_replicated());
    assert_invalid(
        uneven.shard_shape(&shape(&[30])),
        "ConcreteShardingSpec does not have a fixed shard shape",
    );
    let equal = spec(concrete(&[30], &[&[30], &[30]]), 2);
    assert_eq!(equal.shard_shape(&shape(&[30])), Ok(shape(&[30])));
    let known = with_domains(
        concrete(&[30], &[&[10], &[20]]),
        parts(&[(0, 10), (10, 20)]),
    );
    let known = spec(known, 2);
    assert!(!uneven.has_same_partitioning(&known) && !known.has_same_partitioning(&uneven));
    assert!(known.has_same_partitioning(&known.clone()));
    assert!(!uneven.has_same_partitioning(&spec(concrete(&[30], &[&[20], &[10]]), 2)));
}

#[test]
fn ssp_16_and_ssp_17_concrete_shards() {
    let shards = |spec: &ShardingSpec| {
        let shards = spec.disassemble(&shape(&[30])).unwrap();
        assert!(
            shards
                .iter()
                .all(|(_, one)| *one == ShardingSpec::single_device())
        );
        shards
            .into_iter()
            .map(|(shape, _)| shape)
            .collect::<Vec<_>>()
    };
    let fixed = spec(concrete(&[30], &[&[10], &[20]]), 2);
    assert_eq!(shards(&fixed), [shape(&[10]), shape(&[20])]);
    assert_invalid(
        fixed.disassemble(&shape(&[31])),
        "ConcreteShardingSpec can only disassemble shape [30]",
    );
    assert_invalid(
        fixed.disassemble_dynamic(&bounded(&[30])),
        "ConcreteShardingSpec holds static shape",
    );
    let loose = spec(dynamic(&[30], &[&[10], &[20]]), 2);
    let shapes = loose.disassemble_dynamic(&bounded(&[30])).unwrap();
    assert_eq!(shapes[1].0, bounded(&[20]));
    assert_invalid(
        loose.disassemble(&shape(&[30])),
        "ConcreteShardingSpec holds dynamic shape",
    );
    assert_invalid(
        loose.disassemble_dynamic(&bounded(&[31])),
        "ConcreteShardingSpec can only disassemble dynamic shape [<=30]",
    );
}

#[test]
fn ssp_18_concrete_index_domains() {
    let known = parts(&[(0, 10), (10, 20)]);
    let kind = concrete(&[30], &[&[10], &[20]]);
    let dims = shape(&[30]);
    assert_invalid(
        spec(kind.clone(), 2).index_domains(&dims),
        "ConcreteShardingSpec does not have index domain information",
    );
    let spec = spec(with_domains(kind, known.clone()), 2);
    assert_eq!(spec.index_domains(&dims), Ok(known));
    assert_invalid(
        spec.index_domains(&shape(&[31])),
        "has index domains for shape [30]",
    );
}

#[test]
fn ssp_19_ssp_20_ssp_22_and_ssp_23_concrete_even() {
    let split = spec(even(&[30], &[15], false), 2);
    assert!(!split.is_fully_replicated());
    assert!(spec(even(&[30], &[15], true), 2).is_fully_replicated());
    assert_eq!(split.shard_shape(&shape(&[30])), Ok(shape(&[15])));
    assert_invalid(
        split.shard_shape(&shape(&[45])),
        "ConcreteEvenShardingSpec has a shard shape for shape [30], but was asked to get a shard \
         shape for shape [45]",
    );
    for (kind, count) in [
        (even(&[30], &[15], false), 3),
        (even(&[45], &[15], false), 2),
        (even(&[30], &[10], false), 2),
        (even(&[30], &[15], true), 2),
    ] {
        assert!(!split.has_same_partitioning(&spec(kind, count)));
    }
    assert_eq!(split.shard_shapes(&shape(&[30])), Ok(vec![shape(&[15]); 2]));
    assert_invalid(
        split.disassemble(&shape(&[40])),
        "can only disassemble shape [30]",
    );
    assert_invalid(
        split.disassemble_dynamic(&bounded(&[30])),
        "ConcreteEvenShardingSpec can only disassemble static shape",
    );
    for kind in [even(&[30], &[30], true), even(&[30], &[15], false)] {
        assert_invalid(
            spec(kind, 2).index_domains(&shape(&[30])),
            "ConcreteEvenShardingSpec does not have index domain information",
        );
    }
}

#[test]
fn ssp_24_to_ssp_30_param() {
    let base = ShardingSpec::param(param(&[2, 3], &[1, 0], &[3, 2])).unwrap();
    assert_eq!(base.num_shards(), 6);
    let mismatch = ShardingSpec::new(base.kind().clone(), 2);
    assert_invalid(mismatch, "Device counts don't match. From ShardingParam 6");
    assert!(!base.is_fully_replicated());
    let copies = ShardingSpec::param(param(&[1, 1], &[1, 0], &[3, 2])).unwrap();
    assert!(copies.is_fully_replicated() && !base.has_same_partitioning(&copies));
    assert_eq!(
        base.shard_shapes(&shape(&[6, 6])),
        Ok(vec![shape(&[3, 2]); 6])
    );
    for result in [
        base.shard_shape(&shape(&[6])),
        base.shard_shape(&shape(&[6, 6, 6])),
    ] {
        assert_invalid(result, "Numbers of dimensions don't match.");
    }
    assert_invalid(
        base.disassemble(&shape(&[7, 6])),
        "Uneven shard is not supported. dim: 7, dim_shards: 2",
    );
    assert_invalid(
        base.disassemble_dynamic(&bounded(&[6, 6])),
        "ShardingParamShardingSpec can only disassemble static shape",
    );
    for (tiles, permutation, axes, dims, origins) in PARAM_CASES {
        let spec = ShardingSpec::param(param(tiles, permutation, axes)).unwrap();
        let domains = spec.index_domains(&shape(dims)).unwrap();
        let found: Vec<&[i64]> = domains.iter().map(IndexDomain::origin).collect();
        assert_eq!(found, origins, "{spec}");
    }
}

#[test]
fn ssp_32_specs_become_shardings() -> Result<()> {
    let client = fixture(6, 6);
    let kind = MemoryKind::new("device");
    let positions = [0, 1, 2, 3, 4, 5];
    for spec in [
        ShardingSpec::single_device(),
        ShardingSpec::opaque(2)?,
        spec(concrete(&[30], &[&[10], &[20]]), 2),
        spec(dynamic(&[30], &[&[10], &[20]]), 2),
        spec(even(&[30], &[15], false), 2),
        ShardingSpec::param(param(&[2, 3], &[1, 0], &[3, 2]))?,
        ShardingSpec::hlo(HloSharding::tile([6, 1])?, 6)?,
    ] {
        let count = spec.num_shards();
        let sharding = spec.to_sharding(list(&client, &positions[..count]), kind.clone())?;
        assert_eq!(*sharding.sharding_spec(), spec);
        assert_eq!(*sharding.memory_kind(), kind);
        let noun = if count == 1 { "device" } else { "devices" };
        let other = list(
            &client,
            &positions[..if count == 6 { 5 } else { count + 1 }],
        );
        let received = other.len();
        assert_invalid(
            spec.to_sharding(other, kind.clone()),
            &format!("requires {count} {noun}, but received {received} devices"),
        );
    }
    Ok(())
}

#[test]
fn text_of_shardings() {
    let client = fixture(6, 4);
    let text = |kind| {
        let devices = list(&client, &[0, 1]);
        let sharding = Sharding::new(kind, devices, MemoryKind::default());
        sharding.unwrap().to_string()
    };
    assert_eq!(
        text(concrete(&[3], &[&[1], &[2]])),
        "ConcreteSharding(devices: [10,11], shape: [3], shard_shapes: [[1],[2]], index_domains: \
         <nullopt>, memory_kind: device)"
    );
    let known = with_domains(concrete(&[3], &[&[1], &[2]]), parts(&[(0, 1), (1, 2)]));
    assert!(text(known).contains(
        "index_domains: [IndexDomain(origin=[0],shape=[1]),IndexDomain(origin=[1],shape=[2])]"
    ));
    assert_eq!(
        text(ShardingKind::Param(param(&[1, 2], &[0], &[2]))),
        "ShardingParamSharding(1x2 to [0] on 2, devices: [10,11], memory_kind: device)"
    );
    assert_eq!(
        text(ShardingKind::Hlo(HloSharding::tile([2, 1]).unwrap())),
        "HloSharding(hlo_sharding: {devices=[2,1]<=[2]}, devices: [10,11], memory_kind: device)"
    );
    assert_eq!(
        text(ShardingKind::opaque()),
        "OpaqueSharding(devices: [10,11], memory_kind: device)"
    );
}

#[test]
fn text_of_specs() -> Result<()> {
    for (spec, text) in [
        (ShardingSpec::single_device(), "SingleDeviceShardingSpec()"),
        (
            ShardingSpec::opaque(2)?,
            "OpaqueShardingSpec(num_shards: 2)",
        ),
        (
            spec(even(&[30], &[15], false), 2),
            "ConcreteEvenShardingSpec(num_shards: 2, shape: [30], shard_shape: [15], \
             is_fully_replicated: false)",
        ),
        (
            ShardingSpec::param(param(&[1, 2], &[0], &[2]))?,
            "ShardingParamShardingSpec(num_shards: 2, 1x2 to [0] on 2)",
        ),
        (
            ShardingSpec::hlo(HloSharding::Replicated, 3)?,
            "HloShardingSpec(num_shards: 3, hlo_sharding: {replicated})",
        ),
    ] {
        assert_eq!(spec.to_string(), text);
    }
    Ok(())
}
