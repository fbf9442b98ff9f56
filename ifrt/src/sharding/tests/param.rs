//! Shardings by IFRT's own parameters.

use super::*;

fn param(dim_shards: &[i64], permutation: &[i32], axes: &[i32], unreduced: &[i32]) -> ShardingKind {
    let param = ShardingParam::new(
        dim_shards.to_vec(),
        permutation.to_vec(),
        axes.to_vec(),
        unreduced.to_vec(),
    );
    ShardingKind::Param(param.unwrap())
}

fn grid() -> ShardingKind {
    param(&[2, 3], &[1, 0], &[3, 2], &[])
}

#[test]
fn shd_24_parameters_for_other_devices() {
    invalid_with(
        Sharding::new(grid(), two(), MemoryKind::default()),
        "Device counts don't match. From ShardingParam 6 vs from DeviceList 2",
    );
}

#[test]
fn shd_25_replicated_if_there_is_one_tile() {
    for (dim_shards, replicated) in [([1, 1], true), ([1, 6], false), ([2, 3], false)] {
        let kind = param(&dim_shards, &[1, 0], &[3, 2], &[]);
        assert_eq!(sharding(kind, six()).is_fully_replicated(), replicated);
    }
}

#[test]
fn shd_26_the_shape_of_a_tile() {
    let unreduced = param(&[2, 1], &[0, 1], &[2, 3], &[1]);
    for (kind, tile) in [(grid(), [3, 2]), (unreduced, [3, 6])] {
        let sharding = sharding(kind, six());
        assert_eq!(sharding.shard_shape(&shape(&[6, 6])), Ok(shape(&tile)));
        invalid_with(
            sharding.shard_shape(&shape(&[6, 6, 6])),
            "Numbers of dimensions don't match. From Shape 3 vs from ShardingParam 2",
        );
    }
}

#[test]
fn shd_27_what_they_have_in_common() {
    let client = fixture(6, 4);
    let base = sharding(grid(), six());
    let reversed = sharding(grid(), list(&client, (0..6).rev()));
    assert!(base.has_same_partitioning(&reversed));
    let fewer = sharding(param(&[3, 1], &[1, 0], &[1, 3], &[]), list(&client, 0..3));
    assert!(!base.has_same_partitioning(&fewer));
    let other = sharding(param(&[3, 2], &[1, 0], &[3, 2], &[]), six());
    assert!(!base.has_same_partitioning(&other));
}

#[test]
fn shd_28_other_devices() {
    let client = fixture(6, 4);
    let base = sharding(grid(), six());
    let to = list(&client, (0..6).rev());
    let moved = base.with_device_assignment(Some(to.clone()), None).unwrap();
    assert_eq!(*moved, sharding(grid(), to));
    invalid_with(
        base.with_device_assignment(Some(list(&client, 0..3)), None),
        "ShardingParamSharding should have the same number of devices as the current sharding, \
         but was asked to have 3 devices",
    );
}

#[test]
fn shd_29_tiles_on_six_devices() {
    let devices = six();
    let base = sharding(grid(), devices.clone());
    check_shards(
        base.disassemble(&shape(&[6, 6]), All),
        &devices,
        [[3, 2]; 6],
    );
    check_shards(
        base.disassemble(&shape(&[6, 6]), Addressable),
        &devices,
        [[3, 2]; 4],
    );
    for shards in [Addressable, All] {
        invalid_with(
            base.disassemble(&shape(&[6, 6, 6]), shards),
            "Numbers of dimensions don't match. From Shape 3 vs from ShardingParam 2",
        );
        invalid_with(
            base.disassemble(&shape(&[7, 6]), shards),
            "Uneven shard is not supported. dim: 7, dim_shards: 2",
        );
    }
}

#[test]
fn shd_30_index_domains_of_the_reference() {
    type Origins = &'static [&'static [i64]];
    let cases: [(ShardingKind, &[i64], &[i64], Origins); 4] = [
        (
            param(&[2, 3], &[0, 1], &[2, 3], &[]),
            &[6, 6],
            &[3, 2],
            &[&[0, 0], &[0, 2], &[0, 4], &[3, 0], &[3, 2], &[3, 4]],
        ),
        (
            grid(),
            &[6, 6],
            &[3, 2],
            &[&[0, 0], &[0, 4], &[3, 2], &[0, 2], &[3, 0], &[3, 4]],
        ),
        (
            param(&[2, 1], &[0, 1], &[2, 3], &[]),
            &[6, 6],
            &[3, 6],
            &[&[0, 0], &[0, 0], &[0, 0], &[3, 0], &[3, 0], &[3, 0]],
        ),
        (
            param(&[], &[0], &[6], &[]),
            &[],
            &[],
            &[&[], &[], &[], &[], &[], &[]],
        ),
    ];
    for (kind, array, tile, origins) in cases {
        let sharding = sharding(kind, six());
        let expected: Vec<_> = origins.iter().map(|origin| domain(origin, tile)).collect();
        let found = |shards| sharding.index_domains(&shape(array), shards).unwrap();
        assert_eq!(found(All), expected, "{sharding:?}");
        assert_eq!(found(Addressable), expected[..4], "{sharding:?}");
    }
}
