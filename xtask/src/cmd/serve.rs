//! `cargo xtask serve`: the server in the foreground.

use crate::build::{self, SERVER};
use crate::child::Output;
use crate::cmd::setup::{self, Args};
use crate::ctx::Workspace;
use crate::server::{self, Server};
use crate::step::work;
use anyhow::{Result, bail};

/// What `serve` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    setup: Args,
    /// Where to listen: grpc://127.0.0.1:PORT (0 takes a free one) or grpc://unix:/PATH
    #[arg(long, default_value = server::ANY_PORT)]
    listen: String,
    /// More arguments for the server itself; see `ifrt-proxy-server --help`
    #[arg(last = true)]
    server_args: Vec<String>,
}

/// Runs the command: it ends when the server ends.
///
/// # Errors
/// The setup or the build fails, or the server fails.
pub(crate) fn run(workspace: &Workspace, args: &ServeArgs) -> Result<()> {
    let ready = setup::ensure(workspace, &args.setup)?;
    let binary = work("server", || build::release(workspace, SERVER))?;
    let mut command = server::command(&binary, &ready.plugin, &args.listen);
    command.args(&args.server_args);
    let server = Server::start("the server", &mut command, Output::Inherit)?;
    println!(
        "\nlistening on {}; Ctrl-C ends it. In another shell:\n",
        server.address
    );
    println!(
        "export JAX_PLATFORMS=proxy JAX_BACKEND_TARGET={}",
        server.address
    );
    println!("export PYTHONPATH={}", workspace.python_package().display());
    println!("{} your_script.py\n", ready.python.display());
    let status = server.child.wait_for_ever();
    if !status.success() {
        bail!("the server ended with {status}");
    }
    Ok(())
}
