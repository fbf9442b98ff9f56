use ifrt::proto::xla::ifrt::{IndexDomainProto, IndexProto};
use ifrt::serdes::{
    index_domain_from_proto, index_domain_to_proto, index_from_proto, index_to_proto,
};
use ifrt::{Index, IndexDomain};

use super::{assert_hash_is_consistent, assert_invalid, shape};

fn index(elements: &[i64]) -> Index {
    Index::new(elements).unwrap()
}

fn domain(origin: &[i64], dims: &[i64]) -> IndexDomain {
    IndexDomain::try_new(index(origin), shape(dims)).unwrap()
}

#[test]
fn ix_01_elements() {
    assert_eq!(index(&[1, 2]).elements(), [1, 2]);
    assert_eq!(Index::zeros(2), index(&[0, 0]));
    assert_invalid(
        Index::new([0, -1]),
        "non-negative element values, but got -1",
    );
}

#[test]
fn ix_02_arithmetic() {
    let base = index(&[11, 22]);
    assert_eq!(base.checked_add(&index(&[2, 3])), Ok(index(&[13, 25])));
    assert_eq!(base.checked_sub(&index(&[2, 3])), Ok(index(&[9, 19])));
    assert_eq!(base.checked_mul(&[1, 2]), Ok(index(&[11, 44])));
    assert_ne!(base, index(&[22, 11]));
}

#[test]
fn ix_02_arithmetic_that_has_no_result_is_an_error() {
    let base = index(&[1, i64::MAX]);
    let ranks = "different numbers of dimensions";
    assert_invalid(base.checked_add(&index(&[1])), ranks);
    assert_invalid(base.checked_mul(&[1, 2, 3]), ranks);
    let range = "is negative or exceeds 64 bits";
    assert_invalid(base.checked_add(&index(&[0, 1])), range);
    assert_invalid(base.checked_sub(&index(&[2, 0])), range);
    assert_invalid(base.checked_mul(&[1, 2]), range);
    assert_invalid(base.checked_mul(&[-1, 0]), range);
}

#[test]
fn ix_03_hash() {
    let elements: [&[i64]; 5] = [&[], &[1], &[2], &[1, 2], &[2, 1]];
    let make = || elements.map(index);
    assert_hash_is_consistent(&make(), &make());
}

#[test]
fn ix_04_round_trip() {
    for elements in [&[][..], &[1, 2]] {
        let proto = index_to_proto(&index(elements));
        assert_eq!(index_from_proto(&proto), Ok(index(elements)));
    }
    let negative = IndexProto {
        elements: vec![-3],
        version_number: 0,
    };
    assert_invalid(index_from_proto(&negative), "but got -3");
}

#[test]
fn ix_05_domains() {
    let part = domain(&[1, 2], &[3, 4]);
    assert_eq!(part.origin(), [1, 2]);
    assert_eq!(*part.origin_index(), index(&[1, 2]));
    assert_eq!(*part.shape(), shape(&[3, 4]));
    assert_eq!(IndexDomain::whole(shape(&[3, 4])), domain(&[0, 0], &[3, 4]));
    assert_eq!(part.to_string(), "IndexDomain(origin=[1,2],shape=[3,4])");
}

#[test]
fn ix_06_domains_move() {
    let part = domain(&[1, 2], &[3, 4]);
    let offset = index(&[1, 2]);
    assert_eq!(part.checked_add(&offset), Ok(domain(&[2, 4], &[3, 4])));
    assert_eq!(part.checked_sub(&offset), Ok(domain(&[0, 0], &[3, 4])));
    let range = "is negative or exceeds 64 bits";
    assert_invalid(part.checked_sub(&index(&[2, 0])), range);
    let far = index(&[i64::MAX - 2, 0]);
    assert_invalid(part.checked_add(&far), "ends beyond 64 bits");
}

#[test]
fn ix_07_hash() {
    let make = || {
        [
            domain(&[], &[]),
            domain(&[1], &[2]),
            domain(&[2], &[1]),
            domain(&[1, 2], &[3, 4]),
            domain(&[3, 4], &[1, 2]),
        ]
    };
    assert_hash_is_consistent(&make(), &make());
}

#[test]
fn ix_08_round_trip() {
    for part in [domain(&[], &[]), domain(&[1, 2], &[3, 4])] {
        let proto = index_domain_to_proto(&part);
        assert_eq!(index_domain_from_proto(&proto), Ok(part));
    }
    let uneven = IndexDomainProto {
        origin: None,
        ..index_domain_to_proto(&domain(&[1], &[1]))
    };
    assert_invalid(
        index_domain_from_proto(&uneven),
        "different numbers of dimensions",
    );
}
