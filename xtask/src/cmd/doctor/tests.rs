use super::*;

#[test]
fn compares_versions() {
    for (found, needed, expected) in [
        ("rustc 1.95.0 (59807616e 2026-04-14)", "1.95", true),
        ("rustc 1.100.0-nightly (abc)", "1.95", true),
        ("rustc 2.0.0", "1.95", true),
        ("rustc 1.94.9 (abc)", "1.95", false),
        ("gcc 13.0", "1.95", false),
        ("", "1.95", false),
    ] {
        assert_eq!(is_at_least(found, needed), expected, "{found:?}");
    }
}

#[test]
fn loopback_works_where_the_tests_run() {
    assert!(loopback().is_ok());
}
