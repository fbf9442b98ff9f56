//! RSH: resharding, where every part comes from wherever it is.

use std::sync::Arc;

use ifrt::ArrayCopySemantics::{AlwaysCopy, DonateInput};
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::xla::{DeviceOrder, HloSharding, TileAssignment};
use ifrt::{ArraySpec, Client, Code, DType, MemoryKind, ShardSemantics, ShardingRef, Status};

use crate::support::*;

const ALL: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

fn eight() -> Arc<FakeClient> {
    FakeClient::new(FakeOptions {
        num_devices: 8,
        ..FakeOptions::default()
    })
}

fn spec(dims: &[i64], sharding: &ShardingRef) -> ArraySpec {
    ArraySpec {
        dtype: DType::F32,
        shape: shape(dims),
        sharding: Arc::clone(sharding),
        layout: None,
    }
}

/// `dims` tiles, copied along a further dimension.
fn partial(client: &FakeClient, positions: &[usize], dims: &[i64]) -> ShardingRef {
    let order = DeviceOrder::Iota {
        reshape_dims: vec![dims.iter().product()],
        transpose_perm: vec![0],
    };
    let tiles = TileAssignment::new(dims.to_vec(), order, Vec::new(), true).unwrap();
    hlo(HloSharding::Tiled(tiles), devices(client, positions))
}

/// Each shard holds the part of `0, 1, 2, …` that its sharding says.
#[track_caller]
fn check_parts(array: &ifrt::ArrayRef) {
    let dims = array.shape().dims();
    let domains = array
        .sharding()
        .index_domains(array.shape(), ShardSemantics::All)
        .unwrap();
    for (shard, domain) in read_shards(array).unwrap().iter().zip(domains) {
        let mut expected = vec![0.0];
        for ((origin, extent), dim) in domain.origin().iter().zip(domain.shape().dims()).zip(dims) {
            expected = expected
                .iter()
                .flat_map(|base| {
                    (*origin..origin + extent).map(move |index| base * *dim as f32 + index as f32)
                })
                .collect();
        }
        assert_eq!(*shard, expected, "{domain:?}");
    }
}

#[test]
fn rsh_01_to_20_all_tilings() {
    let client = eight();
    let replicated = |positions: &[usize]| replicated(&client, positions);
    let tiled = |positions: &[usize], tiles: &[i64]| tiled(&client, positions, tiles);
    let cases = [
        ("RSH-01", vec![4, 8], tiled(&ALL, &[4, 2]), replicated(&ALL)),
        (
            "RSH-01",
            vec![4, 8],
            tiled(&ALL, &[4, 2]),
            tiled(&ALL, &[2, 4]),
        ),
        ("RSH-07", vec![], replicated(&ALL), replicated(&ALL)),
        ("RSH-10", vec![4, 8], replicated(&ALL), tiled(&ALL, &[4, 2])),
        (
            "RSH-12",
            vec![4, 8],
            tiled(&ALL, &[4, 2]),
            partial(&client, &ALL, &[1, 4, 2]),
        ),
        (
            "RSH-13",
            vec![0, 4],
            tiled(&ALL, &[4, 2]),
            tiled(&ALL, &[2, 4]),
        ),
        ("RSH-14", vec![], replicated(&[0, 1]), replicated(&ALL)),
        (
            "RSH-17",
            vec![4, 8],
            replicated(&[0, 1]),
            tiled(&ALL, &[4, 2]),
        ),
        (
            "RSH-18",
            vec![4, 4, 4],
            tiled(&ALL, &[2, 2, 2]),
            tiled(&[4, 0], &[1, 2, 1]),
        ),
        (
            "RSH-19",
            vec![4, 8],
            tiled(&[1, 0], &[2, 1]),
            partial(&client, &ALL, &[1, 4, 2]),
        ),
        (
            "uneven",
            vec![5, 7],
            tiled(&ALL, &[2, 4]),
            tiled(&[3, 2, 1], &[3, 1]),
        ),
    ];
    for (id, dims, from, to) in cases {
        for (from_kind, to_kind) in [("device", "pinned_host"), ("unpinned_host", "device")] {
            let with = |sharding: &ShardingRef, kind| {
                let kind = Some(MemoryKind::new(kind));
                sharding.with_device_assignment(None, kind).unwrap()
            };
            let (from, to) = (with(&from, from_kind), with(&to, to_kind));
            let source = array(&client, &dims, &from);
            let there = client
                .reshard_arrays(&[Arc::clone(&source)], &[spec(&dims, &to)], DonateInput)
                .unwrap();
            assert!(source.is_deleted(), "{id}");
            assert!(Arc::ptr_eq(there[0].sharding(), &to), "{id}");
            check_parts(&there[0]);
            let back = client
                .reshard_arrays(&there, &[spec(&dims, &from)], AlwaysCopy)
                .unwrap();
            check_parts(&back[0]);
        }
    }
}

#[test]
fn rsh_03_only_the_failed_source_fails() {
    let client = eight();
    let (low, high) = (
        tiled(&client, &[0, 1], &[2, 1]),
        tiled(&client, &[4, 5], &[1, 2]),
    );
    let error = Status::internal("injected error");
    let good = array(&client, &[2, 2], &low);
    let bad = client
        .make_error_arrays(error.clone(), &[spec(&[2, 2], &high)])
        .unwrap()
        .remove(0);
    let targets = [
        spec(&[2, 2], &replicated(&client, &[0, 1])),
        spec(&[2, 2], &high),
    ];
    let resharded = client
        .reshard_arrays(&[good, bad], &targets, DonateInput)
        .unwrap();
    check_parts(&resharded[0]);
    assert_eq!(wait(&resharded[1].ready()), Err(error));
}

#[test]
fn reshards_that_make_no_sense() {
    let client = eight();
    let from = tiled(&client, &[0, 1], &[2, 1]);
    let source = array(&client, &[2, 2], &from);
    let one = [Arc::clone(&source)];
    let other_dtype = ArraySpec {
        dtype: DType::S32,
        ..spec(&[2, 2], &from)
    };
    let manual = hlo(HloSharding::Manual, devices(&client, &[0, 1]));
    for specs in [
        vec![],
        vec![spec(&[4], &from)],
        vec![other_dtype],
        vec![spec(&[2, 2], &manual)],
    ] {
        let refused = client
            .reshard_arrays(&one, &specs, DonateInput)
            .unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{specs:?}");
        assert!(!source.is_deleted());
    }
}
