//! `cargo xtask demo`: an unmodified JAX program through our server, and the Rust half.

use crate::build::{self, DELETE_EXAMPLE, SERVER};
use crate::child::{Child, Output, Stream};
use crate::cmd::setup::{self, Args, Ready};
use crate::ctx::Workspace;
use crate::demo::guards::{self, Guards, stranger};
use crate::demo::programs::{Devices, run_program};
use crate::demo::results::Results;
use crate::demo::{Checks, kills, results};
use crate::server::{self, Server};
use crate::step::{Counts, Outcome, announce, step, work};
use anyhow::{Context as _, Result, anyhow, bail};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long the Rust half may take.
const EXAMPLE_DEADLINE: Duration = Duration::from_secs(120);

/// The longest path that a Unix socket can be bound to, with some room.
const SOCKET_PATH_BYTES: usize = 100;

/// What the server writes into its log.
const SERVER_LOG: &str = "info,ifrt_proxy::server::shared_directory=debug";

/// The groups of the program that also run over a Unix socket.
const SOCKET_GROUPS: [&str; 6] = [
    "devices",
    "matmul",
    "dtypes",
    "big_array",
    "many_puts",
    "deletion",
];

/// Runs the command.
///
/// # Errors
/// A step fails, or a check does not hold.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let counts = counted(workspace, args)?;
    println!("{counts}");
    if !counts.is_success() {
        bail!(
            "{} checks of the demo failed; run it alone with `cargo xtask demo`",
            counts.failed
        );
    }
    Ok(())
}

/// Runs the demo and returns the numbers of its checks.
///
/// # Errors
/// A step fails; a check that does not hold is only counted.
pub(crate) fn counted(workspace: &Workspace, args: &Args) -> Result<Counts> {
    let ready = setup::ensure(workspace, args)?;
    let binary = work("server", || build::release(workspace, SERVER))?;
    let example = work("rust example", || build::release(workspace, DELETE_EXAMPLE))?;
    let mut checks = Checks::default();
    let server = work("start of the server", || {
        start(&binary, &ready, server::ANY_PORT, &[])
    })?;
    println!("  it listens on {}", server.address);
    let reference = work("JAX in process", || {
        run_program(workspace, &ready, "in-process", Devices::InProcess, &[])
    })?;
    phase("JAX through the server", &mut checks, |checks| {
        over_tcp(workspace, &ready, &server, &reference, checks)
    })?;
    phase("JAX over a Unix socket", &mut checks, |checks| {
        over_unix_socket(workspace, &ready, &binary, &reference, checks)
    })?;
    phase("rust half", &mut checks, |checks| {
        rust_half(&example, &ready, checks)
    })?;
    phase("killed clients, terminated server", &mut checks, |checks| {
        kills::run(workspace, &ready, &server, checks)
    })?;
    let log = workspace.state("demo/server.log")?;
    server.child.save_log(&log)?;
    for failure in checks.failures() {
        println!("FAILED {failure}");
    }
    Ok(checks.counts())
}

/// Runs a part of the demo as a step. Checks that do not hold fail the step and are counted, and
/// the demo goes on; an error of the part itself ends it.
fn phase(
    name: &str,
    checks: &mut Checks,
    body: impl FnOnce(&mut Checks) -> Result<()>,
) -> Result<()> {
    let before = checks.counts();
    let mut ended = Ok(());
    announce(name);
    let shown = step(name, || {
        ended = body(checks);
        let failed = checks.counts().failed - before.failed;
        if failed > 0 || ended.is_err() {
            bail!("{failed} checks failed");
        }
        Ok(Outcome::Note(format!(
            "{} checks",
            checks.counts().passed - before.passed
        )))
    });
    ended?;
    if let Err(error) = shown {
        println!("  {error:#}");
    }
    Ok(())
}

