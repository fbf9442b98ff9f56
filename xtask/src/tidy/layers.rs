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
const LAYERS: [(&str, &str, Kind); 16] = [
    // Its own test support.
    ("ifrt", "ifrt", Kind::Dev),
    ("ifrt-pjrt", "ifrt", Kind::Normal),
    ("ifrt-pjrt", "ifrt", Kind::Dev),
    ("ifrt-proxy", "ifrt", Kind::Normal),
    ("ifrt-proxy", "ifrt", Kind::Dev),
    // The server binary serves a plugin; the library does not know which backend it serves.
    ("ifrt-proxy", "ifrt-pjrt", Kind::Optional),
    ("ifrt-proxy", "ifrt-pjrt", Kind::Dev),
    ("jaxlib-core", "ifrt", Kind::Normal),
    ("jaxlib-core", "ifrt", Kind::Dev),
    ("jaxlib-core", "ifrt-pjrt", Kind::Dev),
    ("jax-api", "ifrt", Kind::Normal),
    ("jax-api", "ifrt", Kind::Dev),
    ("jax-api", "jaxlib-core", Kind::Normal),
    // Which runtime a client uses is the user's choice.
    ("jax-api", "ifrt-pjrt", Kind::Optional),
    ("jax-api", "ifrt-pjrt", Kind::Dev),
    ("jax-api", "ifrt-proxy", Kind::Optional),
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
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The manifests of the tree, as cargo describes them.
    fn document() -> Value {
        let workspace = Workspace::find();
        let arguments = ["metadata", "--no-deps", "--format-version", "1"];
        let output = workspace.cargo(arguments).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn package<'a>(document: &'a mut Value, name: &str) -> &'a mut Value {
        let packages = document["packages"].as_array_mut().unwrap();
        packages
            .iter_mut()
            .find(|package| package["name"] == name)
            .unwrap()
    }

    /// Plants a dependency: `kind` is null, "dev" or "build", as cargo writes it.
    fn plant(from: &str, to: &str, kind: Value, optional: bool) -> Vec<String> {
        let mut document = document();
        package(&mut document, from)["dependencies"]
            .as_array_mut()
            .unwrap()
            .push(json!({
                "name": to, "req": "*", "kind": kind, "optional": optional,
                "uses_default_features": true, "features": [], "target": null, "rename": null,
                "source": null, "registry": null,
            }));
        compare(&MetadataCommand::parse(document.to_string()).unwrap()).problems
    }

    #[track_caller]
    fn check_refused(problems: &[String], words: &[&str]) {
        assert_eq!(problems.len(), 1, "{problems:?}");
        for word in words {
            assert!(problems[0].contains(word), "{problems:?}");
        }
    }

    #[test]
    fn a_planted_edge_is_refused() {
        let problems = plant("ifrt-pjrt", "ifrt-proxy", Value::Null, false);
        check_refused(&problems, &["ifrt-pjrt", "normal", "ifrt-proxy"]);
        check_refused(
            &plant("ifrt", "xtask", json!("dev"), false),
            &["ifrt", "dev", "xtask"],
        );
        check_refused(
            &plant("xtask", "ifrt", Value::Null, false),
            &["xtask", "ifrt"],
        );
    }

    #[test]
    fn an_allowed_edge_of_another_kind_is_refused() {
        let problems = plant("ifrt-proxy", "ifrt-pjrt", Value::Null, false);
        check_refused(&problems, &["ifrt-proxy", "normal", "ifrt-pjrt"]);
        let problems = plant("ifrt-pjrt", "ifrt", json!("build"), false);
        check_refused(&problems, &["ifrt-pjrt", "build", "ifrt"]);
    }

    #[test]
    fn an_allowed_edge_is_not_refused() {
        assert_eq!(
            plant("ifrt-proxy", "ifrt-pjrt", Value::Null, true),
            Vec::<String>::new()
        );
        assert_eq!(
            plant("jax-api", "ifrt-proxy", Value::Null, true),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_foreign_crate_in_the_wrong_layer_is_refused() {
        check_refused(
            &plant("ifrt", "tokio", Value::Null, true),
            &["ifrt", "tokio"],
        );
        check_refused(
            &plant("jaxlib-core", "tonic", json!("dev"), false),
            &["tonic"],
        );
    }

    #[test]
    fn an_unknown_crate_is_refused() {
        let mut document = document();
        package(&mut document, "jax-api")["name"] = json!("newcomer");
        let problems = compare(&MetadataCommand::parse(document.to_string()).unwrap()).problems;
        assert!(
            problems
                .iter()
                .any(|problem| problem.contains("the crate newcomer")),
            "{problems:?}"
        );
    }
}
