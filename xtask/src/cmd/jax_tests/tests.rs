use super::compare::{Verdict, Verdicts, compare, numbers};
use super::known::{Known, Reason};
use super::outcome::{Event, Outcome, Results, TestResult, parse};
use super::report::{FileReport, Report, words};
use crate::ctx::Workspace;

const KNOWN: &str = "\
# A comment.
[strides]
tests/a_test.py::A::listed

[host-callback]
tests/a_test.py::A::gone
tests/b_test.py::B::elsewhere
";

fn results<const N: usize>(of: [(&str, Outcome); N]) -> Results {
    of.into_iter()
        .map(|(test, outcome)| {
            let result = TestResult {
                outcome,
                seconds: 0.5,
                text: "why".to_owned(),
            };
            (format!("tests/a_test.py::A::{test}"), result)
        })
        .collect()
}

fn one(before: Outcome, after: Outcome, test: &str) -> Verdict {
    let known = Known::parse(KNOWN).unwrap();
    let (before, after) = (results([(test, before)]), results([(test, after)]));
    let verdicts = compare("a_test", &before, &after, &known, false);
    assert_eq!(verdicts.len(), 1);
    verdicts.into_values().next().unwrap()
}

fn is_failed(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Failed(_))
}

#[test]
fn every_pair_of_outcomes_has_its_verdict() {
    use Outcome::{Died, Failed, Passed, Skipped};
    let all = [Passed, Failed, Skipped, Died];
    for (before, after) in all.into_iter().flat_map(|b| all.map(|a| (b, a))) {
        let unlisted = one(before, after, "other");
        let listed = one(before, after, "listed");
        match (before, after) {
            (Passed, Passed) => {
                assert_eq!(unlisted, Verdict::Passed);
                assert!(is_failed(&listed), "it passes now");
            }
            (_, Passed) => {
                assert_eq!(unlisted, Verdict::Nothing);
                assert!(is_failed(&listed), "it passes now");
            }
            (_, Died) => {
                assert!(is_failed(&unlisted) && is_failed(&listed), "{before:?}");
            }
            (Passed, Failed | Skipped) | (Skipped, Failed) => {
                assert!(is_failed(&unlisted), "{before:?} {after:?}");
                assert_eq!(listed, Verdict::Known(Reason::Strides));
            }
            (Failed | Died, _) | (Skipped, Skipped) => {
                assert_eq!(unlisted, Verdict::Nothing, "{before:?} {after:?}");
                assert_eq!(listed, Verdict::Nothing, "{before:?} {after:?}");
            }
        }
    }
}

#[test]
fn a_test_without_a_result_in_process_is_a_difference() {
    let server = results([("other", Outcome::Passed)]);
    let verdicts = compare("a_test", &Results::new(), &server, &Known::default(), false);
    assert!(verdicts.values().all(is_failed) && verdicts.len() == 1);
}

#[test]
fn a_listed_test_that_does_not_exist_fails_when_all_tests_have_run() {
    let known = Known::parse(KNOWN).unwrap();
    let before = results([("listed", Outcome::Passed)]);
    let after = results([("listed", Outcome::Failed)]);
    let sample = compare("a_test", &before, &after, &known, false);
    assert!(!sample.values().any(is_failed));
    let whole = compare("a_test", &before, &after, &known, true);
    let failed: Vec<_> = whole.iter().filter(|(_, v)| is_failed(v)).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].0, "tests/a_test.py::A::gone");
}

#[test]
fn numbers_add_up_and_end_the_report() {
    use Outcome::{Failed, Passed, Skipped};
    let known = Known::parse(KNOWN).unwrap();
    let before = results([
        ("listed", Passed),
        ("one", Passed),
        ("two", Passed),
        ("three", Failed),
        ("not asked for", Passed),
    ]);
    let after = results([
        ("listed", Failed),
        ("one", Passed),
        ("two", Skipped),
        ("three", Failed),
    ]);
    let verdicts = compare("a_test", &before, &after, &known, false);
    let found = numbers(&before, &after, &verdicts);
    assert_eq!((found.run, found.in_process), (4, 3));
    assert_eq!(words(found), "1 passed, 1 failed, 1 known differences");
    let file = |trouble: Option<&str>, verdicts: Verdicts| FileReport {
        name: "a_test".to_owned(),
        numbers: numbers(&before, &after, &verdicts),
        verdicts,
        seconds: 2.0,
        trouble: trouble.map(str::to_owned),
    };
    let report = Report {
        files: vec![
            file(None, verdicts),
            file(Some("it cannot be imported"), Verdicts::new()),
        ],
        deaths: vec!["the server died".to_owned()],
    };
    assert_eq!(report.numbers().failed, 3, "a test, a file and a server");
    let differences = report.differences();
    for text in [
        "FAILED the server died\n",
        "FAILED it cannot be imported\n",
        "FAILED tests/a_test.py::A::two: passed in process, skipped through the server: why\n",
        "zero or negative strides (1)\n  tests/a_test.py::A::listed\n",
    ] {
        assert!(differences.contains(text), "{differences}");
    }
    assert!(report.table().contains("| a_test | 4 | 3 | 1 | 1 | 1 |"));
    let json = report.json("1.2.3");
    let told = &json["files"][0]["differences"]["tests/a_test.py::A::listed"];
    assert_eq!(told["known"], "strides");
}

#[test]
fn lists_that_say_nothing_clear_are_refused() {
    for (text, why) in [
        ("tests/a_test.py::A::x", "stands under no [REASON]"),
        (
            "[laziness]",
            "[laziness] is no reason; these are: host-callback, ",
        ),
        ("[strides]\na\na", "a stands there twice"),
        ("[strides]\na\n[host-callback]\na", "a stands there twice"),
    ] {
        let error = Known::parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    for reason in Reason::ALL {
        let known = Known::parse(&format!("[{}]\na", reason.name())).unwrap();
        assert_eq!(known.reason("a"), Some(reason));
    }
}

#[test]
fn the_list_of_the_workspace_can_be_read() {
    let known = Known::read(&Workspace::find()).unwrap();
    assert!(known.of_file("array_test").count() > 0);
}

#[test]
fn events_are_read_and_other_lines_refused() {
    let end = r#"{"event": "end", "test": "t", "outcome": "failed", "seconds": 0.25, "text": "x"}"#;
    assert_eq!(
        parse(end).unwrap(),
        Event::End {
            test: "t".to_owned(),
            outcome: Outcome::Failed,
            seconds: 0.25,
            text: "x".to_owned(),
        }
    );
    let collected = Event::Collected { tests: 3 };
    assert_eq!(
        parse(r#"{"event": "collected", "tests": 3}"#).unwrap(),
        collected
    );
    for line in ["", "....", "{}", r#"{"event": "end"}"#] {
        assert!(parse(line).is_err(), "{line:?}");
    }
}
