//! The ids are those of the contract's list for hash utilities.

use bytes::Bytes;

use super::*;
use crate::shape::Shape;
use crate::status::Code;

fn bytes(data: &[u8]) -> HostValue {
    HostValue::Bytes(Bytes::copy_from_slice(data))
}

fn domain(origin: &[i64], dims: &[i64]) -> IndexDomain {
    IndexDomain::new(origin, Shape::new(dims).unwrap())
}

fn logical(data: &[u8], origin: &[i64], dims: &[i64]) -> u64 {
    hash_logical(&bytes(data), DType::U8, &domain(origin, dims)).unwrap()
}

#[test]
fn bh_01_physical_hashes_differ_by_data_and_by_layout() {
    let row = Layout::parse("{1,0}").unwrap();
    let column = Layout::parse("{0,1}").unwrap();
    let hash = |data: &[u8], layout| hash_physical(&bytes(data), Some(layout));
    assert_eq!(hash(&[1, 2, 3, 4], &row), hash(&[1, 2, 3, 4], &row));
    assert_ne!(hash(&[1, 2, 3, 4], &row), hash(&[1, 3, 2, 4], &row));
    assert_ne!(hash(&[1, 2, 3, 4], &row), hash(&[1, 2, 3, 4], &column));
}

#[test]
fn bh_02_logical_hashes_differ_by_data_only() {
    assert_eq!(logical(&[1, 2], &[0], &[2]), logical(&[1, 2], &[0], &[2]));
    assert_ne!(logical(&[1, 2], &[0], &[2]), logical(&[2, 1], &[0], &[2]));
    assert_ne!(logical(&[1, 2], &[0], &[2]), logical(&[1, 2], &[1], &[2]));
}

#[test]
fn bh_03_equal_domains_are_one_group() {
    let (all, low, high) = (domain(&[0], &[4]), domain(&[0], &[2]), domain(&[2], &[2]));
    assert_eq!(replica_groups(&[all.clone(), all]), [0, 0]);
    assert_eq!(replica_groups(&[low.clone(), high.clone()]), [0, 1]);
    assert_eq!(
        replica_groups(&[low.clone(), high.clone(), low, high]),
        [0, 1, 0, 1]
    );
    assert!(replica_groups(&[]).is_empty());
}

#[test]
fn bh_04_only_logical_hashes_ignore_how_an_array_is_split() {
    // [[1, 2], [3, 4]] by rows and by columns.
    let rows = [(&[1, 2], [0, 0]), (&[3, 4], [1, 0])];
    let columns = [(&[1, 3], [0, 0]), (&[2, 4], [0, 1])];
    let all = |shards: [(&[u8; 2], [i64; 2]); 2], dims: &[i64], mode| {
        let hash = |(data, origin): (&[u8; 2], [i64; 2])| match mode {
            HashMode::Physical => hash_physical(&bytes(data), None),
            HashMode::Logical => logical(data, &origin, dims),
        };
        combine(&shards.map(hash), &[0, 1], mode).unwrap()
    };
    let both = |mode| (all(rows, &[1, 2], mode), all(columns, &[2, 1], mode));
    let (by_rows, by_columns) = both(HashMode::Physical);
    assert_ne!(by_rows, by_columns);
    let (by_rows, by_columns) = both(HashMode::Logical);
    assert_eq!(by_rows, by_columns);
    assert_eq!(by_rows, logical(&[1, 2, 3, 4], &[0, 0], &[2, 2]));
}

#[test]
fn bh_05_only_logical_hashes_ignore_the_number_of_shards() {
    let whole = [hash_physical(&bytes(&[1, 2, 3, 4]), None)];
    let halves = [&[1, 2][..], &[3, 4]].map(|half| hash_physical(&bytes(half), None));
    assert_ne!(
        combine(&whole, &[0], HashMode::Physical).unwrap(),
        combine(&halves, &[0, 1], HashMode::Physical).unwrap()
    );
    let whole = [logical(&[1, 2, 3, 4], &[0], &[4])];
    let halves = [logical(&[1, 2], &[0], &[2]), logical(&[3, 4], &[2], &[2])];
    assert_eq!(
        combine(&whole, &[0], HashMode::Logical).unwrap(),
        combine(&halves, &[0, 1], HashMode::Logical).unwrap()
    );
}

#[test]
fn bh_06_replicas_must_agree() {
    for mode in [HashMode::Physical, HashMode::Logical] {
        let error = combine(&[10, 20], &[0, 0], mode).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(
            error.message(),
            "Hash mismatch across replicas for shards 0 and 1 (replica group ID 0). hashes: 10 \
             vs. 20"
        );
        let one = combine(&[10], &[0], mode).unwrap();
        assert_eq!(combine(&[10, 10], &[3, 3], mode).unwrap(), one);
        assert!(combine(&[10], &[], mode).is_err());
    }
}

#[test]
fn elements_outside_the_domain_are_refused() {
    for (data, dims) in [(&[1, 2, 3][..], &[2][..]), (&[1], &[2]), (&[], &[1])] {
        let domain = domain(&vec![0; dims.len()], dims);
        let error = hash_logical(&bytes(data), DType::U8, &domain).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{data:?} {dims:?}");
    }
    let odd = hash_logical(&bytes(&[1, 2, 3]), DType::U16, &domain(&[0], &[1]));
    assert!(odd.is_err());
    let empty = hash_logical(&bytes(&[]), DType::F32, &domain(&[0, 0], &[0, 7]));
    assert_eq!(empty, Ok(0));
}

#[test]
fn strings_are_hashed_element_by_element() {
    let strings = |parts: [&'static str; 2]| HostValue::Strings(parts.map(Bytes::from).into());
    let hash = |parts| hash_physical(&strings(parts), None);
    assert_ne!(hash(["a", "bc"]), hash(["ab", "c"]));
    let hash = |parts| hash_logical(&strings(parts), DType::String, &domain(&[0], &[2])).unwrap();
    assert_eq!(hash(["a", "b"]), hash(["a", "b"]));
    assert_ne!(hash(["a", "b"]), hash(["b", "a"]));
}
