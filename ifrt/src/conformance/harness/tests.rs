use super::*;
use crate::client::Client;
use crate::conformance::cases::case;
use crate::fake::{FakeClient, FakeOptions};
use crate::status::{Result, Status};

struct Fake {
    reachable: bool,
}

impl Backend for Fake {
    fn name(&self) -> &str {
        "a fake"
    }

    fn client(&self) -> Result<Arc<dyn Client>> {
        if self.reachable {
            return Ok(FakeClient::new(FakeOptions::default()));
        }
        Err(Status::unavailable("nobody answers"))
    }
}

fn watched(reachable: bool, case: &'static Case, deadline: Duration) -> Check {
    let backend: Arc<dyn Backend> = Arc::new(Fake { reachable });
    run_watched(&backend, case, deadline)
}

#[track_caller]
fn fails_saying(check: Check, text: &str) {
    match check {
        Err(Stop::Failed(message)) => assert!(message.contains(text), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_case_that_hangs_fails_and_is_named() {
    static HANGS: Case = case("ARR-01", "hangs", |_| {
        loop {
            thread::park();
        }
    });
    let check = watched(true, &HANGS, Duration::from_millis(50));
    fails_saying(check, "ARR_01_hangs hangs");
}

#[test]
fn a_case_that_panics_fails_with_the_text() {
    static PANICS: Case = case("ARR-01", "panics", |fx| {
        Err(Stop::failed(fx.client.devices()[99].to_text()))
    });
    fails_saying(watched(true, &PANICS, DEADLINE), "index out of bounds");
}

#[test]
fn a_client_that_cannot_be_made_fails_the_case() {
    static PASSES: Case = case("ARR-01", "passes", |_| Ok(()));
    assert!(watched(true, &PASSES, DEADLINE).is_ok());
    fails_saying(
        watched(false, &PASSES, DEADLINE),
        "UNAVAILABLE: nobody answers",
    );
}

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
