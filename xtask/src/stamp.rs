//! What makes a second run do nothing: one stamp per step, and a lock against a second run at the
//! same time.

use crate::ctx::{Workspace, write_atomically};
use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;

/// The mark that a step leaves: the hash of everything that it depends on, and a note.
#[derive(Debug)]
pub(crate) struct Stamp {
    path: PathBuf,
    key: String,
}

impl Stamp {
    /// The stamp of a step for these inputs.
    ///
    /// # Errors
    /// The folder of stamps cannot be made.
    pub(crate) fn new(workspace: &Workspace, step: &str, inputs: &[&str]) -> Result<Self> {
        Ok(Self {
            path: workspace.state(format!("stamps/{step}"))?,
            key: hash(inputs),
        })
    }

    /// The note that the step left, if it was done for the same inputs.
    pub(crate) fn note(&self) -> Option<String> {
        let text = std::fs::read_to_string(&self.path).ok()?;
        let (key, note) = text.split_once('\n')?;
        (key == self.key).then(|| note.to_owned())
    }

    /// Removes the mark: the step starts over.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub(crate) fn clear(&self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("removing {}", self.path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Marks the step as done.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn set(&self, note: &str) -> Result<()> {
        write_atomically(&self.path, format!("{}\n{note}", self.key).as_bytes())
    }
}

/// A hash of texts, each with its length, so that none can run into the next.
fn hash(inputs: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for input in inputs {
        hasher.update(format!("{}:", input.len()));
        hasher.update(input);
    }
    hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Takes the lock of `setup`; it is released when the file is dropped, also by a crash.
///
/// # Errors
/// Another run holds it, or it cannot be made.
pub(crate) fn lock(workspace: &Workspace) -> Result<File> {
    let path = workspace.state("setup.lock")?;
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| format!("opening {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another `cargo xtask setup` is at work on this tree; run this again when it is done"
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("locking {}", path.display()))
        }
    }
}

#[cfg(test)]
mod tests;
