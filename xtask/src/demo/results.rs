//! Compares what two runs of the JAX program wrote.
//!
//! The tolerances stand in the reference, so a run cannot loosen its own.

use super::Checks;
use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The longest text of a value in a failure.
const SHOWN_CHARS: usize = 300;

/// One entry of a results file; `demo_program.py` says what each kind means.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Entry {
    Exact { value: Value },
    OneOf { value: Value, accepted: Vec<Value> },
    Close(Close),
    Duration { seconds: f64 },
    Error { text: String },
}

/// An array that is compared within a tolerance.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Close {
    dtype: String,
    shape: Vec<u64>,
    /// Python's shortest decimal forms, which `f64` reads back exactly; `nan` and `inf` too.
    values: Vec<String>,
    rtol: f64,
    atol: f64,
}

/// All entries of a run, by name. A name is `group.what`.
pub(crate) type Results = BTreeMap<String, Entry>;

/// Reads a results file.
///
/// # Errors
/// It cannot be read or is malformed.
pub(crate) fn read(path: &Path) -> Result<Results> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))
}

/// The entries of some groups.
pub(crate) fn of_groups(results: &Results, groups: &[&str]) -> Results {
    let wanted = |name: &str| groups.contains(&name.split('.').next().unwrap_or(name));
    results
        .iter()
        .filter(|(name, _)| wanted(name.as_str()))
        .map(|(name, entry)| (name.clone(), entry.clone()))
        .collect()
}

/// Compares a run with the reference, entry by entry, and prints a line per group and failure.
/// Durations are printed and not compared.
pub(crate) fn compare(reference: &Results, found: &Results, checks: &mut Checks) {
    let mut groups: BTreeMap<&str, (u64, String)> = BTreeMap::new();
    for (name, expected) in reference {
        let group = groups
            .entry(name.split('.').next().unwrap_or(name))
            .or_default();
        let Some(actual) = found.get(name) else {
            checks.fail(name, "the run through the server did not get this far");
            continue;
        };
        if let (Entry::Duration { seconds: here }, Entry::Duration { seconds: there }) =
            (expected, actual)
        {
            let what = name.split_once('.').map_or(name.as_str(), |(_, what)| what);
            // Writing to a String cannot fail.
            write!(
                group.1,
                "; {what} {} (in process {})",
                duration(*there),
                duration(*here)
            )
            .unwrap_or_default();
            continue;
        }
        match difference(expected, actual) {
            None => {
                group.0 += 1;
                checks.pass_quietly(1);
            }
            Some(why) => checks.fail(name, why),
        }
    }
    for name in found.keys().filter(|name| !reference.contains_key(*name)) {
        checks.fail(name, "the run in process has no such result");
    }
    for (name, (equal, times)) in groups {
        println!("  {name}: {equal} results agree{times}");
    }
}

fn duration(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{:.1} µs", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// How an entry differs from the reference, if it does.
fn difference(expected: &Entry, actual: &Entry) -> Option<String> {
    match (expected, actual) {
        (Entry::Error { text }, _) => Some(format!("the run in process failed: {text}")),
        (_, Entry::Error { text }) => Some(format!("it failed: {text}")),
        (Entry::Exact { value: expected }, Entry::Exact { value: actual }) => (expected != actual)
            .then(|| format!("expected {}, got {}", shown(expected), shown(actual))),
        (Entry::OneOf { accepted, .. }, Entry::OneOf { value, .. }) => (!accepted.contains(value))
            .then(|| {
                format!(
                    "expected one of {}, got {}",
                    shown(&Value::from(accepted.clone())),
                    shown(value)
                )
            }),
        (Entry::Close(expected), Entry::Close(actual)) => far_apart(expected, actual),
        _ => Some(
            format!("expected {expected:?}, got {actual:?}")
                .chars()
                .take(SHOWN_CHARS)
                .collect(),
        ),
    }
}

/// A value as text, cut to a readable length.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= SHOWN_CHARS {
        return text;
    }
    let mut cut: String = text.chars().take(SHOWN_CHARS).collect();
    cut.push('…');
    cut
}

/// Why two arrays are not close, if they are not.
fn far_apart(expected: &Close, actual: &Close) -> Option<String> {
    if (&expected.dtype, &expected.shape) != (&actual.dtype, &actual.shape) {
        return Some(format!(
            "expected {}{:?}, got {}{:?}",
            expected.dtype, expected.shape, actual.dtype, actual.shape
        ));
    }
    if expected.values.len() != actual.values.len() {
        return Some(format!(
            "expected {} elements, got {}",
            expected.values.len(),
            actual.values.len()
        ));
    }
    let mut worst: Option<(usize, f64)> = None;
    for (idx, (e, a)) in expected.values.iter().zip(&actual.values).enumerate() {
        let (Ok(e), Ok(a)) = (e.parse::<f64>(), a.parse::<f64>()) else {
            return Some(format!("element {idx} is no number: expected {e}, got {a}"));
        };
        let excess = excess(e, a, expected.rtol, expected.atol);
        if excess > worst.map_or(1.0, |(_, worst)| worst) {
            worst = Some((idx, excess));
        }
    }
    let (idx, excess) = worst?;
    let of = |close: &Close| close.values.get(idx).cloned().unwrap_or_default();
    Some(format!(
        "element {idx}: expected {}, got {}: {excess:.1} times the tolerance (relative {:e}, absolute {:e})",
        of(expected),
        of(actual),
        expected.rtol,
        expected.atol
    ))
}

/// The difference of two numbers as a multiple of the tolerance; more than 1 is too far.
fn excess(expected: f64, actual: f64, rtol: f64, atol: f64) -> f64 {
    if expected == actual || (expected.is_nan() && actual.is_nan()) {
        return 0.0;
    }
    let difference = (expected - actual).abs();
    let tolerance = atol + rtol * expected.abs();
    if !difference.is_finite() || tolerance <= 0.0 {
        return f64::INFINITY;
    }
    difference / tolerance
}

#[cfg(test)]
mod tests;
