//! The one automation tool of the workspace: `cargo xtask --help`.
//!
//! Every command is a list of named steps. What a command needs it sets up itself, everything that
//! it keeps lies below `target/xtask`, and nothing that it starts outlives it.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool prints"
)]

mod child;
mod cmd;
mod ctx;
mod plugin;
mod python;
mod stamp;
mod step;

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
    /// Compile the protocol buffer definitions into Rust
    Codegen(cmd::codegen::Args),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let workspace = Workspace::find();
    let outcome = child::end_children_on_signals().and_then(|()| match command {
        Command::Setup(args) => cmd::setup::run(&workspace, &args),
        Command::Codegen(args) => cmd::codegen::run(&args),
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
