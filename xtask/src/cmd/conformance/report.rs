//! What the suite reports: a line per case.

use crate::step::Counts;
use anyhow::{Context as _, Result, bail};
use std::fmt::Write as _;

/// A case and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    name: String,
    outcome: Outcome,
    milliseconds: u64,
    detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
    ExpectedFailure,
}

impl Outcome {
    const fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
            Self::ExpectedFailure => "xfail",
        }
    }
}

/// Reads the lines, ordered by name.
///
/// # Errors
/// A line is not of the form that the suite writes.
pub(super) fn parse(text: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in text.lines() {
        let row = row(line).with_context(|| format!("the suite reports {line:?}"))?;
        rows.push(row);
    }
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(rows)
}

fn row(line: &str) -> Result<Row> {
    let mut parts = line.split('\t');
    let mut part = |what| parts.next().with_context(|| format!("there is no {what}"));
    let name = part("name")?.to_owned();
    let outcome = match part("outcome")? {
        "passed" => Outcome::Passed,
        "failed" => Outcome::Failed,
        "skipped" => Outcome::Skipped,
        "expected failure" => Outcome::ExpectedFailure,
        other => bail!("there is no outcome {other:?}"),
    };
    let milliseconds = part("time")?.parse().context("the time is no number")?;
    let detail = part("detail")?.to_owned();
    Ok(Row {
        name,
        outcome,
        milliseconds,
        detail,
    })
}

/// The numbers of the rows. A case that fails as expected has passed.
pub(super) fn counts(rows: &[Row]) -> Counts {
    let mut counts = Counts::default();
    for row in rows {
        match row.outcome {
            Outcome::Passed | Outcome::ExpectedFailure => counts.passed += 1,
            Outcome::Failed => counts.failed += 1,
            Outcome::Skipped => counts.skipped += 1,
        }
    }
    counts
}

/// A line per case.
pub(super) fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut table = String::new();
    for row in rows {
        let line = format!(
            "{:width$}  {:7}  {:>6} ms  {}",
            row.name,
            row.outcome.word(),
            row.milliseconds,
            row.detail
        );
        // Writing to a string cannot fail.
        writeln!(table, "{}", line.trim_end()).unwrap_or_default();
    }
    table
}
