//! `cargo xtask ci`: everything that a change must pass. The hosted runs only call this.

use crate::build::{self, BUILD_DEADLINE, DELETE_EXAMPLE, SERVER};
use crate::child;
use crate::cmd::{demo, setup, test, tidy};
use crate::ctx::Workspace;
use crate::step::{Counts, seconds};
use anyhow::{Context as _, Result, bail};
use cargo_metadata::{MetadataCommand, Package};
use std::process::Command;
use std::time::Instant;

/// What `ci` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only these steps, in their usual order
    #[arg(value_parser = STEPS.map(|(name, _)| name))]
    steps: Vec<String>,
}

/// A step says how much it checked; most count as one.
type Step = fn(&Workspace) -> Result<Counts>;

/// All steps, the fast ones first.
const STEPS: [(&str, Step); 11] = [
    ("fmt", fmt),
    ("clippy", clippy),
    ("tidy", |workspace| Ok(tidy::counted(workspace, None))),
    ("features", features),
    ("doc", doc),
    ("setup", |workspace| {
        setup::ensure(workspace, &setup::Args::default()).map(|_| ONE)
    }),
    ("codegen", codegen),
    ("test", |workspace| {
        test::counted(workspace, &test::TestArgs::default())
    }),
    ("loom", loom),
    ("build", |workspace| {
        build::release(workspace, SERVER)?;
        build::release(workspace, DELETE_EXAMPLE).map(|_| ONE)
    }),
    ("demo", |workspace| {
        demo::counted(workspace, &setup::Args::default())
    }),
];

/// A step that is one check.
const ONE: Counts = Counts {
    passed: 1,
    failed: 0,
    skipped: 0,
};

/// Runs the command. A step that fails does not stop the others.
///
/// # Errors
/// A step failed.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let mut total = Counts::default();
    let mut table = Vec::new();
    for (name, body) in STEPS {
        if !args.steps.is_empty() && !args.steps.iter().any(|step| step == name) {
            continue;
        }
        println!("\n=== {name}");
        let started = Instant::now();
        let counts = body(workspace).unwrap_or_else(|error| {
            println!("error: {error:#}");
            Counts {
                failed: 1,
                ..Counts::default()
            }
        });
        let verdict = if counts.failed == 0 { "ok" } else { "FAILED" };
        table.push(format!(
            "{name:10} {verdict:6} {:>6}  {counts}",
            seconds(started.elapsed())
        ));
        total += counts;
    }
    println!("\n=== summary");
    for row in table {
        println!("{row}");
    }
    println!("{total}");
    if !total.is_success() {
        bail!("a step failed; run it alone with `cargo xtask ci STEP`");
    }
    Ok(())
}

/// Runs a cargo command whose output goes to the terminal.
fn cargo(name: &str, mut command: Command) -> Result<()> {
    child::run(name, &mut command, BUILD_DEADLINE)
}

fn fmt(workspace: &Workspace) -> Result<Counts> {
    cargo(
        "cargo fmt",
        workspace.cargo(["fmt", "--all", "--", "--check"]),
    )
    .context("`cargo fmt --all` mends it")?;
    Ok(ONE)
}

fn clippy(workspace: &Workspace) -> Result<Counts> {
    let args = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ];
    cargo("cargo clippy", workspace.cargo(args))?;
    Ok(ONE)
}

fn doc(workspace: &Workspace) -> Result<Counts> {
    let mut command = workspace.cargo(["doc", "--workspace", "--no-deps", "--all-features"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    cargo("cargo doc", command)?;
    Ok(ONE)
}

/// Explores every interleaving of completions and of the cells of deletion. The packages are built
/// apart, so that the usual build stays as it is.
fn loom(workspace: &Workspace) -> Result<Counts> {
    for (package, filter) in [("ifrt", "loom_tests"), ("jaxlib-core", "models")] {
        let test = ["test", "--package", package, "--release", "--lib", filter];
        let mut command = workspace.cargo(test);
        command
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", workspace.root().join("target/loom"));
        cargo("cargo test under loom", command)?;
    }
    Ok(Counts { passed: 2, ..ONE })
}

/// The generated code is what the definitions give, and the definitions are what jaxlib speaks.
fn codegen(workspace: &Workspace) -> Result<Counts> {
    let args = [
        "run",
        "--quiet",
        "--package",
        "xtask",
        "--features",
        "codegen",
        "--",
    ];
    let mut command = workspace.cargo(args);
    command.args(["codegen", "--check"]);
    cargo("cargo xtask codegen --check", command)?;
    Ok(ONE)
}

/// Every crate must build, without warnings, with none of its features and with each one alone;
/// `clippy` builds it with all.
fn features(workspace: &Workspace) -> Result<Counts> {
    let metadata = MetadataCommand::new()
        .current_dir(workspace.root())
        .no_deps()
        .exec()
        .context("cargo metadata")?;
    let mut counts = Counts::default();
    for package in metadata.workspace_packages() {
        for set in feature_sets(package) {
            let name = package.name.as_str();
            println!("{name} with {}", set.unwrap_or("no features"));
            let mut command = workspace.cargo(["clippy", "--quiet", "--package", name]);
            command.arg("--no-default-features");
            command.args(
                set.map(|feature| ["--features", feature])
                    .into_iter()
                    .flatten(),
            );
            command.args(["--", "-D", "warnings"]);
            match cargo("cargo clippy", command) {
                Ok(()) => counts.passed += 1,
                Err(error) => {
                    println!("error: {error:#}");
                    counts.failed += 1;
                }
            }
        }
    }
    Ok(counts)
}

/// No feature, and each feature alone.
fn feature_sets(package: &Package) -> Vec<Option<&str>> {
    let alone = package
        .features
        .keys()
        .map(String::as_str)
        .filter(|name| *name != "default");
    std::iter::once(None).chain(alone.map(Some)).collect()
}
