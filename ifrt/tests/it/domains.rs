//! NEW-15: index domains tile the array exactly, whatever the sharding.

use std::collections::HashMap;
use std::sync::Arc;

use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::sharding::ShardingParam;
use ifrt::xla::{DeviceOrder, HloSharding, SubgroupType, TileAssignment};
use ifrt::{Client, DeviceList, IndexDomain, MemoryKind, ShardSemantics, Sharding, ShardingKind};
use proptest::prelude::*;

use crate::support::*;

/// The devices of a client with `count` of them, of which all but the last third can be reached.
fn devices_of(count: usize) -> (Arc<FakeClient>, DeviceList) {
    let client = FakeClient::new(FakeOptions::fixture(count, count - count / 3));
    let list = client.devices().iter().cloned().collect();
    (client, list)
}

/// Numbers whose product is small.
fn factors(max_len: usize) -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(1..4_i64, 0..=max_len)
}

/// IFRT's parameters: axes with a permutation, and tiles that divide the number of devices.
fn param() -> impl Strategy<Value = ShardingParam> {
    prop::collection::vec(1..4_i32, 1..4)
        .prop_flat_map(|axes| {
            let count = axes.len();
            let order: Vec<i32> = (0..i32::try_from(count).unwrap()).collect();
            // Each axis splits a dimension, or copies.
            let uses = prop::collection::vec(0..4_usize, count);
            (Just(axes), Just(order).prop_shuffle(), uses, 0..4_usize)
        })
        .prop_map(|(axes, permutation, uses, rank)| {
            let mut dim_shards = vec![1; rank];
            for (size, axis) in axes.iter().zip(&uses) {
                if let Some(tiles) = dim_shards.get_mut(*axis) {
                    *tiles *= i64::from(*size);
                }
            }
            ShardingParam::new(dim_shards, permutation, axes, vec![]).unwrap()
        })
}

/// XLA's tiles in any order, with copies and subgroups.
fn tiles() -> impl Strategy<Value = TileAssignment> {
    (factors(3), factors(2), any::<bool>(), any::<bool>())
        .prop_flat_map(|(data, groups, replicate, iota)| {
            let dims: Vec<i64> = data.iter().chain(&groups).copied().collect();
            let count: i64 = dims.iter().product();
            let order = if iota {
                let reshape: Vec<i64> = dims.iter().copied().filter(|dim| *dim > 1).collect();
                let reshape = if reshape.is_empty() { vec![1] } else { reshape };
                let perm: Vec<i32> = (0..i32::try_from(reshape.len()).unwrap()).collect();
                (Just(reshape).prop_shuffle(), Just(perm).prop_shuffle())
                    .prop_map(|(reshape_dims, transpose_perm)| DeviceOrder::Iota {
                        reshape_dims,
                        transpose_perm,
                    })
                    .boxed()
            } else {
                let positions: Vec<i64> = (0..count).collect();
                Just(positions)
                    .prop_shuffle()
                    .prop_map(DeviceOrder::Explicit)
                    .boxed()
            };
            (Just(dims), Just(groups.len()), Just(replicate), order)
        })
        .prop_map(|(dims, groups, replicate, order)| {
            let replicate = replicate && groups > 0;
            let kinds = vec![SubgroupType::Replicated; groups - usize::from(replicate)];
            TileAssignment::new(dims, order, kinds, replicate).unwrap()
        })
}

/// How many domains hold each element, by position in the array.
fn cover(domains: &[IndexDomain], dims: &[i64]) -> HashMap<Vec<i64>, usize> {
    let mut counts = HashMap::new();
    for domain in domains {
        let mut elements = vec![vec![]];
        for (origin, extent) in domain.origin().iter().zip(domain.shape().dims()) {
            elements = elements
                .into_iter()
                .flat_map(|head: Vec<i64>| {
                    (*origin..origin + extent).map(move |index| [&head[..], &[index]].concat())
                })
                .collect();
        }
        for element in elements {
            assert!(
                element.iter().zip(dims).all(|(index, dim)| index < dim),
                "{element:?}"
            );
            *counts.entry(element).or_default() += 1;
        }
    }
    counts
}

