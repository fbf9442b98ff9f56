//! Named steps: what runs, how long it took, and how it ended.

use anyhow::{Context as _, Result};
use std::fmt;
use std::time::{Duration, Instant};

/// How a step that did not fail ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did its work.
    Done,
    /// It did its work and there is something to say about it.
    Note(String),
    /// Its work was done before.
    UpToDate,
    /// It did not run, for a reason.
    Skipped(String),
}

/// Numbers of checks, tests or steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Counts {
    /// Whether nothing failed and something ran.
    pub(crate) fn is_success(self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// A duration for people: `0.4s`, `75s`.
pub(crate) fn seconds(duration: Duration) -> String {
    let secs = duration.as_secs_f64();
    if secs < 10.0 {
        format!("{secs:.1}s")
    } else {
        format!("{secs:.0}s")
    }
}

/// Says that a step starts, before its first output.
pub(crate) fn announce(name: &str) {
    println!("step {name} …");
}

/// Runs a step that always has work to do and returns what it made.
///
/// # Errors
/// Those of the step.
pub(crate) fn work<T>(name: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut made = None;
    announce(name);
    step(name, || {
        made = Some(body()?);
        Ok(Outcome::Done)
    })?;
    made.with_context(|| format!("the step {name} made nothing"))
}

/// Runs a step and prints its name, its end and its time. The error of a failed step is not printed
/// but returned.
///
/// # Errors
/// Those of the step.
pub(crate) fn step(name: &str, body: impl FnOnce() -> Result<Outcome>) -> Result<Outcome> {
    let started = Instant::now();
    let outcome = body();
    let time = seconds(started.elapsed());
    match &outcome {
        Ok(Outcome::Done) => println!("step {name} … ok {time}"),
        Ok(Outcome::Note(note)) => println!("step {name} … ok {time}: {note}"),
        Ok(Outcome::UpToDate) => println!("step {name} … up to date"),
        Ok(Outcome::Skipped(reason)) => println!("step {name} … skipped: {reason}"),
        Err(_) => println!("step {name} … FAILED {time}"),
    }
    outcome
}

#[cfg(test)]
mod tests;
