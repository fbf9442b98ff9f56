use super::*;

fn shape(dims: &[i64]) -> Shape {
    Shape::new(dims).unwrap()
}

fn tiled(dims: &[i64], reshape: &[i64], perm: &[i32], replicate: bool) -> HloSharding {
    let order = DeviceOrder::Iota {
        reshape_dims: reshape.to_vec(),
        transpose_perm: perm.to_vec(),
    };
    HloSharding::Tiled(TileAssignment::new(dims.to_vec(), order, Vec::new(), replicate).unwrap())
}

fn origins(sharding: &HloSharding, dims: &[i64], devices: usize) -> Vec<(Vec<i64>, Vec<i64>)> {
    let domains = sharding.index_domains(&shape(dims), devices).unwrap();
    domains
        .iter()
        .map(|d| (d.origin().to_vec(), d.shape().dims().to_vec()))
        .collect()
}

#[test]
fn iota_is_transposed() {
    assert_eq!(transposed_iota(&[2, 3], &[1, 0]), [0, 3, 1, 4, 2, 5]);
    assert_eq!(transposed_iota(&[4], &[0]), [0, 1, 2, 3]);
    assert_eq!(
        transposed_iota(&[2, 2, 2], &[2, 0, 1]),
        [0, 2, 4, 6, 1, 3, 5, 7]
    );
    assert_eq!(transposed_iota(&[], &[]), [0]);
}

#[test]
fn even_tiles() {
    let split = tiled(&[6, 1], &[6], &[0], false);
    let found = origins(&split, &[12, 20], 6);
    for (n, (origin, extent)) in (0..).zip(found) {
        assert_eq!((origin, extent), (vec![2 * n, 0], vec![2, 20]));
    }
    assert_eq!(
        split.shard_shape(&shape(&[12, 20])).unwrap(),
        shape(&[2, 20])
    );
    assert_eq!(
        split.global_shape(&shape(&[2, 20])).unwrap(),
        shape(&[12, 20])
    );
}

#[test]
fn the_last_tile_may_be_short_or_empty() {
    let split = tiled(&[6, 1], &[6], &[0], false);
    assert_eq!(origins(&split, &[11, 20], 6)[5], (vec![10, 0], vec![1, 20]));
    assert_eq!(origins(&split, &[2, 20], 6)[5], (vec![2, 0], vec![0, 20]));
}

#[test]
fn partial_tiles_are_copies() {
    let partial = tiled(&[2, 1, 3], &[6], &[0], true);
    let found = origins(&partial, &[10, 20], 6);
    for (n, (origin, extent)) in found.into_iter().enumerate() {
        let start = if n < 3 { 0 } else { 5 };
        assert_eq!((origin, extent), (vec![start, 0], vec![5, 20]));
    }
    assert!(!partial.is_fully_replicated(6));
    assert!(tiled(&[1, 1, 6], &[6], &[0], true).is_fully_replicated(6));
}

#[test]
fn transposed_tiles_swap_devices() {
    let swapped = tiled(&[2, 2], &[2, 2], &[1, 0], false);
    let starts: Vec<_> = origins(&swapped, &[4, 4], 4)
        .into_iter()
        .map(|(o, _)| o)
        .collect();
    assert_eq!(starts, [vec![0, 0], vec![2, 0], vec![0, 2], vec![2, 2]]);
}

#[test]
fn wrong_assignments_are_refused() {
    let explicit = |dims: &[i64], positions: &[i64]| {
        TileAssignment::new(
            dims.to_vec(),
            DeviceOrder::Explicit(positions.to_vec()),
            Vec::new(),
            false,
        )
    };
    assert!(explicit(&[2], &[1, 0]).is_ok());
    for (dims, positions) in [
        (&[2][..], &[0][..]),
        (&[2], &[0, 0]),
        (&[2], &[0, 2]),
        (&[2], &[0, -1]),
        (&[0], &[]),
        (&[-1, -2], &[0, 1]),
        (&[i64::MAX, 2], &[]),
    ] {
        assert!(explicit(dims, positions).is_err(), "{dims:?} {positions:?}");
    }
    let iota = |reshape: &[i64], perm: &[i32]| {
        let order = DeviceOrder::Iota {
            reshape_dims: reshape.to_vec(),
            transpose_perm: perm.to_vec(),
        };
        TileAssignment::new(vec![4], order, Vec::new(), false)
    };
    assert!(iota(&[2, 2], &[1, 0]).is_ok());
    assert!(iota(&[2, 2], &[0, 0]).is_err());
    assert!(iota(&[2, 2], &[0]).is_err());
    assert!(iota(&[3], &[0]).is_err());
    assert!(TileAssignment::new(vec![], DeviceOrder::Explicit(vec![0]), vec![], true).is_err());
}

#[test]
fn ranks_and_counts_are_checked() {
    let split = HloSharding::tile([2, 3]).unwrap();
    assert_eq!(
        split.shard_shape(&shape(&[6, 6, 6])).unwrap_err().message(),
        "Numbers of dimensions don't match. From Shape 3 vs from HloSharding 2"
    );
    assert!(split.index_domains(&shape(&[6, 6]), 5).is_err());
    assert_eq!(
        HloSharding::Manual
            .index_domains(&shape(&[6]), 2)
            .unwrap_err()
            .message(),
        "Manual sharding does not support IndexDomains"
    );
}
