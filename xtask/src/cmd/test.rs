//! `cargo xtask test`: all tests of the workspace, and their numbers added up.

use crate::build::BUILD_DEADLINE;
use crate::child::{Child, Output, output};
use crate::cmd::setup::{self, Args, Ready};
use crate::ctx::Workspace;
use crate::plugin::VARIABLE;
use crate::step::{Counts, Outcome, announce, step};
use anyhow::{Result, bail};
use std::process::Command;
use std::time::Duration;

mod summary;

/// What `test` takes.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct TestArgs {
    #[command(flatten)]
    setup: Args,
    /// Only what needs neither a plugin nor Python: no setup, no network
    #[arg(long)]
    quick: bool,
    /// 10,000 cases of every property instead of 256, more tries of races; takes a while
    #[arg(long)]
    all: bool,
    /// Only tests whose name contains this
    filter: Option<String>,
}

/// The crates whose integration tests and documents load a plugin.
const NEED_PLUGIN: [&str; 2] = ["ifrt-pjrt", "jax-api"];

/// The names of other tests that load a plugin have one of these in them.
const NEED_PLUGIN_TOO: [&str; 2] = ["proxy-pjrt-cpu::", "on_the_plugin"];

/// The cases of a property if all are wanted.
const ALL_CASES: &str = "10000";

/// The tries of a pair of operations from two threads, for as many pairs as there are.
const ALL_TRIES: &str = "1000";

/// How long the tests of the Python package may take.
const PYTHON_DEADLINE: Duration = Duration::from_secs(600);

/// Runs the command.
///
/// # Errors
/// The setup fails, or a test does.
pub(crate) fn run(workspace: &Workspace, args: &TestArgs) -> Result<()> {
    let counts = counted(workspace, args)?;
    println!("{counts}");
    if counts.failed > 0 {
        bail!("{} tests failed", counts.failed);
    }
    if counts.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

/// Runs the tests and returns their numbers.
///
/// # Errors
/// The setup fails; a test that fails is only counted.
pub(crate) fn counted(workspace: &Workspace, args: &TestArgs) -> Result<Counts> {
    let ready = if args.quick {
        None
    } else {
        Some(setup::ensure(workspace, &args.setup)?)
    };
    let filter = args.filter.as_deref();
    let mut total = Counts::default();
    for (name, command, read) in rust_suites(workspace, args, filter) {
        let mut command = with_plugin(command, ready.as_ref());
        if args.all {
            command.env("PROPTEST_CASES", ALL_CASES);
            command.env("RACE_TRIES", ALL_TRIES);
        }
        total += suite(name, command, read, BUILD_DEADLINE);
    }
    if let Some(ready) = &ready {
        let command = python(workspace, ready, filter);
        total += suite(
            "tests in Python",
            command,
            summary::unittest,
            PYTHON_DEADLINE,
        );
    }
    Ok(total)
}

/// A suite: its name, its command, and what reads the numbers from its output.
type Suite = (&'static str, Command, fn(&[&str]) -> Counts);

/// The tests in Rust: with nextest, which ends a test that hangs, or else with cargo alone.
fn rust_suites(workspace: &Workspace, args: &TestArgs, filter: Option<&str>) -> Vec<Suite> {
    let quick = args.quick;
    let mut suites: Vec<Suite> = Vec::new();
    let all: &[&str] = &[];
    let without = NEED_PLUGIN.map(|package| ["--exclude", package]).concat();
    let some = if quick { without.as_slice() } else { all };
    if has_nextest(workspace) {
        suites.push((
            "tests in Rust",
            nextest(workspace, args, filter),
            summary::nextest,
        ));
    } else {
        let units = [all, &["--lib", "--bins", "--examples"]].concat();
        suites.push((
            "unit tests",
            libtest(workspace, &units, filter),
            summary::libtest,
        ));
        let integration = [some, &["--test", "*"]].concat();
        suites.push((
            "integration tests",
            skipping(quick, libtest(workspace, &integration, filter)),
            summary::libtest,
        ));
    }
    let documents = [some, &["--doc"]].concat();
    suites.push((
        "examples in documents",
        libtest(workspace, &documents, filter),
        summary::libtest,
    ));
    suites
}

fn has_nextest(workspace: &Workspace) -> bool {
    let mut command = workspace.cargo(["nextest", "--version"]);
    output("cargo nextest --version", &mut command, PYTHON_DEADLINE).is_ok()
}

fn nextest(workspace: &Workspace, args: &TestArgs, filter: Option<&str>) -> Command {
    let mut command = workspace.cargo(["nextest", "run", "--workspace", "--all-features"]);
    command.args([
        "--no-fail-fast",
        "--no-tests",
        "pass",
        "--status-level",
        "slow",
    ]);
    command.args(["--final-status-level", "slow"]);
    if args.all {
        // Its tests may take longer.
        command.args(["--profile", "all"]);
    }
    if args.quick {
        let packages = NEED_PLUGIN
            .map(|package| format!("package({package})"))
            .join(" | ");
        let others = NEED_PLUGIN_TOO
            .map(|name| format!("test({name})"))
            .join(" | ");
        let without = format!("not (kind(test) & ({packages} | {others}))");
        command.args(["--filterset", &without]);
    }
    command.args(filter);
    command
}

fn libtest(workspace: &Workspace, kinds: &[&str], filter: Option<&str>) -> Command {
    let mut command = workspace.cargo(["test", "--workspace", "--all-features", "--no-fail-fast"]);
    command.args(kinds).args(filter);
    command
}

/// Leaves out the tests that load a plugin, if there may be none.
fn skipping(quick: bool, mut command: Command) -> Command {
    if quick {
        command.arg("--");
        for name in NEED_PLUGIN_TOO {
            command.args(["--skip", name]);
        }
    }
    command
}

fn python(workspace: &Workspace, ready: &Ready, filter: Option<&str>) -> Command {
    let mut command = Command::new(&ready.python);
    command.args([
        "-B",
        "-m",
        "unittest",
        "discover",
        "--start-directory",
        "tests",
    ]);
    if let Some(filter) = filter {
        command.args(["-k", filter]);
    }
    command
        .current_dir(workspace.path("ifrt-proxy/python"))
        .env("PYTHONPATH", workspace.python_package())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Tests that need a plugin find it in the variable.
fn with_plugin(mut command: Command, ready: Option<&Ready>) -> Command {
    match ready {
        Some(ready) => command.env(VARIABLE, &ready.plugin.path),
        None => command.env_remove(VARIABLE),
    };
    // What is read below must not be colored.
    command.env("CARGO_TERM_COLOR", "never");
    command
}

/// Runs one suite and reads its numbers from what it prints.
fn suite(
    name: &str,
    mut command: Command,
    read: fn(&[&str]) -> Counts,
    deadline: Duration,
) -> Counts {
    announce(name);
    let mut counts = Counts::default();
    let outcome = step(name, || {
        let child = Child::spawn(name, &mut command, false, [Output::KeepAndPrint; 2])?;
        let status = child.wait(deadline)?;
        let lines = child.lines();
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        counts = read(&texts);
        if !status.success() {
            bail!("{counts} ({status}): {command:?}");
        }
        Ok(Outcome::Note(counts.to_string()))
    });
    if let Err(error) = outcome {
        println!("  {error:#}");
        // A suite that does not even start counts as one test that failed.
        counts.failed = counts.failed.max(1);
    }
    counts
}
