//! What the tests of HLO shardings beside the code leave: specs, equality, text.

use ifrt::fake::FakeClient;
use ifrt::xla::{DeviceOrder, HloSharding, SubgroupType, TileAssignment};
use ifrt::{MemoryKind, Result, Sharding, ShardingRef, ShardingSpec};

use super::{assert_hash_is_consistent, assert_invalid, fixture, list};

const SIX: [usize; 6] = [0, 1, 2, 3, 4, 5];

fn on(client: &FakeClient, positions: &[usize], hlo: HloSharding) -> ShardingRef {
    Sharding::hlo(hlo, list(client, positions), MemoryKind::default()).unwrap()
}

fn tile(dims: &[i64]) -> HloSharding {
    HloSharding::tile(dims).unwrap()
}

/// Tiles of which the last dimension counts copies.
fn partial(dims: &[i64]) -> HloSharding {
    with_order(dims, iota(&[dims.iter().product()], &[0]), &[], true)
}

fn subgroup(dims: &[i64], kind: SubgroupType) -> HloSharding {
    with_order(dims, iota(&[dims.iter().product()], &[0]), &[kind], false)
}

fn iota(reshape_dims: &[i64], transpose_perm: &[i32]) -> DeviceOrder {
    DeviceOrder::Iota {
        reshape_dims: reshape_dims.to_vec(),
        transpose_perm: transpose_perm.to_vec(),
    }
}

fn with_order(
    dims: &[i64],
    order: DeviceOrder,
    subgroups: &[SubgroupType],
    replicate: bool,
) -> HloSharding {
    let tiles = TileAssignment::new(dims.to_vec(), order, subgroups.to_vec(), replicate);
    HloSharding::Tiled(tiles.unwrap())
}

#[test]
fn only_copies_along_subgroups_are_copies() {
    let client = fixture(6, 4);
    for (kind, copies) in [
        (SubgroupType::Replicated, true),
        (SubgroupType::Maximal, false),
        (SubgroupType::Manual, false),
        (SubgroupType::Unreduced, false),
        (SubgroupType::Unknown, false),
    ] {
        let sharding = on(&client, &SIX, subgroup(&[1, 6], kind));
        assert_eq!(sharding.is_fully_replicated(), copies, "{sharding}");
        let spec = sharding.sharding_spec();
        assert_eq!(spec.is_fully_replicated(), copies, "{spec}");
    }
}

#[test]
fn equal_orders_are_equal_however_they_are_written() {
    let make = |order| with_order(&[2, 2], order, &[], false);
    let swapped = make(iota(&[2, 2], &[1, 0]));
    let listed = make(DeviceOrder::Explicit(vec![0, 2, 1, 3]));
    let straight = make(DeviceOrder::Explicit(vec![0, 1, 2, 3]));
    let shaped = make(iota(&[2, 2], &[0, 1]));
    assert_hash_is_consistent(&[swapped, tile(&[2, 2])], &[listed, straight]);
    assert_eq!(tile(&[2, 2]), shaped);
}

#[test]
fn hsh_18_hash() {
    let client = fixture(6, 4);
    let make = || {
        [
            on(&client, &SIX, HloSharding::Replicated),
            on(&client, &[0], HloSharding::Replicated),
            on(&client, &SIX, HloSharding::Replicated)
                .with_device_assignment(None, Some(MemoryKind::new("pinned_host")))
                .unwrap(),
            on(&client, &SIX, HloSharding::Maximal(0)),
            on(&client, &SIX, partial(&[2, 3])),
        ]
    };
    assert_hash_is_consistent(&make(), &make());
}

#[test]
fn hsh_19_specs_become_shardings() -> Result<()> {
    let client = fixture(6, 4);
    let spec = ShardingSpec::hlo(tile(&[2, 1]), 2)?;
    let sharding = spec.to_sharding(list(&client, &[0, 1]), MemoryKind::default())?;
    assert_eq!(*sharding.sharding_spec(), spec);
    assert_invalid(
        spec.to_sharding(list(&client, &[0]), MemoryKind::default()),
        "HloShardingSpec requires 2 devices, but received 1 devices",
    );
    Ok(())
}

#[test]
fn text_is_that_of_hlo() {
    for (hlo, text) in [
        (HloSharding::Replicated, "{replicated}"),
        (HloSharding::Manual, "{manual}"),
        (HloSharding::Unknown, "{unknown}"),
        (HloSharding::Unreduced, "{unreduced}"),
        (HloSharding::Maximal(3), "{maximal device=3}"),
        (tile(&[2, 3]), "{devices=[2,3]<=[6]}"),
        (
            partial(&[2, 1, 3]),
            "{devices=[2,1,3]<=[6] last_tile_dim_replicate}",
        ),
        (
            subgroup(&[2, 1, 3], SubgroupType::Manual),
            "{devices=[2,1,3]<=[6] last_tile_dims={manual}}",
        ),
        (
            with_order(&[2, 2], iota(&[2, 2], &[1, 0]), &[], false),
            "{devices=[2,2]<=[2,2]T(1,0)}",
        ),
        (
            with_order(&[2], DeviceOrder::Explicit(vec![1, 0]), &[], false),
            "{devices=[2]1,0}",
        ),
        (HloSharding::Tuple(vec![]), "{}"),
        (
            HloSharding::Tuple(vec![HloSharding::Replicated; 6]),
            "{{replicated}, {replicated}, {replicated}, {replicated}, {replicated}, /*index=5*/\
             {replicated}}",
        ),
    ] {
        assert_eq!(hlo.to_string(), text);
    }
}
