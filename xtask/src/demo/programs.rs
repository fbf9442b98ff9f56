//! Runs the JAX programs of the demo, in process and through a server.

use super::results::{self, Results};
use crate::child::{Child, Output};
use crate::cmd::setup::Ready;
use crate::ctx::Workspace;
use crate::server::CPU_DEVICES;
use anyhow::{Result, bail};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long the whole program may take; it needs about ten seconds.
const PROGRAM_DEADLINE: Duration = Duration::from_secs(300);

/// What the environment of a user may hold that would change the program.
const CLEARED: [&str; 4] = ["JAX_", "IFRT_PROXY_", "XLA_", "PJRT_"];

/// Where a JAX program gets its devices from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Devices<'a> {
    /// JAX's built-in CPU client.
    InProcess,
    /// A server at this address, this folder on the Python path, and variables that its clients need.
    Server {
        address: &'a str,
        package: &'a Path,
        variables: &'a [(&'a str, &'a OsStr)],
    },
}

/// A Python command whose environment holds what `devices` needs and nothing else for JAX.
pub(crate) fn jax_command(ready: &Ready, devices: Devices<'_>) -> Command {
    let mut command = Command::new(&ready.python);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if CLEARED.iter().any(|prefix| text.starts_with(prefix)) || text.starts_with("PYTHON") {
            command.env_remove(&name);
        }
    }
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    match devices {
        Devices::InProcess => {
            command
                .env("JAX_PLATFORMS", "cpu")
                .env("JAX_NUM_CPU_DEVICES", CPU_DEVICES.to_string());
        }
        Devices::Server {
            address,
            package,
            variables,
        } => {
            command
                .env("JAX_PLATFORMS", "proxy")
                .env("JAX_BACKEND_TARGET", address)
                .env("PYTHONPATH", package)
                .envs(variables.iter().copied());
        }
    }
    command
}

/// Runs the program, or some groups of it, and returns what it wrote.
///
/// # Errors
/// It fails, takes too long, or writes nothing readable.
pub(crate) fn run_program(
    workspace: &Workspace,
    ready: &Ready,
    name: &str,
    devices: Devices<'_>,
    groups: &[&str],
) -> Result<Results> {
    let path = workspace.state(format!("demo/{name}.json"))?;
    let log = workspace.state(format!("demo/{name}.log"))?;
    let mut command = jax_command(ready, devices);
    command
        .arg(workspace.path("xtask/python/demo_program.py"))
        .arg(&path);
    if !groups.is_empty() {
        command.arg("--only").args(groups);
    }
    if path.exists() {
        std::fs::remove_file(&path)?;
    }
    let child = Child::spawn(
        &format!("the JAX program ({name})"),
        &mut command,
        false,
        [Output::Keep; 2],
    )?;
    let status = child.wait(PROGRAM_DEADLINE);
    child.save_log(&log)?;
    let status = status?;
    if !status.success() {
        bail!("{} failed ({status}){}", child.name(), child.tail());
    }
    results::read(&path)
}
