//! Builds programs of the workspace and finds them.

use crate::child::{Child, Output, Stream, describe};
use crate::ctx::Workspace;
use anyhow::{Context as _, Result, bail};
use cargo_metadata::Message;
use std::path::PathBuf;
use std::time::Duration;

/// A cold release build on two cores takes a few minutes.
pub(crate) const BUILD_DEADLINE: Duration = Duration::from_secs(2400);

/// A program of the workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    name: &'static str,
    args: &'static [&'static str],
}

/// The server.
pub(crate) const SERVER: Program = Program {
    name: "ifrt-proxy-server",
    args: &[
        "--package",
        "ifrt-proxy",
        "--features",
        "bin",
        "--bin",
        "ifrt-proxy-server",
    ],
};

/// The Rust half of the demo.
pub(crate) const DELETE_EXAMPLE: Program = Program {
    name: "delete",
    args: &[
        "--package",
        "jax-api",
        "--no-default-features",
        "--features",
        "pjrt",
        "--example",
        "delete",
    ],
};

impl Program {
    /// The arguments of `cargo build` for it.
    pub(crate) fn cargo_args(self) -> Vec<&'static str> {
        let mut args = vec!["build", "--release"];
        args.extend(self.args);
        args
    }
}

/// Builds a program in release mode and returns the path of the executable.
///
/// # Errors
/// The build fails, takes too long, or makes no such program.
pub(crate) fn release(workspace: &Workspace, program: Program) -> Result<PathBuf> {
    let mut command = workspace.cargo(program.cargo_args());
    command.arg("--message-format=json-render-diagnostics");
    let name = format!("cargo build of {}", program.name);
    let child = Child::spawn(&name, &mut command, false, [Output::Keep, Output::Inherit])?;
    let status = child.wait(BUILD_DEADLINE)?;
    if !status.success() {
        bail!("{name} failed ({})", describe(Some(status)));
    }
    let mut text = String::new();
    for line in child
        .lines()
        .iter()
        .filter(|line| line.stream == Stream::Out)
    {
        text.push_str(&line.text);
        text.push('\n');
    }
    executable(&text, program.name).with_context(|| format!("{name} made no program of that name"))
}

/// The path of a program in the messages of cargo.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    Message::parse_stream(messages.as_bytes())
        .filter_map(Result::ok)
        .filter_map(|message| match message {
            Message::CompilerArtifact(artifact) if artifact.target.name == name => {
                artifact.executable
            }
            _ => None,
        })
        .last()
        .map(Into::into)
}
