//! Every module says what it is, and the documents name commands that exist.

use super::Findings;
use super::source::{SourceFile, files, rust};
use crate::ctx::Workspace;
use anyhow::Result;
use clap::CommandFactory as _;

/// How a command of this tool is written in a document.
const COMMAND: &str = "cargo xtask ";

/// Looks at every Rust file and every document.
///
/// # Errors
/// A file cannot be read.
pub(super) fn check(workspace: &Workspace) -> Result<Findings> {
    let mut findings = Findings::default();
    let files = files(workspace)?;
    for file in rust(&files).filter(|file| !file.is_test()) {
        if !has_module_doc(&file.text) {
            findings.problem(format!(
                "{}: does not start with a `//!` comment",
                file.path
            ));
        }
    }
    let cli = crate::Cli::command();
    let known: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    for file in &files {
        for (number, name) in unknown_commands(file, &known) {
            findings.problem(format!(
                "{}:{number}: there is no `{COMMAND}{name}`",
                file.path
            ));
        }
    }
    Ok(findings)
}

fn has_module_doc(text: &str) -> bool {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .is_some_and(|line| {
            line.strip_prefix("//!")
                .is_some_and(|doc| doc.chars().any(char::is_alphanumeric))
        })
}

/// The commands that a document names and that do not exist, with their lines.
fn unknown_commands<'a>(file: &'a SourceFile, known: &[&str]) -> Vec<(usize, &'a str)> {
    if !file.path.ends_with(".md") {
        return Vec::new();
    }
    let named = file.text.lines().enumerate().flat_map(|(idx, line)| {
        line.split(COMMAND).skip(1).map(move |rest| {
            let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-');
            (
                idx + 1,
                rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest),
            )
        })
    });
    named
        .filter(|(_, name)| !name.is_empty() && !name.starts_with('-') && !known.contains(name))
        .collect()
}

#[cfg(test)]
mod tests;
