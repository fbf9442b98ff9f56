//! The files of the tree, and the code of a Rust file without its comments and literals.

use crate::ctx::Workspace;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;

/// Names of what holds nothing of ours. In a linked working tree of git, `.git` is a file.
const FOREIGN: [&str; 3] = ["target", ".git", "__pycache__"];

/// A text file of the tree.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// From the folder of the workspace, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl SourceFile {
    /// Whether a tool writes the file.
    pub(super) fn is_generated(&self) -> bool {
        self.path.contains("/gen/") || self.path == "Cargo.lock"
    }

    /// Whether the file is data that came from elsewhere and stays as it is.
    pub(super) fn is_fixture(&self) -> bool {
        self.path.contains("/fixtures/") || self.path.contains("/fuzz/corpus/")
    }

    /// Whether the file holds only tests.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }
}

/// All files of the tree that are text, in order.
///
/// # Errors
/// A folder or a file cannot be read.
pub(super) fn files(workspace: &Workspace) -> Result<Vec<SourceFile>> {
    let mut found = Vec::new();
    visit(workspace.root(), "", &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn visit(folder: &Path, prefix: &str, found: &mut Vec<SourceFile>) -> Result<()> {
    let listing = || format!("listing {}", folder.display());
    for entry in fs::read_dir(folder).with_context(listing)? {
        let entry = entry.with_context(listing)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().with_context(listing)?;
        let path = format!("{prefix}{name}");
        if FOREIGN.contains(&name.as_str()) || name.ends_with(".egg-info") {
            continue;
        }
        if kind.is_dir() {
            visit(&entry.path(), &format!("{path}/"), found)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).with_context(|| format!("reading {path}"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                found.push(SourceFile { path, text });
            }
        }
    }
    Ok(())
}

/// The Rust files among some files.
pub(super) fn rust(files: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && !file.is_generated())
}

/// Replaces comments and the insides of literals by spaces; lines stay where they are.
pub(super) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut previous = ' ';
    while let Some(&c) = chars.get(at) {
        let rest = chars.get(at..).unwrap_or_default();
        let starts_word = !(previous.is_alphanumeric() || previous == '_');
        let length = comment(rest)
            .or_else(|| starts_word.then(|| raw_string(rest)).flatten())
            .or_else(|| string(rest))
            .or_else(|| character(rest));
        match length {
            Some(length) => {
                let skipped = rest.get(..length).unwrap_or(rest);
                out.extend(skipped.iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
                at += skipped.len();
                previous = ' ';
            }
            None => {
                out.push(c);
                at += 1;
                previous = c;
            }
        }
    }
    out
}

/// Whether the characters start with a text.
fn starts_with(rest: &[char], text: &str) -> bool {
    text.chars()
        .enumerate()
        .all(|(idx, c)| rest.get(idx) == Some(&c))
}

/// The length of the comment that starts here.
fn comment(rest: &[char]) -> Option<usize> {
    if starts_with(rest, "//") {
        return Some(rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()));
    }
    if !starts_with(rest, "/*") {
        return None;
    }
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        let here = rest.get(at..).unwrap_or_default();
        if starts_with(here, "/*") {
            depth += 1;
            at += 2;
        } else if starts_with(here, "*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else if here.is_empty() {
            return Some(rest.len());
        } else {
            at += 1;
        }
    }
}

/// The length of the string literal that starts here with its quote.
fn string(rest: &[char]) -> Option<usize> {
    if rest.first() != Some(&'"') {
        return None;
    }
    let mut at = 1;
    loop {
        match rest.get(at) {
            None => return Some(rest.len()),
            Some('\\') => at += 2,
            Some('"') => return Some(at + 1),
            Some(_) => at += 1,
        }
    }
}

/// The length of the raw string literal that starts here.
fn raw_string(rest: &[char]) -> Option<usize> {
    let prefix = usize::from(matches!(rest.first(), Some('b' | 'c')));
    if rest.get(prefix) != Some(&'r') {
        return None;
    }
    let hashes = rest
        .get(prefix + 1..)?
        .iter()
        .take_while(|&&c| c == '#')
        .count();
    let open = prefix + 1 + hashes;
    if rest.get(open) != Some(&'"') {
        return None;
    }
    let end: String = std::iter::once('"')
        .chain(std::iter::repeat_n('#', hashes))
        .collect();
    let inside = open + 1;
    let length = (inside..rest.len())
        .find(|&at| rest.get(at..).is_some_and(|here| starts_with(here, &end)))
        .map_or(rest.len(), |at| at + 1 + hashes);
    Some(length)
}

/// The length of the character literal that starts here; a lifetime is none.
fn character(rest: &[char]) -> Option<usize> {
    match (rest.first()?, rest.get(1)?, rest.get(2)?) {
        ('\'', '\\', _) => {
            let end = rest.get(3..)?.iter().position(|&c| c == '\'')?;
            Some(3 + end + 1)
        }
        ('\'', _, '\'') => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
