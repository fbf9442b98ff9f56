//! Names, sizes and white space of files, and what must not stand in any.

use super::Findings;
use super::source::{SourceFile, files};
use crate::ctx::Workspace;
use anyhow::{Context as _, Result};

/// The visible entries of the folder of the workspace.
const TOP: [&str; 15] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "ifrt",
    "ifrt-pjrt",
    "ifrt-proxy",
    "jax-api",
    "jaxlib-core",
    "target",
    "xtask",
];

/// A file of code that is longer should be divided.
const WARN_LINES: usize = 700;

/// A file of code that is longer must be divided.
const MAX_LINES: usize = 1000;

/// The ends of names of code files.
const CODE: [&str; 2] = [".rs", ".py"];

/// Folders of one machine, which no file may name. Written in two parts, so that this file does not.
const MACHINE_FOLDERS: [[&str; 2]; 3] = [["/ro", "ot/"], ["/ho", "me/"], ["/wo", "rk/"]];

/// Looks at the names in the folder of the workspace and at every text file.
///
/// # Errors
/// A folder or a file cannot be read.
pub(super) fn check(workspace: &Workspace) -> Result<Findings> {
    let mut findings = Findings::default();
    let root = workspace.root();
    for entry in root
        .read_dir()
        .with_context(|| format!("listing {}", root.display()))?
    {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && !TOP.contains(&name.as_str()) {
            findings.problem(format!("{name} does not belong at the top of the tree"));
        }
    }
    for file in files(workspace)? {
        look_at(&file, &mut findings);
    }
    Ok(findings)
}

fn look_at(file: &SourceFile, findings: &mut Findings) {
    if file.is_generated() || file.is_fixture() {
        return;
    }
    let SourceFile { path, text } = file;
    let lines = text.lines().count();
    if CODE.iter().any(|end| path.ends_with(end)) {
        if lines > MAX_LINES {
            findings.problem(format!(
                "{path} has {lines} lines, more than {MAX_LINES}: divide it"
            ));
        } else if lines > WARN_LINES {
            findings.warning(format!("{path} has {lines} lines, more than {WARN_LINES}"));
        }
        if path.ends_with("/mod.rs") {
            findings.problem(format!(
                "{path}: a module is called after its folder, not mod.rs"
            ));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        findings.problem(format!("{path}: the last line has no end"));
    }
    for (idx, line) in text.split('\n').enumerate() {
        let number = idx + 1;
        if line.ends_with([' ', '\t', '\r']) {
            findings.problem(format!(
                "{path}:{number}: white space at the end of the line"
            ));
        }
        if let Some(folder) = machine_folder(line) {
            findings.problem(format!(
                "{path}:{number}: names the folder {folder} of one machine"
            ));
        }
    }
}

/// The folder of one machine that a line names, if it does.
fn machine_folder(line: &str) -> Option<String> {
    MACHINE_FOLDERS
        .iter()
        .map(|parts| parts.concat())
        .find(|folder| {
            line.match_indices(folder.as_str()).any(|(at, _)| {
                let before = line.get(..at).and_then(|text| text.chars().next_back());
                let after = line
                    .get(at + folder.len()..)
                    .and_then(|text| text.chars().next());
                // `target/work/x` names another folder.
                !before.is_some_and(|c| c.is_alphanumeric() || "._-}/".contains(c))
                    && after.is_some_and(char::is_alphanumeric)
            })
        })
}

#[cfg(test)]
mod tests;
