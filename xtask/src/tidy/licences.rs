//! The licences of everything that is compiled into the programs.

use super::Findings;
use crate::ctx::Workspace;
use anyhow::{Context as _, Result};
use cargo_metadata::MetadataCommand;

/// The licences that a dependency may be used under.
const ALLOWED: [&str; 7] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
];

/// Reads the licence of every package that the tree depends on.
///
/// # Errors
/// Cargo cannot resolve the dependencies.
pub(super) fn check(workspace: &Workspace) -> Result<Findings> {
    let metadata = MetadataCommand::new()
        .current_dir(workspace.root())
        .exec()
        .context("cargo metadata with all dependencies")?;
    let mut findings = Findings::default();
    for package in &metadata.packages {
        let name = format!("{} {}", package.name, package.version);
        match &package.license {
            None => findings.problem(format!("{name} names no licence")),
            Some(text) => match is_allowed(text) {
                None => findings.problem(format!("{name}: the licence {text:?} is malformed")),
                Some(false) => findings.problem(format!(
                    "{name}: the licence {text:?} is not in the list of xtask/src/tidy/licences.rs"
                )),
                Some(true) => {}
            },
        }
    }
    Ok(findings)
}

/// Whether a licence expression (SPDX, or the older form with `/`) can be met with allowed licences.
fn is_allowed(expression: &str) -> Option<bool> {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let allowed = any_of(&mut rest)?;
    rest.is_empty().then_some(allowed)
}

fn next<'a>(rest: &mut &[&'a str]) -> Option<&'a str> {
    let (first, others) = rest.split_first()?;
    *rest = others;
    Some(first)
}

/// Terms with `OR` between them.
fn any_of(rest: &mut &[&str]) -> Option<bool> {
    let mut allowed = all_of(rest)?;
    while rest.first() == Some(&"OR") {
        next(rest)?;
        // Both sides are read, whatever the first says.
        allowed |= all_of(rest)?;
    }
    Some(allowed)
}

/// Terms with `AND` between them.
fn all_of(rest: &mut &[&str]) -> Option<bool> {
    let mut allowed = term(rest)?;
    while rest.first() == Some(&"AND") {
        next(rest)?;
        allowed &= term(rest)?;
    }
    Some(allowed)
}

/// A licence, with its exception if it has one, or an expression in parentheses.
fn term(rest: &mut &[&str]) -> Option<bool> {
    let word = next(rest)?;
    if word == "(" {
        let allowed = any_of(rest)?;
        return (next(rest)? == ")").then_some(allowed);
    }
    if matches!(word, ")" | "OR" | "AND" | "WITH") {
        return None;
    }
    if rest.first() == Some(&"WITH") {
        next(rest)?;
        let exception = next(rest)?;
        return Some(ALLOWED.contains(&format!("{word} WITH {exception}").as_str()));
    }
    Some(ALLOWED.contains(&word))
}

#[cfg(test)]
mod tests;
