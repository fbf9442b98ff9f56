use ifrt::shape::Shape;
use proptest::prelude::*;

use super::*;

fn domain(origin: &[i64], dims: &[i64]) -> IndexDomain {
    IndexDomain::new(origin, Shape::new(dims).unwrap())
}

/// The position of an element in a dense array over the box; `None` if it lies outside.
fn place(domain: &IndexDomain, index: &[i64]) -> Option<usize> {
    let dims = domain.origin().iter().zip(domain.shape().dims()).zip(index);
    let mut place = 0;
    for ((start, len), at) in dims {
        if at < start || at - start >= *len {
            return None;
        }
        place = place * len + (at - start);
    }
    usize::try_from(place).ok()
}

fn any_box(rank: usize) -> impl Strategy<Value = IndexDomain> {
    let dims = prop::collection::vec((0..3_i64, 0..4_i64), rank);
    dims.prop_map(|dims| {
        let (origin, dims): (Vec<i64>, Vec<i64>) = dims.into_iter().unzip();
        domain(&origin, &dims)
    })
}

proptest! {
    /// Against one element at a time.
    #[test]
    fn common_elements_are_copied_and_no_others(
        (to, from) in (0..4_usize).prop_flat_map(|rank| (any_box(rank), any_box(rank))),
        item in 1..3_usize,
    ) {
        let len = |one: &IndexDomain| usize::try_from(one.shape().num_elements()).unwrap() * item;
        let source: Vec<usize> = (1..=len(&from)).collect();
        let mut target = vec![0; len(&to)];
        copy(&mut target, &to, &source, &from, item).unwrap();
        let mut expected = vec![0; len(&to)];
        let rank = to.shape().rank();
        for number in 0..7_usize.pow(u32::try_from(rank).unwrap()) {
            let at = |axis: usize| number / 7_usize.pow(u32::try_from(axis).unwrap()) % 7;
            let index: Vec<i64> = (0..rank).map(|axis| i64::try_from(at(axis)).unwrap()).collect();
            if let (Some(to), Some(from)) = (place(&to, &index), place(&from, &index)) {
                let (to, from) = (to * item, from * item);
                expected[to..to + item].clone_from_slice(&source[from..from + item]);
            }
        }
        prop_assert_eq!(target, expected);
    }
}

#[test]
fn a_slice_that_is_too_small_is_an_error() {
    let whole = domain(&[0, 0], &[2, 3]);
    for (to, from) in [(6, 5), (5, 6), (0, 6)] {
        let error = copy(&mut vec![0_u8; to], &whole, &vec![1; from], &whole, 1).unwrap_err();
        assert!(error.message().contains("fewer elements"), "{error}");
    }
}

#[test]
fn boxes_of_other_ranks_have_nothing_in_common() {
    assert_eq!(
        overlap(&domain(&[0], &[2]), &domain(&[0, 0], &[2, 2])),
        None
    );
    assert_eq!(overlap(&domain(&[], &[]), &domain(&[], &[])), Some(vec![]));
}
