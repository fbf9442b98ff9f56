//! `cargo xtask doctor`: what this machine has and lacks, with the command that mends each lack.

use crate::child;
use crate::cmd::setup;
use crate::ctx::Workspace;
use crate::plugin::{self, Pinned};
use crate::python;
use anyhow::{Context as _, Result, bail};
use rustix::fs::statvfs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// What `doctor` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Look at this PJRT plugin instead of the default CPU plugin; also: PJRT_PLUGIN_LIBRARY_PATH
    #[arg(long, value_name = "PATH")]
    plugin: Option<PathBuf>,
}

/// Disk space that the builds, the Python environment and the plugin take.
const NEEDED_GIB: u64 = 6;

/// What the client inside the pinned jaxlib offers in its handshake, as measured.
const JAXLIB_SPEAKS: &str = "IFRT proxy protocol 16 to 25, serdes 0 to 3";

const DEADLINE: Duration = Duration::from_secs(120);

/// What a look at one thing gave.
struct Finding {
    name: &'static str,
    /// Whether something does not work without it.
    is_needed: bool,
    /// What is there, or what is wrong and how to mend it.
    state: Result<String, Lack>,
}

struct Lack {
    what: String,
    fix: String,
}

fn lack(what: impl Into<String>, fix: impl Into<String>) -> Lack {
    Lack {
        what: what.into(),
        fix: fix.into(),
    }
}

const SETUP: &str = "cargo xtask setup";

/// Runs the command.
///
/// # Errors
/// Something that is needed is missing.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let needed = |name, state| Finding {
        name,
        is_needed: true,
        state,
    };
    let optional = |name, state| Finding {
        name,
        is_needed: false,
        state,
    };
    let findings = [
        needed("rust", rust(workspace)),
        optional("rustfmt", component(workspace, "fmt", "rustfmt")),
        optional("clippy", component(workspace, "clippy", "clippy")),
        optional("nextest", nextest(workspace)),
        needed("disk", disk(workspace)),
        needed("python", interpreter()),
        needed("jax", jax(workspace)),
        needed("plugin", pjrt_plugin(workspace, args)),
        needed("loopback", loopback()),
    ];
    let mut missing = 0;
    for Finding {
        name,
        is_needed,
        state,
    } in &findings
    {
        match state {
            Ok(found) => println!("ok        {name:9} {found}"),
            Err(Lack { what, fix }) => {
                missing += usize::from(*is_needed);
                let word = if *is_needed { "MISSING" } else { "optional" };
                println!("{word:9} {name:9} {what}\n{:20}fix: {fix}", "");
            }
        }
    }
    if missing > 0 {
        bail!("{missing} needed things are missing; each has its fix above");
    }
    Ok(())
}

/// The first line that a command prints.
fn first_line(mut command: Command) -> Option<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let text = child::output(&name, &mut command, DEADLINE).ok()?;
    text.lines().next().map(str::to_owned)
}

fn rust(workspace: &Workspace) -> Result<String, Lack> {
    let needed = env!("CARGO_PKG_RUST_VERSION");
    let fix = format!("rustup update stable (Rust {needed} or newer)");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.arg("--version").current_dir(workspace.root());
    let found = first_line(rustc).ok_or_else(|| lack("rustc does not start", fix.as_str()))?;
    if is_at_least(&found, needed) {
        Ok(found)
    } else {
        Err(lack(format!("{found} is too old"), fix))
    }
}

