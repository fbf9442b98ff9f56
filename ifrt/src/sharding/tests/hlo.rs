//! HSH: XLA's shardings.

use super::*;
use crate::xla::{DeviceOrder, SubgroupType, TileAssignment};

fn hlo(sharding: HloSharding, devices: DeviceList) -> Sharding {
    super::sharding(ShardingKind::Hlo(sharding), devices)
}

fn tile(dims: &[i64]) -> HloSharding {
    HloSharding::tile(dims).unwrap()
}

fn ordered(count: i64) -> DeviceOrder {
    DeviceOrder::Explicit((0..count).collect())
}

/// The last dimension is of copies.
fn partial(dims: &[i64]) -> HloSharding {
    let order = ordered(dims.iter().product());
    HloSharding::Tiled(TileAssignment::new(dims.to_vec(), order, vec![], true).unwrap())
}

fn subgroup(dims: &[i64], kind: SubgroupType) -> HloSharding {
    let order = ordered(dims.iter().product());
    HloSharding::Tiled(TileAssignment::new(dims.to_vec(), order, vec![kind], false).unwrap())
}

fn one() -> DeviceList {
    list(&fixture(6, 4), [0])
}

#[test]
fn hsh_01_tiles_for_other_devices() {
    invalid_with(
        Sharding::hlo(tile(&[2, 1]), one(), MemoryKind::default()),
        "sharding's tile count and device count does not match",
    );
}

#[test]
fn hsh_02_fully_replicated() {
    for (sharding, devices, replicated) in [
        (HloSharding::Replicated, six(), true),
        (tile(&[1, 1]), one(), true),
        (partial(&[1, 6]), six(), true),
        (partial(&[2, 3]), six(), false),
        (tile(&[1, 6]), six(), false),
        (HloSharding::Maximal(0), one(), true),
        (HloSharding::Maximal(0), six(), false),
        (HloSharding::Manual, six(), false),
        (HloSharding::Unknown, six(), false),
        (HloSharding::Unreduced, six(), false),
        (subgroup(&[1, 6], SubgroupType::Replicated), six(), true),
        (subgroup(&[1, 6], SubgroupType::Manual), six(), false),
    ] {
        let text = format!("{sharding:?}");
        assert_eq!(
            hlo(sharding, devices).is_fully_replicated(),
            replicated,
            "{text}"
        );
    }
}

#[test]
fn hsh_03_the_shape_of_a_tile() {
    let tiled = hlo(tile(&[2, 3]), six());
    assert_eq!(tiled.shard_shape(&shape(&[6, 6])), Ok(shape(&[3, 2])));
    assert_eq!(
        tiled.shard_shape(&shape(&[5, 7])),
        Ok(shape(&[3, 3])),
        "rounded up"
    );
    invalid_with(
        tiled.shard_shape(&shape(&[6, 6, 6])),
        "Numbers of dimensions don't match. From Shape 3 vs from HloSharding 2",
    );
}

#[test]
fn hsh_04_what_they_have_in_common() {
    let client = fixture(6, 4);
    let base = hlo(tile(&[2, 3]), six());
    let reversed = hlo(tile(&[2, 3]), list(&client, (0..6).rev()));
    assert!(base.has_same_partitioning(&reversed));
    assert!(!base.has_same_partitioning(&hlo(tile(&[3, 1]), list(&client, 0..3))));
    assert!(!base.has_same_partitioning(&hlo(tile(&[3, 2]), six())));
    let all = hlo(HloSharding::Replicated, six());
    let half = hlo(HloSharding::Replicated, list(&client, 0..3));
    assert!(!all.has_same_partitioning(&half));
}

#[test]
fn hsh_05_other_devices() {
    let client = fixture(6, 4);
    let base = hlo(tile(&[2, 3]), six());
    let to = list(&client, (0..6).rev());
    let moved = base.with_device_assignment(Some(to.clone()), None).unwrap();
    assert_eq!(*moved, hlo(tile(&[2, 3]), to));
    invalid_with(
        base.with_device_assignment(Some(list(&client, 0..3)), None),
        "HloSharding should have the same number of devices as the current sharding, but was \
         asked to have 3 devices",
    );
}

