//! The one automation tool of the workspace: `cargo xtask --help`.
//!
//! Every command is a list of named steps. What a command needs it sets up itself, everything that
//! it keeps lies below `target/xtask`, and nothing that it starts outlives it.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool prints"
)]

mod build;
mod child;
mod cmd;
mod ctx;
mod demo;
mod plugin;
mod python;
mod server;
mod stamp;
mod step;
mod tidy;

use clap::{Parser, Subcommand};
use ctx::Workspace;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Sets up, runs and checks the workspace")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install JAX and the default PJRT plugin below target/xtask; a second run does nothing
    Setup(cmd::setup::SetupArgs),
    /// Say what this machine has and lacks, with the command that mends each lack
    Doctor(cmd::doctor::Args),
    /// Run the server in the foreground and print what a JAX user pastes
    Serve(cmd::serve::ServeArgs),
    /// Run an unmodified JAX program through the server and compare it with JAX in process
    Demo(cmd::setup::Args),
    /// Run all tests and add up their numbers
    Test(cmd::test::TestArgs),
    /// Run the conformance suite of the contract on one backend
    Conformance(cmd::conformance::ConformanceArgs),
    /// Run JAX's own tests in process and through the server, and compare test by test
    JaxTests(cmd::jax_tests::JaxTestsArgs),
    /// Plant bugs in the deletion of arrays and check that the tests find them
    Mutants(cmd::mutants::MutantsArgs),
    /// Check layers, rooms, sizes, documents and licences
    Tidy(cmd::tidy::Args),
    /// Compile the protocol buffer definitions into Rust
    Codegen(cmd::codegen::Args),
    /// Run everything that a change must pass
    Ci(cmd::ci::Args),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let workspace = Workspace::find();
    let outcome = child::end_children_on_signals().and_then(|()| match command {
        Command::Setup(args) => cmd::setup::run(&workspace, &args),
        Command::Doctor(args) => cmd::doctor::run(&workspace, &args),
        Command::Serve(args) => cmd::serve::run(&workspace, &args),
        Command::Demo(args) => cmd::demo::run(&workspace, &args),
        Command::Test(args) => cmd::test::run(&workspace, &args),
        Command::Conformance(args) => cmd::conformance::run(&workspace, &args),
        Command::JaxTests(args) => cmd::jax_tests::run(&workspace, &args),
        Command::Mutants(args) => cmd::mutants::run(&workspace, &args),
        Command::Tidy(args) => cmd::tidy::run(&workspace, &args),
        Command::Codegen(args) => cmd::codegen::run(&args),
        Command::Ci(args) => cmd::ci::run(&workspace, &args),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The chain of causes, without a backtrace, which would hide it.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
