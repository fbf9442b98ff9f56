//! What a run prints at its end, and what it writes for other programs.

use super::compare::{Numbers, Verdict, Verdicts};
use super::known::Reason;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// What came out of a file.
#[derive(Debug)]
pub(super) struct FileReport {
    pub(super) name: String,
    pub(super) numbers: Numbers,
    pub(super) verdicts: Verdicts,
    pub(super) seconds: f64,
    /// What kept the file from being run.
    pub(super) trouble: Option<String>,
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} in {:.0}s",
            self.name,
            words(self.numbers),
            self.seconds
        )?;
        if let Some(trouble) = &self.trouble {
            write!(f, ": {trouble}")?;
        }
        Ok(())
    }
}

/// The numbers as the last line of a run gives them.
pub(super) fn words(numbers: Numbers) -> String {
    format!(
        "{} passed, {} failed, {} known differences",
        numbers.passed, numbers.failed, numbers.known
    )
}

/// What came out of a run.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) files: Vec<FileReport>,
    /// What the servers did wrong.
    pub(super) deaths: Vec<String>,
}

impl Report {
    /// The numbers of all files. What kept a file from being run and what servers did wrong counts
    /// as failed.
    pub(super) fn numbers(&self) -> Numbers {
        let mut numbers = Numbers::default();
        for file in &self.files {
            numbers += file.numbers;
            numbers.failed += usize::from(file.trouble.is_some());
        }
        numbers.failed += self.deaths.len();
        numbers
    }

    /// A line per file, in the form of a Markdown table.
    pub(super) fn table(&self) -> String {
        let mut table = "| file | run | pass in process | pass through the server | known differences | failed |\n\
                         |---|---|---|---|---|---|\n"
            .to_owned();
        let mut total = Numbers::default();
        for file in &self.files {
            row(&mut table, &file.name, file.numbers);
            total += file.numbers;
        }
        row(&mut table, "all", total);
        table
    }

    /// Every failure and, by reason, every known difference.
    pub(super) fn differences(&self) -> String {
        let mut text = String::new();
        let mut known: BTreeMap<Reason, Vec<&str>> = BTreeMap::new();
        let mut failures: Vec<String> = self.deaths.clone();
        for file in &self.files {
            failures.extend(file.trouble.clone());
            for (test, verdict) in &file.verdicts {
                match verdict {
                    Verdict::Failed(why) => failures.push(format!("{test}: {why}")),
                    Verdict::Known(reason) => known.entry(*reason).or_default().push(test),
                    Verdict::Passed | Verdict::Nothing => {}
                }
            }
        }
        // Writing to a string cannot fail.
        for (reason, tests) in known {
            writeln!(text, "known: {} ({})", reason.text(), tests.len()).unwrap_or_default();
            for test in tests {
                writeln!(text, "  {test}").unwrap_or_default();
            }
        }
        for failure in failures {
            writeln!(text, "FAILED {failure}").unwrap_or_default();
        }
        text
    }

    /// The whole for other programs.
    pub(super) fn json(&self, jax: &str) -> Value {
        let files: Vec<Value> = self
            .files
            .iter()
            .map(|file| {
                let differences: BTreeMap<&str, Value> = file
                    .verdicts
                    .iter()
                    .filter_map(|(test, verdict)| match verdict {
                        Verdict::Known(reason) => {
                            Some((test.as_str(), json!({"known": reason.name()})))
                        }
                        Verdict::Failed(why) => Some((test.as_str(), json!({"failed": why}))),
                        Verdict::Passed | Verdict::Nothing => None,
                    })
                    .collect();
                json!({
                    "file": file.name,
                    "numbers": file.numbers,
                    "seconds": file.seconds,
                    "trouble": file.trouble,
                    "differences": differences,
                })
            })
            .collect();
        json!({
            "jax": jax,
            "numbers": self.numbers(),
            "files": files,
            "servers": self.deaths,
        })
    }
}

fn row(table: &mut String, name: &str, numbers: Numbers) {
    // Writing to a string cannot fail.
    writeln!(
        table,
        "| {name} | {} | {} | {} | {} | {} |",
        numbers.run, numbers.in_process, numbers.passed, numbers.known, numbers.failed
    )
    .unwrap_or_default();
}
