//! What the compiler and the linter do not check: layers, rooms, sizes, documents, licences.
//!
//! Each check returns its findings. They run as `cargo xtask tidy` and as tests of this package.

mod docs;
mod files;
mod layers;
mod licences;
mod modules;
mod source;

use crate::cmd::codegen::proto_hash;
use crate::ctx::Workspace;
use anyhow::Result;

/// What a check found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What must be mended.
    pub(crate) problems: Vec<String>,
    /// What may stay for now.
    pub(crate) warnings: Vec<String>,
}

impl Findings {
    fn problem(&mut self, text: impl Into<String>) {
        self.problems.push(text.into());
    }

    fn warning(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }
}

/// A check of the whole workspace.
type Check = fn(&Workspace) -> Result<Findings>;

/// All checks, by the name that `cargo xtask tidy NAME` takes.
pub(crate) const CHECKS: [(&str, Check); 6] = [
    ("layers", layers::check),
    ("modules", modules::check),
    ("files", files::check),
    ("docs", docs::check),
    ("licences", licences::check),
    ("proto-hash", check_proto_hash),
];

fn check_proto_hash(workspace: &Workspace) -> Result<Findings> {
    let mut findings = Findings::default();
    if let Err(error) = proto_hash::check(workspace.root()) {
        findings.problem(format!("{error:#}"));
    }
    Ok(findings)
}

#[cfg(test)]
mod tests;
