use super::*;

#[test]
fn expressions_are_evaluated() {
    for (text, expected) in [
        ("MIT", Some(true)),
        ("GPL-3.0", Some(false)),
        ("MIT/Apache-2.0", Some(true)),
        ("GPL-3.0 OR MIT", Some(true)),
        ("GPL-3.0 AND MIT", Some(false)),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", Some(true)),
        ("MIT OR (GPL-3.0 AND Zlib)", Some(true)),
        ("Apache-2.0 WITH LLVM-exception", Some(true)),
        ("MIT WITH LLVM-exception", Some(false)),
        ("MIT OR", None),
        ("(MIT", None),
        ("MIT)", None),
        ("MIT Zlib", None),
        ("", None),
    ] {
        assert_eq!(is_allowed(text), expected, "{text:?}");
    }
}