fn check(sharding: &Sharding, dims: &[i64], copies: usize) -> Result<(), TestCaseError> {
    let array = shape(dims);
    let domains = sharding.index_domains(&array, ShardSemantics::All).unwrap();
    prop_assert_eq!(domains.len(), sharding.devices().len());
    let counts = cover(&domains, dims);
    prop_assert_eq!(
        counts.len(),
        usize::try_from(array.num_elements()).unwrap(),
        "gaps"
    );
    prop_assert!(
        counts.values().all(|count| *count == copies),
        "{copies}: {counts:?}"
    );

    let pieces = sharding.disassemble(&array, ShardSemantics::All).unwrap();
    let whole = domains.iter().all(|domain| *domain.shape() == array);
    prop_assert!(!sharding.is_fully_replicated() || whole);
    for (((extent, single), domain), device) in pieces.iter().zip(&domains).zip(sharding.devices())
    {
        prop_assert_eq!(extent, domain.shape());
        prop_assert_eq!(single.devices().ids().next(), Some(device.id()));
    }

    let reachable: Vec<bool> = sharding
        .devices()
        .iter()
        .map(|one| one.is_addressable())
        .collect();
    let here = |all: &[IndexDomain]| -> Vec<IndexDomain> {
        let pairs = all.iter().zip(&reachable);
        pairs
            .filter(|(_, here)| **here)
            .map(|(domain, _)| domain.clone())
            .collect()
    };
    let addressable = sharding
        .index_domains(&array, ShardSemantics::Addressable)
        .unwrap();
    prop_assert_eq!(addressable, here(&domains));
    Ok(())
}

/// One extent per dimension: `sizes` tiles of it, and a little more if tiles may be short.
fn extents(tiles: &[i64], sizes: &[i64], more: &[i64]) -> Vec<i64> {
    let parts = tiles.iter().zip(sizes).zip(more);
    parts
        .map(|((tiles, size), more)| tiles * size + more)
        .collect()
}

proptest! {
    #[test]
    fn new_15_parameters(param in param(), sizes in prop::collection::vec(0..4_i64, 4)) {
        let count = usize::try_from(param.num_devices()).unwrap();
        let (_client, devices) = devices_of(count);
        let tiles: i64 = param.dim_shards().iter().product();
        let copies = count / usize::try_from(tiles).unwrap();
        let dims = extents(param.dim_shards(), &sizes, &[0; 4]);
        let kind = ShardingKind::Param(param);
        let sharding = Sharding::new(kind, devices, MemoryKind::default()).unwrap();
        check(&sharding, &dims, copies)?;
    }

    #[test]
    fn new_15_tiles(
        tiles in tiles(),
        sizes in prop::collection::vec(0..4_i64, 4),
        more in prop::collection::vec(0..3_i64, 4),
    ) {
        let count = usize::try_from(tiles.num_devices()).unwrap();
        let (_client, devices) = devices_of(count);
        let data: i64 = tiles.data_dims().iter().product();
        let copies = count / usize::try_from(data).unwrap();
        let dims = extents(tiles.data_dims(), &sizes, &more);
        let sharding = hlo(HloSharding::Tiled(tiles), devices);
        check(&sharding, &dims, copies)?;
    }

    /// An iota order says what its list of positions says.
    #[test]
    fn hsh_20_iota_and_listed_orders_agree(tiles in tiles(), size in 0..5_i64) {
        let listed = TileAssignment::new(
            tiles.dims().to_vec(),
            DeviceOrder::Explicit(tiles.positions()),
            tiles.subgroups().to_vec(),
            tiles.replicate_on_last_tile_dim(),
        )
        .unwrap();
        let dims = vec![size; tiles.data_dims().len()];
        let count = usize::try_from(tiles.num_devices()).unwrap();
        let domains = |tiles| HloSharding::Tiled(tiles).index_domains(&shape(&dims), count);
        prop_assert_eq!(domains(tiles), domains(listed));
    }
}
