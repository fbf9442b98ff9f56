//! `cargo xtask codegen`.

/// What `codegen` takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Compare with the committed files instead of writing them.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::bail!("not written yet (check: {})", args.check)
}
