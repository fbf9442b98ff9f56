use super::*;

#[test]
fn patterns() {
    for (pattern, name) in [
        ("arr::ARR_01_make", "arr::ARR_01_make"),
        ("*", "anything"),
        ("str::*", "str::STR_01_make"),
        ("*_refused", "arr::ARR_18_shards_refused"),
        ("rsh::RSH_*_tiled*", "rsh::RSH_11_tiled_and_tiled"),
        ("a*b*c", "abc"),
    ] {
        assert!(matches(pattern, name), "{pattern} {name}");
    }
    for (pattern, name) in [
        ("arr::ARR_01", "arr::ARR_01_make"),
        ("str::*", "arr::ARR_01"),
        ("*_refused", "arr::ARR_18_refused_not"),
        ("ab*ba", "aba"),
        ("", "x"),
    ] {
        assert!(!matches(pattern, name), "{pattern} {name}");
    }
}

fn judged(unsupported: bool, expected: bool, check: Check) -> Outcome {
    let judge = Judge {
        unsupported: unsupported.then(|| "never".to_owned()),
        expected_failure: expected.then(|| "not yet".to_owned()),
    };
    judge.judge(check)
}

fn failed() -> Check {
    Err(Stop::Failed("no".to_owned()))
}

#[test]
fn an_expected_failure_that_passes_fails() {
    assert_eq!(judged(false, false, Ok(())), Outcome::Passed);
    assert!(matches!(judged(false, false, failed()), Outcome::Failed(_)));
    assert!(matches!(judged(false, true, Ok(())), Outcome::Failed(_)));
    assert!(matches!(judged(true, false, Ok(())), Outcome::Failed(_)));
    assert!(matches!(
        judged(false, true, failed()),
        Outcome::ExpectedFailure(_)
    ));
}

#[test]
fn a_case_that_cannot_run_is_skipped_whatever_is_listed() {
    let skipped = || Err(Stop::Skipped("needs more".to_owned()));
    for expected in [false, true] {
        let outcome = judged(false, expected, skipped());
        assert_eq!(outcome, Outcome::Skipped("needs more".to_owned()));
    }
}
