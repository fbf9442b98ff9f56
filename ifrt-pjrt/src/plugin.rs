//! [`Plugin`]: a PJRT plugin, loaded once per process and never unloaded.
//!
//! # Mirrors
//! `xla/pjrt/pjrt_api.h`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ifrt::attribute_map::AttributeMap;
use ifrt::{Code, Status};

use crate::safe::api::{Api, MAJOR, MIN_MINOR, TableError};
use crate::safe::library::{self, ENTRY_POINT, LibraryError};

/// The environment variable that names the shared library of a plugin.
pub const PLUGIN_PATH_VARIABLE: &str = "PJRT_PLUGIN_LIBRARY_PATH";

/// Why a plugin cannot be used. Each text says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// There is no such file.
    #[error(
        "there is no PJRT plugin at {path}; give the path of a plugin's shared library, or run \
         `cargo xtask setup` for the CPU plugin"
    )]
    NotFound {
        /// The path that was given.
        path: PathBuf,
    },
    /// The file cannot be looked at.
    #[error("the PJRT plugin at {path} cannot be opened: {source}; check the permissions")]
    Unreadable {
        /// The path that was given.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The system cannot load the file.
    #[error(
        "{path} cannot be loaded as a shared library: {reason}; give the plugin for this operating \
         system and processor, with the libraries that it needs"
    )]
    NotALibrary {
        /// The path that was given.
        path: PathBuf,
        /// The text of the system's loader.
        reason: String,
    },
    /// The library exports no entry point.
    #[error(
        "{path} is a shared library, but no PJRT plugin: it does not export GetPjrtApi; give the \
         library that does (its name often contains `pjrt`)"
    )]
    NoEntryPoint {
        /// The path that was given.
        path: PathBuf,
    },
    /// The entry point gave no usable table.
    #[error(
        "{path} exports GetPjrtApi, but {what}; the plugin is broken, take another build of it"
    )]
    BadTable {
        /// The path that was given.
        path: PathBuf,
        /// What is wrong with the table.
        what: String,
    },
    /// The plugin is too old, or of another major version.
    #[error(
        "the plugin {path} has PJRT C API {major}.{minor}, but this program needs {}.{} or newer \
         of the same major version; take a newer release of the plugin",
        MAJOR,
        MIN_MINOR
    )]
    UnsupportedVersion {
        /// The path that was given.
        path: PathBuf,
        /// The major version of the plugin.
        major: i32,
        /// The minor version of the plugin.
        minor: i32,
    },
    /// The plugin was loaded but cannot start.
    #[error("the plugin {path} cannot be initialized: {status}")]
    Initialize {
        /// The path that was given.
        path: PathBuf,
        /// What the plugin said.
        status: Status,
    },
}

impl PluginError {
    fn code(&self) -> Code {
        match self {
            Self::NotFound { .. } => Code::NotFound,
            Self::Unreadable { .. } => Code::PermissionDenied,
            Self::NotALibrary { .. } | Self::NoEntryPoint { .. } => Code::InvalidArgument,
            Self::BadTable { .. } => Code::Internal,
            Self::UnsupportedVersion { .. } => Code::FailedPrecondition,
            Self::Initialize { status, .. } => status.code(),
        }
    }
}