fn start(binary: &Path, ready: &Ready, listen: &str, more: &[OsString]) -> Result<Server> {
    let mut command = server::command(binary, &ready.plugin, listen);
    command.args(more);
    // The checks read the life cycle of sessions and the way of uploads from the log.
    command.env("RUST_LOG", SERVER_LOG).env("NO_COLOR", "1");
    Server::start(
        &format!("the server at {listen}"),
        &mut command,
        Output::Keep,
    )
}

/// The whole program through the server.
fn over_tcp(
    workspace: &Workspace,
    ready: &Ready,
    server: &Server,
    reference: &Results,
    checks: &mut Checks,
) -> Result<()> {
    let package = workspace.python_package();
    let devices = Devices::Server {
        address: &server.address,
        package: &package,
        variables: &[],
    };
    let found = run_program(workspace, ready, "server", devices, &[])
        .with_context(|| format!("JAX through the server{}", server.child.tail()))?;
    results::compare(reference, &found, checks);
    Ok(())
}

/// A part of the program through a second server, on a Unix socket, which wants a token and takes
/// large uploads as files.
fn over_unix_socket(
    workspace: &Workspace,
    ready: &Ready,
    binary: &Path,
    reference: &Results,
    checks: &mut Checks,
) -> Result<()> {
    let path = workspace.state("demo/s")?;
    if path.as_os_str().len() > SOCKET_PATH_BYTES {
        // The system takes no longer path; the server has nothing to do with it.
        println!("  left out: {} is too long for a socket", path.display());
        return Ok(());
    }
    let guards = Guards::new(workspace)?;
    let listen = format!("grpc://unix:{}", path.display());
    let server = start(binary, ready, &listen, &guards.server_arguments())?;
    let stranger = stranger(ready, &server.address, &workspace.python_package());
    checks.check("a client without the token is refused", stranger);
    let package = workspace.python_package();
    let devices = Devices::Server {
        address: &server.address,
        package: &package,
        variables: &guards.variables(),
    };
    let found = run_program(workspace, ready, "socket", devices, &SOCKET_GROUPS)
        .with_context(|| format!("JAX over a Unix socket{}", server.child.tail()))?;
    results::compare(
        &results::of_groups(reference, &SOCKET_GROUPS),
        &found,
        checks,
    );
    let stopped = server.stop().map(|()| "exit code 0".to_owned());
    checks.check("the server on the socket ends cleanly", stopped);
    let gone = if path.exists() {
        Err(anyhow!("{} is still there", path.display()))
    } else {
        Ok("the file is gone".to_owned())
    };
    checks.check("it takes its socket away", gone);
    let lines = server.child.lines();
    checks.check("large uploads are files", guards::were_used(&lines));
    checks.check("clients and server leave no files", guards.are_clean());
    let log = workspace.state("demo/socket-server.log")?;
    server.child.save_log(&log)
}

/// The deletion story in Rust, on the same plugin in process. Its checks are lines that start with
/// `ok: ` or `FAILED: `.
fn rust_half(example: &Path, ready: &Ready, checks: &mut Checks) -> Result<()> {
    let mut command = Command::new(example);
    command.arg("--plugin").arg(&ready.plugin.path);
    let child = Child::spawn(
        "the Rust half",
        &mut command,
        false,
        [Output::KeepAndPrint, Output::KeepAndPrint],
    )?;
    let status = child.wait(EXAMPLE_DEADLINE)?;
    let mut told = 0;
    for line in child
        .lines()
        .iter()
        .filter(|line| line.stream == Stream::Out)
    {
        if line.text.starts_with("ok: ") {
            checks.pass_quietly(1);
            told += 1;
        } else if let Some(why) = line.text.strip_prefix("FAILED: ") {
            checks.fail("the Rust half", why);
            told += 1;
        }
    }
    checks.check(
        "the Rust half ends cleanly",
        match (status.success(), told) {
            (false, _) => Err(anyhow!("{status}; what it said stands above")),
            (true, 0) => Err(anyhow!("it made no check; what it said stands above")),
            (true, n) => Ok(format!("{n} checks")),
        },
    );
    Ok(())
}
