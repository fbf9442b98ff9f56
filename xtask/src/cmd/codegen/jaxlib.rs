//! Compares the definitions with those of a deployed jaxlib.

#[cfg(test)]
mod tests;

use super::compare::{Comparison, Files, compare};
use super::compile::Compiled;
use super::intended::{self, Verdict};
use super::{scan, schema};
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where `cargo xtask setup` installs Python packages, from the folder of the workspace.
const VENV_LIB: &str = "target/xtask/venv/lib";

/// The library inside the folder of a Python version.
const LIBRARY: &str = "site-packages/jaxlib/libjax_common.so";

/// Compares the definitions with those that a library carries, and says what it found.
///
/// # Errors
/// The library is missing or carries no definitions of IFRT, or there are differences that the
/// table of intended ones does not explain, or rows of that table that explain nothing.
pub(super) fn check(root: &Path, compiled: &Compiled, against: Option<&Path>) -> Result<()> {
    let library = match against {
        Some(path) => path.to_path_buf(),
        None => installed_library(root)?,
    };
    let data = fs::read(&library).with_context(|| format!("reading {}", library.display()))?;
    let found = scan::descriptors(&data);
    let theirs: Files = found
        .iter()
        .map(|(name, found)| (name.clone(), schema::of_found(found)))
        .collect();
    if !theirs
        .values()
        .any(|file| file.package.starts_with(intended::WHOLE))
    {
        bail!(
            "{} carries no definitions of IFRT ({} descriptors found): is it a libjax_common.so?",
            library.display(),
            theirs.len()
        );
    }
    let comparison = compare(&our_files(compiled), &theirs, intended::WHOLE);
    let counts = (comparison.n_messages, comparison.n_fields);
    let Comparison { differences, .. } = comparison;
    conclude(&library, counts, &intended::judge(differences))
}

/// Our files, without those of other projects that they import.
fn our_files(compiled: &Compiled) -> Files {
    let owned: BTreeSet<&str> = compiled
        .owned
        .iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let ours = compiled
        .set
        .file
        .iter()
        .filter(|file| owned.contains(file.name()));
    ours.map(|file| (file.name().to_owned(), schema::of_ours(file)))
        .collect()
}

#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the output of the command"
)]
fn conclude(
    library: &Path,
    (n_messages, n_fields): (usize, usize),
    verdict: &Verdict,
) -> Result<()> {
    for difference in &verdict.unexplained {
        eprintln!("  {difference}");
    }
    for row in &verdict.stale {
        eprintln!("  {row}: listed as an intended difference, but there is none");
    }
    let n_differences = verdict.unexplained.len() + verdict.stale.len();
    println!(
        "{}: {n_messages} messages, {n_fields} fields compared, {n_differences} differences ({} \
         more are intended)",
        library.display(),
        verdict.n_intended
    );
    if n_differences > 0 {
        bail!(
            "the definitions do not fit {}: correct the .proto files, or explain the difference \
             in xtask/src/cmd/codegen/intended.rs",
            library.display()
        );
    }
    Ok(())
}

/// The library that `cargo xtask setup` installed.
fn installed_library(root: &Path) -> Result<PathBuf> {
    let lib = root.join(VENV_LIB);
    let mut found = Vec::new();
    // An unreadable folder is the same as a missing one here: the advice does not change.
    for entry in fs::read_dir(&lib).into_iter().flatten().flatten() {
        let is_python = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with("python3"));
        let library = entry.path().join(LIBRARY);
        if is_python && library.is_file() {
            found.push(library);
        }
    }
    found.sort();
    found.pop().with_context(|| {
        format!(
            "no jaxlib below {} to compare the definitions with; run `cargo xtask setup`, or name \
             a libjax_common.so with --against PATH",
            lib.display()
        )
    })
}
