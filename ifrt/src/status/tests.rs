use super::*;

#[test]
fn codes_and_numbers_are_inverse() {
    assert_eq!(Code::ALL.len(), 16);
    for (number, code) in (1..).zip(Code::ALL) {
        assert_eq!(code.number(), number);
        assert_eq!(Code::from_number(number), Some(*code));
    }
    assert_eq!(Code::from_number(0), None);
    assert_eq!(Code::from_number(17), None);
    assert_eq!(Code::from_number(-1), None);
}

#[test]
fn unknown_numbers_are_kept() {
    assert_eq!(Status::from_wire(0, "fine"), None);
    let status = Status::from_wire(77, "odd").unwrap();
    assert_eq!(status.code(), Code::Unknown);
    assert_eq!(
        status.payload(UNKNOWN_CODE_PAYLOAD).map(|b| &b[..]),
        Some(&b"77"[..])
    );
}

#[test]
fn context_comes_after_the_original() {
    let status = Status::internal("first")
        .annotate("while testing")
        .with_payload("k", "v");
    assert_eq!(status.to_string(), "INTERNAL: first; while testing");
    let other = status.clone().annotate("again");
    assert_eq!(status.message(), "first; while testing");
    assert_eq!(other.payload("k").map(|b| &b[..]), Some(&b"v"[..]));
    assert_ne!(status, other);
}
