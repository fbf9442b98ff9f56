//! `cargo xtask codegen`: compiles the protocol buffer definitions into Rust.
//!
//! The definitions are our own files under `ifrt/protos` and `ifrt-proxy/protos`, at the import
//! paths of XLA. The generated Rust is committed, so nobody who builds the crates needs a protocol
//! buffer compiler, and the compiler that this command uses is a Rust library.
//!
//! The compiler stands behind the feature `codegen`, because it triples the dependencies of this
//! tool. Without the feature the command runs itself again with it.

pub(crate) mod proto_hash;

#[cfg(feature = "codegen")]
mod compare;
#[cfg(feature = "codegen")]
mod compile;
#[cfg(feature = "codegen")]
mod drift;
#[cfg(feature = "codegen")]
mod generate;
#[cfg(feature = "codegen")]
mod intended;
#[cfg(feature = "codegen")]
mod jaxlib;
#[cfg(feature = "codegen")]
mod scan;
#[cfg(feature = "codegen")]
mod schema;

use std::path::{Path, PathBuf};

/// What `codegen` takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Compare with the committed files and a deployed jaxlib instead of writing.
    #[arg(long)]
    check: bool,
    /// The `libjax_common.so` to compare with; by default the one that `cargo xtask setup` installs.
    #[arg(long, value_name = "PATH", requires = "check")]
    against: Option<PathBuf>,
}

/// The folder of the workspace.
fn workspace_root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// Runs the command.
#[cfg(not(feature = "codegen"))]
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    use anyhow::{Context as _, bail};
    use std::process::Command;

    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut again = Command::new(cargo);
    again
        .args([
            "run",
            "--quiet",
            "--package",
            "xtask",
            "--features",
            "codegen",
            "--",
            "codegen",
        ])
        .current_dir(workspace_root());
    if args.check {
        again.arg("--check");
    }
    if let Some(path) = &args.against {
        // The child starts in another folder, so a relative path must not reach it.
        let path = std::path::absolute(path)
            .with_context(|| format!("resolving --against {}", path.display()))?;
        again.arg("--against").arg(path);
    }
    let status = again
        .status()
        .context("starting cargo to build xtask with `codegen`")?;
    if !status.success() {
        bail!("codegen failed ({status}); its own message is above");
    }
    Ok(())
}

/// Runs the command.
#[cfg(feature = "codegen")]
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let root = workspace_root();
    let compiled = compile::compile(root)?;
    if args.check {
        generate::check(root, &compiled)?;
        proto_hash::check(root)?;
        jaxlib::check(root, &compiled, args.against.as_deref())
    } else {
        generate::write(root, &compiled)?;
        proto_hash::refresh(root)
    }
}
