use super::*;
use crate::step::Counts;
use serde_json::json;

fn entry(value: Value) -> Entry {
    serde_json::from_value(value).unwrap()
}

fn exact(value: Value) -> Entry {
    entry(json!({"kind": "exact", "value": value}))
}

fn close(values: &[&str], rtol: f64) -> Entry {
    entry(json!({
        "kind": "close", "dtype": "float32", "shape": [values.len()],
        "values": values, "rtol": rtol, "atol": 0.0,
    }))
}

#[track_caller]
fn check_equal(expected: &Entry, actual: &Entry) {
    assert_eq!(difference(expected, actual), None);
}

#[track_caller]
fn check_differs(expected: &Entry, actual: &Entry, why: &str) {
    let text = difference(expected, actual).unwrap();
    assert!(text.contains(why), "{text}");
}

#[test]
fn exact_values_must_be_equal() {
    check_equal(&exact(json!([1, "a", null])), &exact(json!([1, "a", null])));
    check_differs(
        &exact(json!(true)),
        &exact(json!(false)),
        "expected true, got false",
    );
    check_differs(&exact(json!(1)), &close(&["1.0"], 1.0), "got Close");
}

#[test]
fn close_values_may_differ_by_the_tolerance_of_the_reference() {
    check_equal(
        &close(&["1.0", "-2.0"], 1e-6),
        &close(&["1.0000009", "-2.0"], 0.0),
    );
    check_differs(
        &close(&["1.0"], 1e-6),
        &close(&["1.000002"], 1.0),
        "2.0 times the tolerance",
    );
    check_differs(&close(&["0.0"], 1e-6), &close(&["1e-30"], 1.0), "inf times");
    check_differs(&close(&["1.0"], 1e-6), &close(&["nan"], 1.0), "got nan");
    check_differs(&close(&["inf"], 1e-6), &close(&["-inf"], 1.0), "got -inf");
    check_equal(&close(&["nan", "inf"], 1e-6), &close(&["nan", "inf"], 1e-6));
    check_differs(
        &close(&["1.0"], 1e-6),
        &close(&["1.0", "1.0"], 1e-6),
        "float32[2]",
    );
    check_differs(&close(&["1.0"], 1e-6), &close(&["one"], 1e-6), "no number");
}

#[test]
fn an_error_on_either_side_differs() {
    let error = entry(json!({"kind": "error", "text": "ValueError: no"}));
    check_differs(&exact(json!(1)), &error, "it failed: ValueError: no");
    check_differs(
        &error,
        &exact(json!(1)),
        "in process failed: ValueError: no",
    );
    check_differs(&error, &error, "in process failed");
}

#[test]
fn one_of_takes_the_choices_of_the_reference() {
    let of = |value: &str, accepted: &[&str]| {
        entry(json!({"kind": "one_of", "value": value, "accepted": accepted}))
    };
    check_equal(
        &of("dict", &["dict", "NoneType"]),
        &of("NoneType", &["anything"]),
    );
    check_differs(
        &of("dict", &["dict"]),
        &of("list", &["list"]),
        "got \"list\"",
    );
}

#[test]
fn every_entry_is_counted_once_and_none_may_be_missing() {
    let reference = Results::from([
        ("a.same".to_owned(), exact(json!(1))),
        (
            "a.time".to_owned(),
            entry(json!({"kind": "duration", "seconds": 0.5})),
        ),
        ("a.missing".to_owned(), exact(json!(1))),
        ("b.other".to_owned(), exact(json!(1))),
    ]);
    let found = Results::from([
        ("a.same".to_owned(), exact(json!(1))),
        (
            "a.time".to_owned(),
            entry(json!({"kind": "duration", "seconds": 0.1})),
        ),
        ("b.other".to_owned(), exact(json!(2))),
        ("c.new".to_owned(), exact(json!(1))),
    ]);
    let mut checks = Checks::default();
    compare(&reference, &found, &mut checks);
    assert_eq!(
        checks.counts(),
        Counts {
            passed: 1,
            failed: 3,
            skipped: 0
        }
    );
    let failures = checks.failures().join("\n");
    for name in ["a.missing", "b.other", "c.new"] {
        assert!(failures.contains(name), "{failures}");
    }
}

#[test]
fn unknown_kinds_are_refused() {
    serde_json::from_value::<Entry>(json!({"kind": "rough", "value": 1})).unwrap_err();
    serde_json::from_value::<Entry>(json!({"kind": "exact", "value": 1, "rtol": 1})).unwrap_err();
}
