use super::*;

fn counts(passed: u64, failed: u64, skipped: u64) -> Counts {
    Counts {
        passed,
        failed,
        skipped,
    }
}

#[test]
fn reads_nextest() {
    for (line, expected) in [
        (
            "     Summary [   0.534s] 12 tests run: 12 passed, 0 skipped",
            counts(12, 0, 0),
        ),
        (
            "     Summary [   1.000s] 1 test run: 1 passed (1 slow), 30 skipped",
            counts(1, 0, 0),
        ),
        (
            "     Summary [  61.000s] 9 tests run: 6 passed, 2 failed, 1 timed out, 0 skipped",
            counts(6, 3, 0),
        ),
        ("        PASS [   0.004s] xtask a::b", counts(0, 0, 0)),
        ("Summary of something", counts(0, 0, 0)),
    ] {
        assert_eq!(nextest(&[line]), expected, "{line}");
    }
}

#[test]
fn reads_libtest() {
    for (line, expected) in [
        (
            "test result: ok. 3 passed; 0 failed; 2 ignored; 0 measured; 4 filtered out; \
             finished in 0.00s",
            counts(3, 0, 2),
        ),
        (
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; \
             finished in 0.00s",
            counts(3, 1, 0),
        ),
        ("test a::b ... ok", counts(0, 0, 0)),
    ] {
        assert_eq!(libtest(&[line]), expected, "{line}");
    }
}

#[test]
fn adds_up_several_lines() {
    let line = "test result: ok. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out";
    assert_eq!(libtest(&[line, "test a ... ok", line]), counts(6, 2, 4));
}

#[test]
fn reads_unittest() {
    for (lines, expected) in [
        (vec!["Ran 16 tests in 11.228s", "", "OK"], counts(16, 0, 0)),
        (
            vec!["Ran 1 test in 0.1s", "", "OK (skipped=1)"],
            counts(0, 0, 1),
        ),
        (
            vec![
                "Ran 9 tests in 0.1s",
                "",
                "FAILED (failures=1, errors=2, skipped=1)",
            ],
            counts(5, 3, 1),
        ),
        (vec!["Ran out of memory"], counts(0, 0, 0)),
    ] {
        assert_eq!(unittest(&lines), expected, "{lines:?}");
    }
}