/// The domains for all six devices, the first four when asked for, and the same shapes.
#[track_caller]
fn check(sharding: HloSharding, array: &[i64], expected: &[(&[i64], &[i64])]) {
    let devices = six();
    let sharding = hlo(sharding, devices.clone());
    let domains: Vec<_> = expected
        .iter()
        .map(|(origin, dims)| domain(origin, dims))
        .collect();
    let shapes: Vec<_> = expected.iter().map(|(_, dims)| *dims).collect();
    let array = shape(array);
    assert_eq!(sharding.index_domains(&array, All), Ok(domains.clone()));
    assert_eq!(
        sharding.index_domains(&array, Addressable),
        Ok(domains[..4].to_vec())
    );
    check_shards(sharding.disassemble(&array, All), &devices, shapes.iter());
    check_shards(
        sharding.disassemble(&array, Addressable),
        &devices,
        shapes[..4].iter(),
    );
}

#[test]
fn hsh_06_replicated() {
    let whole: (&[i64], &[i64]) = (&[0, 0], &[10, 20]);
    check(HloSharding::Replicated, &[10, 20], &[whole; 6]);
}

#[test]
fn hsh_07_even_tiles() {
    let expected: [(&[i64], &[i64]); 6] = [
        (&[0, 0], &[2, 20]),
        (&[2, 0], &[2, 20]),
        (&[4, 0], &[2, 20]),
        (&[6, 0], &[2, 20]),
        (&[8, 0], &[2, 20]),
        (&[10, 0], &[2, 20]),
    ];
    check(tile(&[6, 1]), &[12, 20], &expected);
}

#[test]
fn hsh_08_uneven_tiles() {
    let expected: [(&[i64], &[i64]); 6] = [
        (&[0, 0], &[2, 20]),
        (&[2, 0], &[2, 20]),
        (&[4, 0], &[2, 20]),
        (&[6, 0], &[2, 20]),
        (&[8, 0], &[2, 20]),
        (&[10, 0], &[1, 20]),
    ];
    check(tile(&[6, 1]), &[11, 20], &expected);
}

#[test]
fn hsh_09_10_11_partial_tiles_and_subgroups() {
    let expected: [(&[i64], &[i64]); 6] = [
        (&[0, 0], &[5, 20]),
        (&[0, 0], &[5, 20]),
        (&[0, 0], &[5, 20]),
        (&[5, 0], &[5, 20]),
        (&[5, 0], &[5, 20]),
        (&[5, 0], &[5, 20]),
    ];
    check(partial(&[2, 1, 3]), &[10, 20], &expected);
    for kind in [SubgroupType::Replicated, SubgroupType::Maximal] {
        check(subgroup(&[2, 1, 3], kind), &[10, 20], &expected);
    }
}

#[test]
fn hsh_12_iota_order_is_the_listed_order() {
    let iota = DeviceOrder::Iota {
        reshape_dims: vec![2, 2],
        transpose_perm: vec![1, 0],
    };
    let listed = DeviceOrder::Explicit(vec![0, 2, 1, 3]);
    let devices = list(&fixture(6, 4), 0..4);
    let found = [iota, listed].map(|order| {
        let tiles = TileAssignment::new(vec![2, 2], order, vec![], false).unwrap();
        let sharding = hlo(HloSharding::Tiled(tiles), devices.clone());
        sharding.index_domains(&shape(&[4, 4]), All).unwrap()
    });
    assert_eq!(found[0], found[1]);
    let origins: Vec<&[i64]> = found[0].iter().map(IndexDomain::origin).collect();
    assert_eq!(
        origins,
        [&[0, 0], &[2, 0], &[0, 2], &[2, 2]],
        "1 and 2 change places"
    );
}

#[test]
fn hsh_13_14_15_what_the_program_decides() {
    let devices = six();
    for (sharding, name) in [
        (HloSharding::Unreduced, "Unreduced"),
        (HloSharding::Manual, "Manual"),
    ] {
        let sharding = hlo(sharding, devices.clone());
        let array = shape(&[10, 20]);
        invalid_with(
            sharding.index_domains(&array, All),
            &format!("{name} sharding does not support IndexDomains"),
        );
        check_shards(sharding.disassemble(&array, All), &devices, [[10, 20]; 6]);
        check_shards(
            sharding.disassemble(&array, Addressable),
            &devices,
            [[10, 20]; 4],
        );
    }
}

#[test]
fn hsh_16_an_array_of_another_rank() {
    let tiled = hlo(tile(&[2, 1]), two());
    for shards in [Addressable, All] {
        invalid_with(
            tiled.disassemble(&shape(&[10]), shards),
            "shape must have 2 dimensions, but has 1 dimensions",
        );
    }
}

#[test]
fn hsh_17_bounded_dimensions() {
    let bounded = bounded(&[10, 20], &[true, false]);
    for kind in [HloSharding::Replicated, tile(&[6, 1])] {
        invalid_with(
            hlo(kind, six()).disassemble_dynamic(&bounded, All),
            "can only disassemble static shape",
        );
    }
}