impl From<PluginError> for Status {
    fn from(error: PluginError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// A plugin that is ready to make clients.
#[derive(Debug)]
pub struct Plugin {
    path: PathBuf,
    api: &'static Api,
    attributes: AttributeMap,
}

/// The plugins of this process by canonical path. The lock is held while one is being loaded, the
/// only lock here that is held across calls into a plugin: initializing one twice is not allowed,
/// so a second caller has to wait for the first.
static LOADED: Mutex<BTreeMap<PathBuf, &'static Plugin>> = Mutex::new(BTreeMap::new());

impl Plugin {
    /// Loads the plugin at `path`, or gives it again if it was loaded before.
    ///
    /// Runs the library's code: load what you trust.
    ///
    /// # Errors
    /// A [`PluginError`] that says what is wrong with the file.
    pub fn load(path: &Path) -> Result<&'static Self, PluginError> {
        let canonical = path.canonicalize().map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                PluginError::NotFound {
                    path: path.to_owned(),
                }
            }
            _ => PluginError::Unreadable {
                path: path.to_owned(),
                source,
            },
        })?;
        if !canonical.is_file() {
            return Err(PluginError::NotALibrary {
                path: path.to_owned(),
                reason: "it is no file".to_owned(),
            });
        }
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plugin) = loaded.get(&canonical) {
            return Ok(plugin);
        }
        let plugin = Self::open(path, &canonical)?;
        loaded.insert(canonical, plugin);
        Ok(plugin)
    }

    fn open(path: &Path, canonical: &Path) -> Result<&'static Self, PluginError> {
        let path = path.to_owned();
        let api = match library::open(canonical) {
            Ok(api) => api,
            Err(LibraryError::Open(reason)) => {
                return Err(PluginError::NotALibrary { path, reason });
            }
            Err(LibraryError::NoEntryPoint) => return Err(PluginError::NoEntryPoint { path }),
            Err(LibraryError::Table(TableError::Version { major, minor })) => {
                return Err(PluginError::UnsupportedVersion { path, major, minor });
            }
            Err(LibraryError::Table(error)) => {
                return Err(PluginError::BadTable {
                    path,
                    what: table_text(error),
                });
            }
        };
        let started = library::initialize(api).and_then(|()| library::attributes(api));
        match started {
            Ok(attributes) => {
                tracing::info!(path = %canonical.display(), version = %format_args!("0.{}", api.minor()), "plugin loaded");
                Ok(Box::leak(Box::new(Self {
                    path: canonical.to_owned(),
                    api,
                    attributes,
                })))
            }
            Err(status) => Err(PluginError::Initialize { path, status }),
        }
    }

    /// The file that was loaded.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The minor version of the C API that the plugin was built with; the major version is 0.
    pub fn api_minor(&self) -> i32 {
        self.api.minor()
    }

    /// The numbers of the API extensions that the plugin has.
    pub fn extensions(&self) -> &[i32] {
        self.api.extensions()
    }

    /// What the plugin says about itself, for example `stablehlo_current_version`.
    pub fn attributes(&self) -> &AttributeMap {
        &self.attributes
    }

    /// What tells this build of the plugin from others: the size of the file and a hash of its ends.
    ///
    /// # Errors
    /// UNAVAILABLE if the file can no longer be read.
    pub(crate) fn build_id(&self) -> ifrt::Result<String> {
        build_id(&self.path).map_err(|error| {
            Status::unavailable(format!(
                "the file of the plugin, {}, can no longer be read: {error}",
                self.path.display()
            ))
        })
    }

    pub(crate) fn api(&self) -> &'static Api {
        self.api
    }
}

fn table_text(error: TableError) -> String {
    match error {
        TableError::Null => format!("{ENTRY_POINT} gives no table"),
        TableError::Truncated { size } => format!(
            "its table of {size} bytes has no room for, or lacks, the functions that read errors"
        ),
        TableError::Version { major, minor } => format!("its table has version {major}.{minor}"),
    }
}

/// Linkers put the identity of a build near the start, and symbols and sections at the end.
fn build_id(path: &Path) -> std::io::Result<String> {
    const END_BYTES: u64 = 64 * 1024;
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    let mut ends = Vec::new();
    file.by_ref().take(END_BYTES).read_to_end(&mut ends)?;
    file.seek(SeekFrom::Start(len.saturating_sub(END_BYTES)))?;
    file.take(END_BYTES).read_to_end(&mut ends)?;
    // FNV-1a: stable everywhere, and no secret depends on it.
    let hash = ends.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Ok(format!("{len} {hash:016x}"))
}

#[cfg(test)]
mod tests;
