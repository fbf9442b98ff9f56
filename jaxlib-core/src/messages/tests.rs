use ifrt::{DType, Shape};

use super::*;

fn aval(dims: &[i64]) -> Aval {
    Aval::new(DType::F32, Shape::new(dims).unwrap())
}

#[test]
fn the_words_of_jax() {
    let deleted = array_deleted(&aval(&[16]), DeadReason::Deleted);
    assert_eq!(
        deleted.message(),
        "Array has been deleted with shape=float32[16]."
    );
    let donated = array_deleted(&aval(&[]), DeadReason::Donated);
    assert_eq!(
        donated.message(),
        "Array has been deleted with shape=float32[]. It was donated to a call."
    );
    assert_eq!(
        wait_on_deleted(&aval(&[2]), DeadReason::Deleted).to_string(),
        "INVALID_ARGUMENT: BlockHostUntilReady() called on deleted or donated buffer"
    );
    assert_eq!(
        used_after_donation(1, 0, 0).message(),
        "Attempt to use a buffer that was previously donated in the same call to Execute() \
         (flattened argument 1, replica 0, partition 0, first use: 0). Toy example for this bug: \
         `f(donate(a), a)`."
    );
    assert_eq!(
        donated_after_use(2, 1, 0).message(),
        "Attempt to donate a buffer which is also used by the same call to Execute() (flattened \
         argument 2, replica 0, partition 1, first use: 0). Toy example for this bug: \
         `f(a, donate(a))`."
    );
    assert_eq!(
        donated_twice(1, 0, 0).message(),
        "Attempt to donate the same buffer twice in Execute() (flattened argument 1, replica 0, \
         partition 0, first use: 0). Toy example for this bug: `f(donate(a), donate(a))`."
    );
}

#[test]
fn kinds_can_be_read_back() {
    for reason in [DeadReason::Deleted, DeadReason::Donated] {
        let aval = aval(&[2, 3]);
        for status in [array_deleted(&aval, reason), wait_on_deleted(&aval, reason)] {
            let expected = Kind::ArrayDeleted {
                aval: aval.clone(),
                reason,
            };
            assert_eq!(Kind::of(&status), Some(expected));
        }
    }
    assert_eq!(
        Kind::of(&argument_count(2, 3)),
        Some(Kind::ArgumentMismatch)
    );
    assert_eq!(Kind::of(&Status::internal("x")), None);
    let foreign = Status::internal("x").with_payload("jaxlib.kind", "deleted");
    assert_eq!(Kind::of(&foreign), None, "half a payload");
}

#[test]
fn only_the_first_mismatches_are_listed() {
    let few = argument_types(&[(1, aval(&[4]), aval(&[3]))]);
    assert!(few.message().ends_with(
        "The mismatches are:\nArgument 1 compiled with float32[4] and called with float32[3]"
    ));
    let many: Vec<_> = (0..7).map(|n| (n, aval(&[4]), aval(&[3]))).collect();
    let many = argument_types(&many);
    assert!(many.message().contains("The first 5 of 7 mismatches are:"));
    assert_eq!(many.message().lines().count(), 6);
}

#[test]
fn tuples() {
    assert_eq!(tuple::<i64>(&[]), "()");
    assert_eq!(tuple(&[1]), "(1,)");
    assert_eq!(tuple(&[1, 2]), "(1, 2)");
}