/// Whether `rustc 1.95.0 (…)` is at least a version like `1.95`.
fn is_at_least(found: &str, needed: &str) -> bool {
    let numbers = |text: &str| -> Option<(u32, u32)> {
        let mut parts = text.split(['.', '-', ' ']);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    let found = found.strip_prefix("rustc ").and_then(numbers);
    found
        .zip(numbers(needed))
        .is_some_and(|(found, needed)| found >= needed)
}

fn component(workspace: &Workspace, subcommand: &str, name: &str) -> Result<String, Lack> {
    first_line(workspace.cargo([subcommand, "--version"])).ok_or_else(|| {
        lack(
            "not installed; `cargo xtask ci` needs it",
            format!("rustup component add {name}"),
        )
    })
}

fn nextest(workspace: &Workspace) -> Result<String, Lack> {
    first_line(workspace.cargo(["nextest", "--version"])).ok_or_else(|| {
        lack(
            "not installed; the tests run with `cargo test`",
            "cargo install cargo-nextest --locked",
        )
    })
}

fn disk(workspace: &Workspace) -> Result<String, Lack> {
    let look = || {
        let folder = workspace.state("disk")?;
        let stat = statvfs(folder.parent().unwrap_or(&folder)).context("reading the free space")?;
        anyhow::Ok(stat.f_bavail.saturating_mul(stat.f_frsize) >> 30)
    };
    match look() {
        Ok(free) if free >= NEEDED_GIB => Ok(format!("{free} GiB free")),
        Ok(free) => Err(lack(
            format!("{free} GiB free, and the builds need {NEEDED_GIB}"),
            "free some space, or set CARGO_TARGET_DIR to a folder on a larger disk",
        )),
        Err(error) => Err(lack(
            format!("{error:#}"),
            "make the folder `target` writable",
        )),
    }
}

fn interpreter() -> Result<String, Lack> {
    match python::find(None) {
        Ok(found) => Ok(found.to_string()),
        Err(error) => {
            let fix = "apt-get install python3.11 python3.11-venv (Debian, Ubuntu), or another way \
                       to a CPython 3.11 to 3.14";
            Err(lack(format!("{error:#}"), fix))
        }
    }
}

fn jax(workspace: &Workspace) -> Result<String, Lack> {
    let python = workspace.venv_python();
    if !python.is_file() {
        return Err(lack("there is no private Python environment yet", SETUP));
    }
    match setup::jax_versions(&python) {
        Ok(versions) => Ok(format!("{versions}: {JAXLIB_SPEAKS}")),
        Err(error) => Err(lack(format!("{error:#}"), SETUP)),
    }
}

fn pjrt_plugin(workspace: &Workspace, args: &Args) -> Result<String, Lack> {
    let named = plugin::named(args.plugin.as_deref())
        .map_err(|error| lack(format!("{error:#}"), "name the path of a PJRT plugin"))?;
    let path = match named {
        Some(path) => path,
        None => {
            let default = || {
                let (pinned, _) = Pinned::read(workspace)?;
                workspace.state(format!("plugins/{}.so", pinned.name))
            };
            default().map_err(|error| lack(format!("{error:#}"), "restore the file from git"))?
        }
    };
    if !path.is_file() {
        return Err(lack(format!("{} is not there yet", path.display()), SETUP));
    }
    let venv = workspace.venv_python();
    let python = if venv.is_file() {
        Ok(venv)
    } else {
        python::find(None).map(|p| p.executable)
    };
    let python = python.map_err(|_| lack("it cannot be probed without Python", SETUP))?;
    match plugin::probe(workspace, &python, &path) {
        Ok(version) => Ok(format!("{version}, {}", path.display())),
        Err(error) => Err(lack(
            format!("{error:#}"),
            format!("take another build of the plugin, or remove it and run {SETUP}"),
        )),
    }
}

/// A server and a client on the loopback interface.
fn loopback() -> Result<String, Lack> {
    let connect = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening")?;
        let address = listener.local_addr().context("reading the address")?;
        TcpStream::connect_timeout(&address, DEADLINE).context("connecting")?;
        anyhow::Ok(())
    };
    match connect() {
        Ok(()) => Ok("127.0.0.1 can be listened and connected to".to_owned()),
        Err(error) => Err(lack(
            format!("127.0.0.1 cannot be used: {error:#}"),
            "ip link set lo up, or use a Unix socket: --listen grpc://unix:/PATH",
        )),
    }
}

#[cfg(test)]
mod tests;
