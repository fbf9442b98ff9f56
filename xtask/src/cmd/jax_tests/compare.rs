//! Compares what became of a test in process with what became of it through the server.

use super::known::{Known, Reason};
use super::outcome::{Outcome, Results, TestResult};
use serde::Serialize;
use std::collections::BTreeMap;

/// What the comparison of a test says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It passes in both places.
    Passed,
    /// It proves nothing: it does not pass in process, or skips itself in both places.
    Nothing,
    /// It differs, as the list says.
    Known(Reason),
    /// It differs and is not listed, or the list is wrong about it.
    Failed(String),
}

/// The verdicts about the tests of a file.
pub(super) type Verdicts = BTreeMap<String, Verdict>;

/// The numbers of a file or of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Numbers {
    /// Tests that ran through the server.
    pub(super) run: usize,
    pub(super) in_process: usize,
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) known: usize,
}

impl std::ops::AddAssign for Numbers {
    fn add_assign(&mut self, other: Self) {
        self.run += other.run;
        self.in_process += other.in_process;
        self.passed += other.passed;
        self.failed += other.failed;
        self.known += other.known;
    }
}

/// Compares the tests of a file. `whole` says that all its tests have run, so that a listed test
/// that is not among them does not exist.
pub(super) fn compare(
    file: &str,
    in_process: &Results,
    server: &Results,
    known: &Known,
    whole: bool,
) -> Verdicts {
    let mut verdicts: Verdicts = server
        .iter()
        .map(|(test, result)| {
            let verdict = judge(in_process.get(test), result, known.reason(test));
            (test.clone(), verdict)
        })
        .collect();
    if whole {
        for test in known
            .of_file(file)
            .filter(|test| !server.contains_key(*test))
        {
            let why = "it is listed as a known difference, and there is no such test";
            verdicts.insert(test.to_owned(), Verdict::Failed(why.to_owned()));
        }
    }
    verdicts
}

fn judge(in_process: Option<&TestResult>, server: &TestResult, known: Option<Reason>) -> Verdict {
    let Some(in_process) = in_process else {
        return Verdict::Failed("there is no such test in process".to_owned());
    };
    match (in_process.outcome, server.outcome, known) {
        (_, Outcome::Passed, Some(reason)) => Verdict::Failed(format!(
            "it is listed as a known difference ({}) and passes now: take it off the list",
            reason.name()
        )),
        (Outcome::Passed, Outcome::Passed, None) => Verdict::Passed,
        // What kills or hangs is never a difference to live with.
        (_, Outcome::Died, _) => Verdict::Failed(server.text.clone()),
        (Outcome::Failed | Outcome::Died, _, _)
        | (Outcome::Skipped, Outcome::Passed | Outcome::Skipped, _) => Verdict::Nothing,
        (Outcome::Passed, _, Some(reason)) | (Outcome::Skipped, Outcome::Failed, Some(reason)) => {
            Verdict::Known(reason)
        }
        (before, after, None) => Verdict::Failed(format!(
            "{} in process, {} through the server: {}",
            before.word(),
            after.word(),
            server.text.lines().next().unwrap_or_default()
        )),
    }
}

/// The numbers of a file.
pub(super) fn numbers(in_process: &Results, server: &Results, verdicts: &Verdicts) -> Numbers {
    let mut numbers = Numbers {
        run: server.len(),
        in_process: in_process
            .iter()
            .filter(|(test, result)| {
                result.outcome == Outcome::Passed && server.contains_key(*test)
            })
            .count(),
        ..Numbers::default()
    };
    for verdict in verdicts.values() {
        match verdict {
            Verdict::Passed => numbers.passed += 1,
            Verdict::Failed(_) => numbers.failed += 1,
            Verdict::Known(_) => numbers.known += 1,
            Verdict::Nothing => {}
        }
    }
    numbers
}
