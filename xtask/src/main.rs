//! The one automation tool of the workspace: `cargo xtask --help`.

mod cmd;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Sets up, runs and checks the workspace")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compiles the protocol buffer definitions into Rust.
    Codegen(cmd::codegen::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Codegen(args) => cmd::codegen::run(&args),
    }
}
