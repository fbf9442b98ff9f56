//! What `jax_tests.py` says about each test.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Passed,
    Failed,
    Skipped,
    /// It took its process or the server with it, or hung until its process was ended.
    Died,
}

impl Outcome {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Died => "died",
        }
    }
}

/// How a test ended, how long it took and what it said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TestResult {
    pub(super) outcome: Outcome,
    pub(super) seconds: f64,
    pub(super) text: String,
}

/// The results of tests, by their names.
pub(super) type Results = BTreeMap<String, TestResult>;

/// A line of the program; it says what each event means.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Event {
    Collected {
        tests: usize,
    },
    Start {
        test: String,
    },
    End {
        test: String,
        outcome: Outcome,
        seconds: f64,
        text: String,
    },
    Finished,
}

/// Reads a line.
///
/// # Errors
/// It is no event.
pub(super) fn parse(line: &str) -> Result<Event> {
    serde_json::from_str(line).with_context(|| format!("jax_tests.py says {line:?}"))
}
