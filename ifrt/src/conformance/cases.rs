//! The cases, a table per file.

mod arr;
mod bun;
mod cli;
mod exe;
mod new;
mod rmp;
mod rsh;
mod string;
mod tup;

use super::check::Check;
use super::fixture::Fixture;

/// A case: an id of the contract's list, and what has to hold.
pub(super) struct Case {
    pub(super) id: &'static str,
    words: &'static str,
    pub(super) run: fn(&Fixture) -> Check,
}

impl Case {
    /// For example `ARR_04_on_done_called`.
    pub(super) fn name(&self) -> String {
        format!("{}_{}", self.id.replace('-', "_"), self.words)
    }
}

pub(super) const fn case(
    id: &'static str,
    words: &'static str,
    run: fn(&Fixture) -> Check,
) -> Case {
    Case { id, words, run }
}

/// A group of cases, as the tables of its files.
pub(super) type Group = (&'static str, &'static [&'static [Case]]);

/// Every case.
pub(super) const GROUPS: &[Group] = &[
    ("arr", arr::TABLES),
    ("cli", &[cli::CASES]),
    ("tup", &[tup::CASES]),
    ("bun", &[bun::CASES]),
    ("rmp", &[rmp::CASES]),
    ("exe", exe::TABLES),
    ("rsh", &[rsh::CASES]),
    ("str", string::TABLES),
    ("new", &[new::CASES]),
];
