//! The demo: an unmodified JAX program on our server, compared with the same program in process.
//!
//! `results` compares, `programs` runs the JAX programs, `kills` ends clients and servers the hard
//! way. The command itself is `cmd::demo`.

pub(crate) mod guards;
pub(crate) mod kills;
pub(crate) mod programs;
pub(crate) mod results;

use crate::step::Counts;
use std::fmt::Display;

/// The checks of a demo: each is printed as it ends, and all are counted.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    counts: Counts,
    failures: Vec<String>,
}

impl Checks {
    /// Counts a check that held.
    pub(crate) fn pass(&mut self, name: impl Display) {
        println!("  ok      {name}");
        self.counts.passed += 1;
    }

    /// Counts checks that held and are printed elsewhere.
    pub(crate) fn pass_quietly(&mut self, n: u64) {
        self.counts.passed += n;
    }

    /// Counts a check that did not hold.
    pub(crate) fn fail(&mut self, name: impl Display, why: impl Display) {
        let text = format!("{name}: {why}");
        println!("  FAILED  {text}");
        self.counts.failed += 1;
        self.failures.push(text);
    }

    /// Counts a check by its result; the value says how it went.
    pub(crate) fn check(&mut self, name: &str, result: anyhow::Result<String>) {
        match result {
            Ok(how) => self.pass(format_args!("{name}: {how}")),
            Err(error) => self.fail(name, format_args!("{error:#}")),
        }
    }

    /// The numbers so far.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// What failed, for the end of the run.
    pub(crate) fn failures(&self) -> &[String] {
        &self.failures
    }
}
