//! Modules that XLA compiled, beside the text that XLA itself prints for them.

use super::*;

/// XLA begins the text with what its configuration says and with tables of source files, neither of
/// which is printed here, and orders instructions by their schedule. So the lines of all computations
/// are compared, whatever their order.
fn computations(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.ends_with('{'))
        .filter(|line| !line.is_empty())
        .collect();
    lines.sort_unstable();
    lines
}

#[track_caller]
fn check(module: &'static [u8], expected: &str) {
    let text = hlo_text(bytes::Bytes::from_static(module)).unwrap();
    assert!(text.starts_with("HloModule "), "{text}");
    for (line, expected) in computations(&text).iter().zip(computations(expected)) {
        assert_eq!(*line, expected);
    }
    assert_eq!(computations(&text).len(), computations(expected).len());
}

macro_rules! fixture {
    ($name:ident) => {
        #[test]
        fn $name() {
            check(
                include_bytes!(concat!(
                    "../../../tests/fixtures/hlo/",
                    stringify!($name),
                    ".pb"
                )),
                include_str!(concat!(
                    "../../../tests/fixtures/hlo/",
                    stringify!($name),
                    ".txt"
                )),
            );
        }
    };
}

fixture!(spmd);
fixture!(indexing);
fixture!(control);
fixture!(conv);
fixture!(misc);

#[test]
fn other_bytes_are_an_error() {
    assert!(hlo_text(bytes::Bytes::from_static(b"not a module")).is_err());
    assert_eq!(hlo_text(bytes::Bytes::new()).unwrap(), "HloModule \n\n");
}
