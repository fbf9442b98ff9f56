//! Where things are: the folder of the workspace and the state that this tool keeps.

use anyhow::{Context as _, Result};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace that this tool was built for.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Finds the workspace from the folder of this package.
    pub(crate) fn find() -> Self {
        // Cargo sets the variable for `cargo run`; a binary that was started by hand has its own.
        let package = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = package
            .parent()
            .map_or_else(|| package.clone(), Path::to_path_buf);
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root.join("target"), |folder| root.join(folder));
        Self { root, target }
    }

    /// The folder of the workspace.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path below the folder of the workspace.
    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// A path below the state of this tool; its parent folder is made.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub(crate) fn state(&self, relative: impl AsRef<Path>) -> Result<PathBuf> {
        let path = self.target.join("xtask").join(relative);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
        }
        Ok(path)
    }

    /// The Python interpreter of the private environment, which `setup` makes.
    pub(crate) fn venv_python(&self) -> PathBuf {
        self.target.join("xtask/venv/bin/python")
    }

    /// The folder that makes JAX find the registration package.
    pub(crate) fn python_package(&self) -> PathBuf {
        self.path("ifrt-proxy/python/src")
    }

    /// A cargo command in the folder of the workspace.
    pub(crate) fn cargo<I, S>(&self, args: I) -> Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command.args(args).current_dir(&self.root);
        command
    }
}

/// Writes a file so that a reader sees the old content or the new, never a part.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let temporary = PathBuf::from(name);
    fs::write(&temporary, content).with_context(|| format!("writing {}", temporary.display()))?;
    fs::rename(&temporary, path).with_context(|| format!("renaming to {}", path.display()))
}
