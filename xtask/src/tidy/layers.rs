//! Which crate may depend on which, compared with the manifests.

use super::Findings;
use crate::ctx::Workspace;
use anyhow::{Context as _, Result};
use cargo_metadata::{Dependency, DependencyKind, Metadata, MetadataCommand, Package};
use std::fmt;

/// How a crate depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    /// Behind a feature.
    Optional,
    /// In tests, examples and benches only.
    Dev,
    /// In a build script.
    Build,
}

impl Kind {
    fn of(dependency: &Dependency) -> Self {
        match dependency.kind {
            DependencyKind::Development => Self::Dev,
            DependencyKind::Build => Self::Build,
            _ if dependency.optional => Self::Optional,
            _ => Self::Normal,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::Optional => "optional",
            Self::Dev => "dev",
            Self::Build => "build",
        })
    }
}

/// The crates of the workspace.
const CRATES: [&str; 6] = [
    "ifrt",
    "ifrt-pjrt",
    "ifrt-proxy",
    "jaxlib-core",
    "jax-api",
    "xtask",
];

/// Every edge between them that is allowed. A new line needs a commit of its own with a reason.
const LAYERS: [(&str, &str, Kind); 19] = [
    // A crate's own test support.
    ("ifrt", "ifrt", Kind::Dev),
    ("ifrt-pjrt", "ifrt", Kind::Normal),
    ("ifrt-pjrt", "ifrt", Kind::Dev),
    ("ifrt-proxy", "ifrt", Kind::Normal),
    ("ifrt-proxy", "ifrt", Kind::Dev),
    ("ifrt-proxy", "ifrt-proxy", Kind::Dev),
    // The server binary serves a plugin; the library does not know which backend it serves.
    ("ifrt-proxy", "ifrt-pjrt", Kind::Optional),
    ("ifrt-proxy", "ifrt-pjrt", Kind::Dev),
    ("jaxlib-core", "ifrt", Kind::Normal),
    ("jaxlib-core", "ifrt", Kind::Dev),
    ("jaxlib-core", "ifrt-pjrt", Kind::Dev),
    // The laws of deletion hold over a server as well.
    ("jaxlib-core", "ifrt-proxy", Kind::Dev),
    ("jax-api", "ifrt", Kind::Normal),
    ("jax-api", "ifrt", Kind::Dev),
    ("jax-api", "jaxlib-core", Kind::Normal),
    // Which runtime a client uses is the user's choice.
    ("jax-api", "ifrt-pjrt", Kind::Optional),
    ("jax-api", "ifrt-pjrt", Kind::Dev),
    ("jax-api", "ifrt-proxy", Kind::Optional),
    ("jax-api", "ifrt-proxy", Kind::Dev),
];

/// Crates from outside that some of ours must not see, in any way.
const FOREIGN: [(&str, &[&str]); 4] = [
    ("ifrt", &["tokio", "tonic", "tower", "http", "libloading"]),
    ("ifrt-pjrt", &["tokio", "tonic", "tower", "http"]),
    (
        "jaxlib-core",
        &["tokio", "tonic", "tower", "http", "libloading"],
    ),
    ("jax-api", &["tonic", "tower", "http", "libloading"]),
];

/// Compares the manifests with the tables.
///
/// # Errors
/// Cargo cannot read the manifests.
pub(super) fn check(workspace: &Workspace) -> Result<Findings> {
    let metadata = MetadataCommand::new()
        .current_dir(workspace.root())
        .no_deps()
        .exec()
        .context("cargo metadata")?;
    Ok(compare(&metadata))
}

fn compare(metadata: &Metadata) -> Findings {
    let mut findings = Findings::default();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        if !CRATES.contains(&name) {
            findings.problem(format!(
                "the crate {name} is not in the tables of xtask/src/tidy/layers.rs; decide in \
                 which layer it stands"
            ));
        }
        for dependency in &package.dependencies {
            compare_edge(package, dependency, &mut findings);
        }
    }
    findings
}

fn compare_edge(package: &Package, dependency: &Dependency, findings: &mut Findings) {
    let (from, to) = (package.name.as_str(), dependency.name.as_str());
    let kind = Kind::of(dependency);
    if CRATES.contains(&to) || dependency.path.is_some() {
        if !LAYERS.contains(&(from, to, kind)) {
            findings.problem(format!(
                "{from} has a {kind} dependency on {to}, which the layers do not allow (see \
                 ARCHITECTURE.md and xtask/src/tidy/layers.rs)"
            ));
        }
    } else if FOREIGN
        .iter()
        .any(|(name, denied)| *name == from && denied.contains(&to))
    {
        findings.problem(format!(
            "{from} must not depend on {to}, not even as {kind} dependency"
        ));
    }
}

#[cfg(test)]
mod tests;
