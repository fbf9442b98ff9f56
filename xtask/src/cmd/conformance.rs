//! `cargo xtask conformance`: the conformance suite of the contract on one backend, as a table.

use crate::build::BUILD_DEADLINE;
use crate::child::{Child, Output};
use crate::cmd::setup;
use crate::ctx::Workspace;
use crate::plugin::VARIABLE;
use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use std::fs;
use std::process::Command;

mod report;

/// What `conformance` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct ConformanceArgs {
    #[command(flatten)]
    setup: setup::Args,
    /// The runtime to ask
    #[arg(long, value_enum)]
    backend: Backend,
    /// Run only the cases that the backend lists as unsupported or as expected failures, and fail
    /// for each that passes
    #[arg(long)]
    verify_xfail: bool,
    /// Print the names of the cases and run none
    #[arg(long)]
    list: bool,
    /// Only cases whose name contains this
    filter: Option<String>,
}

/// A runtime that the suite knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Backend {
    /// The runtime in host memory
    Fake,
    /// The same under the tracing layer
    TraceFake,
    /// The CPU plugin with eight devices
    PjrtCpu,
    /// A client and a server of the proxy, with the fake below
    ProxyFake,
    /// A client and a server of the proxy, with the CPU plugin below
    ProxyPjrtCpu,
}

impl Backend {
    const fn name(self) -> &'static str {
        match self {
            Self::Fake => "fake",
            Self::TraceFake => "trace-fake",
            Self::PjrtCpu => "pjrt-cpu",
            Self::ProxyFake => "proxy-fake",
            Self::ProxyPjrtCpu => "proxy-pjrt-cpu",
        }
    }

    /// The package whose tests have it.
    const fn package(self) -> &'static str {
        match self {
            Self::Fake | Self::TraceFake => "ifrt",
            Self::PjrtCpu => "ifrt-pjrt",
            Self::ProxyFake | Self::ProxyPjrtCpu => "ifrt-proxy",
        }
    }

    const fn needs_plugin(self) -> bool {
        matches!(self, Self::PjrtCpu | Self::ProxyPjrtCpu)
    }
}

/// Runs the command.
///
/// # Errors
/// The setup fails, or a case does.
pub(crate) fn run(workspace: &Workspace, args: &ConformanceArgs) -> Result<()> {
    let package = args.backend.package();
    let name = args.backend.name();
    let report = workspace.state(format!("conformance/{name}.tsv"))?;
    fs::write(&report, "").with_context(|| format!("writing {}", report.display()))?;
    let mut command = suite(workspace, package, args);
    command
        .env("IFRT_CONFORMANCE_BACKEND", name)
        .env("IFRT_CONFORMANCE_REPORT", &report);
    if args.verify_xfail {
        command.env("IFRT_CONFORMANCE_VERIFY_XFAIL", "1");
    }
    if args.backend.needs_plugin() && !args.list {
        let ready = setup::ensure(workspace, &args.setup)?;
        command.env(VARIABLE, &ready.plugin.path);
    }
    if !args.list {
        println!("running the conformance suite on {name} …");
    }
    let kept = [Output::Keep; 2];
    let child = Child::spawn("the suite", &mut command, false, kept)?;
    let status = child.wait(BUILD_DEADLINE)?;
    if args.list {
        return list(&child, status.success());
    }
    let text =
        fs::read_to_string(&report).with_context(|| format!("reading {}", report.display()))?;
    let rows = report::parse(&text)?;
    print!("{}", report::table(&rows));
    let counts = report::counts(&rows);
    println!(
        "{} passed, {} failed, {} skipped",
        counts.passed, counts.failed, counts.skipped
    );
    if counts.failed > 0 {
        bail!("{} cases failed on {name}", counts.failed);
    }
    if !status.success() {
        bail!("the suite failed ({status}){}", child.tail());
    }
    if counts.passed + counts.skipped == 0 && !args.verify_xfail {
        bail!("no case ran: no name contains what was asked for");
    }
    Ok(())
}

fn suite(workspace: &Workspace, package: &str, args: &ConformanceArgs) -> Command {
    let test = [
        "test",
        "--quiet",
        "--package",
        package,
        "--test",
        "conformance",
        "--",
    ];
    let mut command = workspace.cargo(test);
    if args.list {
        command.arg("--list");
    }
    command.args(&args.filter);
    command
}

/// Prints the names of the cases, one a line.
fn list(child: &Child, success: bool) -> Result<()> {
    if !success {
        bail!("the cases cannot be listed{}", child.tail());
    }
    for line in child.lines() {
        if let Some(name) = line.text.strip_suffix(": test") {
            println!("{name}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
