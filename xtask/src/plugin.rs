//! The PJRT plugin: which one is used, and whether it can be loaded.

use crate::child;
use crate::ctx::Workspace;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The variable that names a plugin for every command of this tool.
pub(crate) const VARIABLE: &str = "PJRT_PLUGIN_LIBRARY_PATH";

/// Loading a plugin reads a few hundred megabytes.
const PROBE_DEADLINE: Duration = Duration::from_secs(120);

/// The default plugin, as pinned in `plugins.lock`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pinned {
    pub(crate) name: String,
    pub(crate) package: String,
    pub(crate) version: String,
    pub(crate) wheel: String,
    pub(crate) sha256: String,
    pub(crate) member: String,
    pub(crate) member_sha256: String,
    pub(crate) c_api: (i32, i32),
    pub(crate) machine: String,
}

impl Pinned {
    /// Reads the lock file; returns its text as well, which is what the stamp depends on.
    ///
    /// # Errors
    /// The file cannot be read or is malformed.
    pub(crate) fn read(workspace: &Workspace) -> Result<(Self, String)> {
        let path = workspace.path("xtask/plugins.lock");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        let pinned =
            serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
        Ok((pinned, text))
    }
}

/// The version of the PJRT C API that a plugin speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct ApiVersion {
    pub(crate) major: i32,
    pub(crate) minor: i32,
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "C API {}.{}", self.major, self.minor)
    }
}

/// A plugin that was loaded once.
#[derive(Debug, Clone)]
pub(crate) struct Plugin {
    pub(crate) path: PathBuf,
    /// Whether it is the pinned CPU plugin, whose options are known.
    pub(crate) is_default: bool,
}

/// The plugin that the user named, by option or by variable.
///
/// # Errors
/// The named file is not there.
pub(crate) fn named(option: Option<&Path>) -> Result<Option<PathBuf>> {
    let (path, source) = match option {
        Some(path) => (path.to_path_buf(), "--plugin"),
        None => match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            Some(value) => (PathBuf::from(value), VARIABLE),
            None => return Ok(None),
        },
    };
    // Children start in other folders, so a relative path must not reach them.
    let path = std::path::absolute(&path).with_context(|| format!("{source} is empty"))?;
    if !path.is_file() {
        bail!(
            "{source} names {}, which is not a file; name the shared library of a PJRT plugin, or \
             leave it out to use the default CPU plugin",
            path.display()
        );
    }
    Ok(Some(path))
}

/// Loads a plugin in a child process, which a bad file may take down, and reads its version.
///
/// # Errors
/// It cannot be loaded, or it is no PJRT plugin.
pub(crate) fn probe(workspace: &Workspace, python: &Path, plugin: &Path) -> Result<ApiVersion> {
    let mut command = Command::new(python);
    command
        .arg("-I")
        .arg(workspace.path("xtask/python/plugin_tool.py"))
        .arg("probe")
        .arg(plugin);
    let answer = child::output("the probe of the plugin", &mut command, PROBE_DEADLINE)
        .with_context(|| format!("{} is not a usable PJRT plugin", plugin.display()))?;
    serde_json::from_str(&answer).with_context(|| format!("the probe answered {answer:?}"))
}
