//! TUP: values of values.

use std::sync::Arc;

use super::{Case, case};
use crate::array::ArrayRef;
use crate::conformance::check::{Check, check, equal};
use crate::conformance::fixture::Fixture;
use crate::tuple::TupleRef;
use crate::value::{ValueRef, to_values};

pub(super) const CASES: &[Case] = &[
    case("TUP-01", "empty", tup_01),
    case("TUP-02", "three_arrays", tup_02),
    case("TUP-03", "one_element_deleted", tup_03),
    case("TUP-04", "nested", tup_04),
];

fn three(fx: &Fixture) -> Check<(Vec<ArrayRef>, TupleRef)> {
    let arrays: Vec<ArrayRef> = (0..3).map(|_| fx.standard()).collect::<Check<_>>()?;
    let tuple = fx.client.make_tuple(&to_values(&arrays))?;
    Ok((arrays, tuple))
}

/// The elements must be the very objects that went in.
fn is_of(tuple: &TupleRef, expected: &[ValueRef]) -> Check {
    equal(tuple.arity(), expected.len(), "the arity")?;
    let found = tuple.unpack()?;
    equal(found.len(), expected.len(), "the number of elements")?;
    for (position, (found, expected)) in found.iter().zip(expected).enumerate() {
        check(
            Arc::ptr_eq(found, expected),
            &format!("element {position} is the very object"),
        )?;
    }
    Ok(())
}

fn tup_01(fx: &Fixture) -> Check {
    let tuple = fx.client.make_tuple(&[])?;
    is_of(&tuple, &[])?;
    fx.value(&tuple.ready())?;
    let text = format!("{tuple:?}");
    check(
        text.ends_with("Tuple()"),
        &format!("`{text}` ends with `Tuple()`"),
    )?;
    check(!tuple.is_deleted(), "a new tuple is not deleted")?;
    fx.value(&tuple.delete())?;
    check(tuple.is_deleted(), "the tuple is deleted")
}

fn tup_02(fx: &Fixture) -> Check {
    let (arrays, tuple) = three(fx)?;
    is_of(&tuple, &to_values(&arrays))?;
    let parts: Vec<String> = arrays.iter().map(|array| format!("{array:?}")).collect();
    let (text, end) = (format!("{tuple:?}"), format!("Tuple({})", parts.join(",")));
    check(text.ends_with(&end), &format!("`{text}` ends with `{end}`"))?;
    fx.value(&tuple.ready())?;
    fx.value(&tuple.delete())?;
    check(tuple.is_deleted(), "the tuple is deleted")?;
    let all = arrays.iter().all(|array| array.is_deleted());
    check(all, "all elements are deleted")
}

fn tup_03(fx: &Fixture) -> Check {
    let (arrays, tuple) = three(fx)?;
    fx.value(&arrays[0].delete())?;
    check(tuple.is_deleted(), "the tuple counts as deleted")?;
    let others = arrays[1..].iter().all(|array| !array.is_deleted());
    check(others, "the other elements live")
}

fn tup_04(fx: &Fixture) -> Check {
    let arrays: Vec<ArrayRef> = (0..3).map(|_| fx.standard()).collect::<Check<_>>()?;
    let values = to_values(&arrays);
    let inner = fx.client.make_tuple(&values[..2])?;
    let empty = fx.client.make_tuple(&[])?;
    let elements: [ValueRef; 3] = [
        Arc::clone(&inner) as ValueRef,
        empty,
        Arc::clone(&values[2]),
    ];
    let outer = fx.client.make_tuple(&elements)?;
    is_of(&outer, &elements)?;
    let first = outer.unpack()?.remove(0).into_tuple();
    check(
        first.is_some_and(|first| Arc::ptr_eq(&first, &inner)),
        "the element is the tuple",
    )?;
    drop(outer);
    is_of(&inner, &values[..2])
}
