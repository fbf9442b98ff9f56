//! The hash of the protocol files, which `ifrt-proxy/VERSION.md` repeats.
//!
//! The document says what changed between the versions of the protocol. Because it carries the hash
//! of the definitions, they cannot change without the document being opened: `cargo xtask tidy`
//! compares the two, and `cargo xtask codegen` writes the new hash and asks for the missing words.

#[cfg(test)]
mod tests;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::Path;

/// The document, from the folder of the workspace.
pub(crate) const DOCUMENT: &str = "ifrt-proxy/VERSION.md";

/// The folders that hold definitions, from the folder of the workspace.
const FOLDERS: [&str; 2] = ["ifrt/protos", "ifrt-proxy/protos"];

/// What stands before the hash in its line of the document.
const PREFIX: &str = "sha256 of the definitions: `";

/// What stands after it.
const SUFFIX: &str = "`";

/// The names of the `.proto` files below a folder, relative to it, with `/`, in order.
///
/// # Errors
/// A folder cannot be listed, or a name is not Unicode.
pub(crate) fn proto_files(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(current) = pending.pop() {
        let entries =
            fs::read_dir(&current).with_context(|| format!("listing {}", current.display()))?;
        for entry in entries {
            let path = entry
                .with_context(|| format!("listing {}", current.display()))?
                .path();
            if path.is_dir() {
                pending.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "proto")
            {
                names.push(import_path(folder, &path)?);
            }
        }
    }
    names.sort();
    Ok(names)
}

/// The name by which other definitions import a file.
fn import_path(folder: &Path, path: &Path) -> Result<String> {
    let relative = path.strip_prefix(folder).unwrap_or(path);
    let parts: Option<Vec<&str>> = relative
        .components()
        .map(|part| part.as_os_str().to_str())
        .collect();
    let parts = parts.with_context(|| format!("{} is not a Unicode name", path.display()))?;
    Ok(parts.join("/"))
}

/// The hash of all definitions, in lower-case hex.
///
/// It covers the names, so that moving a file counts as a change, and the lengths, so that text
/// cannot wander from one file into the next unseen.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn hash(root: &Path) -> Result<String> {
    let mut hasher = Sha256::new();
    for folder in FOLDERS {
        for name in proto_files(&root.join(folder))? {
            let path = root.join(folder).join(&name);
            let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            hasher.update(format!("{folder}/{name}\n{}\n", text.len()));
            hasher.update(&text);
        }
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Fails if the document names another hash than that of the definitions.
///
/// # Errors
/// The hashes differ, or a file cannot be read.
#[cfg_attr(
    not(feature = "codegen"),
    allow(dead_code, reason = "codegen and tidy check")
)]
pub(crate) fn check(root: &Path) -> Result<()> {
    let (text, actual) = (read_document(root)?, hash(root)?);
    let stated = stated_hash(&text)?;
    if stated != actual {
        bail!(
            "{DOCUMENT} describes other definitions (sha256 {stated}) than the committed ones \
             ({actual}): describe the change there, then run `cargo xtask codegen`"
        );
    }
    Ok(())
}

/// Writes the hash of the definitions into the document and says so if it is a new one.
///
/// # Errors
/// The document has no line for the hash, or a file cannot be read or written.
#[cfg_attr(
    not(feature = "codegen"),
    allow(dead_code, reason = "only codegen refreshes")
)]
#[allow(clippy::print_stdout, reason = "the output of the command")]
pub(crate) fn refresh(root: &Path) -> Result<()> {
    let (text, actual) = (read_document(root)?, hash(root)?);
    let stated = stated_hash(&text)?;
    if stated != actual {
        let updated = text.replace(
            &format!("{PREFIX}{stated}{SUFFIX}"),
            &format!("{PREFIX}{actual}{SUFFIX}"),
        );
        let path = root.join(DOCUMENT);
        fs::write(&path, updated).with_context(|| format!("writing {}", path.display()))?;
        println!("{DOCUMENT}: new hash {actual}; say there what changed on the wire, if anything");
    }
    Ok(())
}

fn read_document(root: &Path) -> Result<String> {
    let path = root.join(DOCUMENT);
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// The hash that the document states.
fn stated_hash(text: &str) -> Result<&str> {
    let mut stated = text.lines().filter_map(|line| {
        line.strip_prefix(PREFIX)
            .and_then(|rest| rest.split_once(SUFFIX))
            .map(|(hash, _)| hash)
    });
    let Some(hash) = stated.next() else {
        bail!("{DOCUMENT} has no line that starts with `{PREFIX}`");
    };
    if stated.next().is_some() {
        bail!("{DOCUMENT} states the hash of the definitions more than once");
    }
    Ok(hash)
}
