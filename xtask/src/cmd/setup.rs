//! `cargo xtask setup`: the private Python environment with JAX, and the default PJRT plugin.
//!
//! Every step leaves a stamp, so a second run does nothing and needs no network. What is half done
//! when a run is interrupted has no stamp and is made again.

use crate::child;
use crate::ctx::Workspace;
use crate::plugin::{self, ApiVersion, Pinned, Plugin};
use crate::python::{self, Interpreter};
use crate::stamp::{self, Stamp};
use crate::step::{Outcome, announce, step};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What `setup` takes, and every command that sets up first.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Args {
    /// Use this PJRT plugin instead of the default CPU plugin; also: PJRT_PLUGIN_LIBRARY_PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) plugin: Option<PathBuf>,
    /// Make the private environment from this interpreter (CPython 3.11 to 3.14)
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
}

/// What only `setup` itself takes.
#[derive(Debug, clap::Args)]
pub(crate) struct SetupArgs {
    #[command(flatten)]
    common: Args,
    /// Do not install JAX: enough for the Rust half
    #[arg(long)]
    no_python: bool,
}

/// The file with the exact versions and hashes.
const REQUIREMENTS: &str = "xtask/python/requirements-jax.txt";

/// Downloads may be slow; a stuck one must end all the same.
const DOWNLOAD_DEADLINE: Duration = Duration::from_secs(1800);

/// For what works on the local disk only.
const LOCAL_DEADLINE: Duration = Duration::from_secs(300);

/// What is ready after a setup.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    /// The interpreter of the private environment.
    pub(crate) python: PathBuf,
    pub(crate) plugin: Plugin,
}

/// Runs the command.
///
/// # Errors
/// A step fails.
pub(crate) fn run(workspace: &Workspace, args: &SetupArgs) -> Result<()> {
    let ready = ensure_with(workspace, &args.common, !args.no_python)?;
    println!("plugin: {}", ready.plugin.path.display());
    println!("python: {}", ready.python.display());
    println!("next: `cargo xtask demo`, or `cargo xtask serve`");
    Ok(())
}

/// Sets up what is missing, with JAX.
///
/// # Errors
/// A step fails.
pub(crate) fn ensure(workspace: &Workspace, args: &Args) -> Result<Ready> {
    ensure_with(workspace, args, true)
}

fn ensure_with(workspace: &Workspace, args: &Args, with_jax: bool) -> Result<Ready> {
    let named = plugin::named(args.plugin.as_deref())?;
    let _lock = stamp::lock(workspace)?;
    make(workspace, args.python.as_deref(), named, with_jax)
        .context("setup failed; `cargo xtask doctor` says what is missing and how to get it")
}

fn make(
    workspace: &Workspace,
    named_python: Option<&Path>,
    named_plugin: Option<PathBuf>,
    with_jax: bool,
) -> Result<Ready> {
    let python = workspace.venv_python();
    let venv = Stamp::new(workspace, "venv", &["1"])?;
    step("python environment", || {
        make_venv(workspace, &venv, named_python)
    })?;
    if with_jax {
        let made = venv.note().unwrap_or_default();
        step("jax and jaxlib", || install_jax(workspace, &python, &made))?;
    } else {
        step("jax and jaxlib", || {
            Ok(Outcome::Skipped("--no-python".to_owned()))
        })?;
    }
    let is_default = named_plugin.is_none();
    let (path, expected) = match named_plugin {
        Some(path) => (path, None),
        None => {
            let (pinned, lock_text) = Pinned::read(workspace)?;
            let path = workspace.state(format!("plugins/{}.so", pinned.name))?;
            step("plugin", || {
                fetch_plugin(workspace, &python, &pinned, &lock_text, &path)
            })?;
            let (major, minor) = pinned.c_api;
            (path, Some(ApiVersion { major, minor }))
        }
    };
    step("plugin probe", || {
        probe(workspace, &python, &path, expected)
    })?;
    Ok(Ready {
        python,
        plugin: Plugin { path, is_default },
    })
}

/// Makes the virtual environment, unless the one that is there will do.
fn make_venv(workspace: &Workspace, stamp: &Stamp, named: Option<&Path>) -> Result<Outcome> {
    let present = workspace.venv_python().is_file();
    if let (true, Some(note)) = (present, stamp.note()) {
        // Without a named interpreter any environment that works is taken.
        let same = match named {
            None => true,
            Some(_) => note.starts_with(&base_of(&python::find(named)?)),
        };
        if same {
            return Ok(Outcome::UpToDate);
        }
    }
    let interpreter = python::find(named)?;
    announce("python environment");
    stamp.clear()?;
    let folder = workspace.state("venv")?;
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    let mut command = Command::new(&interpreter.executable);
    command.args(["-I", "-m", "venv"]).arg(&folder);
    child::output("python -m venv", &mut command, LOCAL_DEADLINE).with_context(|| {
        format!("{interpreter} cannot make a virtual environment; its package venv may be missing")
    })?;
    // The time tells this environment from the one before, whose packages are gone.
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    stamp.set(&format!("{}{now}", base_of(&interpreter)))?;
    Ok(Outcome::Note(interpreter.to_string()))
}

/// How the note of an environment made from this interpreter starts.
fn base_of(interpreter: &Interpreter) -> String {
    format!(
        "{}\n{}\n",
        interpreter.executable.display(),
        interpreter.version
    )
}

/// A pip command of the private environment.
fn pip(python: &Path, action: &str) -> Command {
    let mut command = Command::new(python);
    command.args([
        "-I",
        "-m",
        "pip",
        action,
        "--no-input",
        "--disable-pip-version-check",
    ]);
    command
}

fn install_jax(workspace: &Workspace, python: &Path, venv: &str) -> Result<Outcome> {
    let stamp = ("jax", "jax and jaxlib");
    install_once(workspace, python, stamp, REQUIREMENTS, venv)
}

/// Installs a file of requirements into the private environment, which is made before. `stamp` is
/// the name of the stamp and that of the step.
///
/// # Errors
/// The file cannot be read, pip fails, or another setup is at work.
pub(crate) fn install(
    workspace: &Workspace,
    python: &Path,
    stamp: (&str, &str),
    requirements: &str,
) -> Result<Outcome> {
    let _lock = stamp::lock(workspace)?;
    let venv = Stamp::new(workspace, "venv", &["1"])?
        .note()
        .unwrap_or_default();
    install_once(workspace, python, stamp, requirements, &venv)
}

/// Installs a file of requirements, unless it was into the environment with the note `venv`.
fn install_once(
    workspace: &Workspace,
    python: &Path,
    (stamp, shown): (&str, &str),
    requirements: &str,
    venv: &str,
) -> Result<Outcome> {
    let path = workspace.path(requirements);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let stamp = Stamp::new(workspace, stamp, &[&text, venv])?;
    if stamp.note().is_some() {
        return Ok(Outcome::UpToDate);
    }
    announce(shown);
    stamp.clear()?;
    let mut command = pip(python, "install");
    command
        .args([
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--requirement",
        ])
        .arg(&path);
    child::run("pip install", &mut command, DOWNLOAD_DEADLINE).with_context(|| {
        format!(
            "pip could not install {requirements} (its reason stands above); it needs a package \
             index, which PIP_INDEX_URL or pip's own configuration names"
        )
    })?;
    let versions = jax_versions(python)?;
    stamp.set(&versions)?;
    Ok(Outcome::Note(versions))
}

/// The versions that the environment really imports.
///
/// # Errors
/// JAX cannot be imported.
pub(crate) fn jax_versions(python: &Path) -> Result<String> {
    let script = "import jax, jaxlib; print('jax', jax.__version__, 'jaxlib', jaxlib.__version__)";
    let mut command = Command::new(python);
    command.args(["-I", "-c", script]);
    child::output("import jax", &mut command, LOCAL_DEADLINE)
}

/// The version of JAX that the environment really imports.
///
/// # Errors
/// JAX cannot be imported.
pub(crate) fn jax_version(python: &Path) -> Result<String> {
    let mut command = Command::new(python);
    command.args(["-I", "-c", "import jax; print(jax.__version__)"]);
    child::output("import jax", &mut command, LOCAL_DEADLINE)
}

fn fetch_plugin(
    workspace: &Workspace,
    python: &Path,
    pinned: &Pinned,
    lock_text: &str,
    path: &Path,
) -> Result<Outcome> {
    let stamp = Stamp::new(workspace, "plugin", &[lock_text])?;
    if path.is_file() && stamp.note().is_some() {
        return Ok(Outcome::UpToDate);
    }
    let machine = Interpreter::ask(python)?.machine;
    if machine != pinned.machine {
        bail!(
            "the default CPU plugin is built for {}, this machine is {machine}; name another \
             plugin with --plugin PATH or {}",
            pinned.machine,
            plugin::VARIABLE
        );
    }
    announce("plugin");
    stamp.clear()?;
    let wheel = workspace.state(format!("wheels/{}", pinned.wheel))?;
    if !wheel.is_file() {
        let mut command = pip(python, "download");
        command.args(["--no-deps", "--only-binary", ":all:", "--dest"]);
        command.arg(wheel.parent().unwrap_or(&wheel));
        command.arg(format!("{}=={}", pinned.package, pinned.version));
        child::run("pip download", &mut command, DOWNLOAD_DEADLINE).with_context(|| {
            format!(
                "pip could not download {} {} (its reason stands above); with --plugin PATH none \
                 is needed",
                pinned.package, pinned.version
            )
        })?;
    }
    let mut command = Command::new(python);
    command
        .arg("-I")
        .arg(workspace.path("xtask/python/plugin_tool.py"))
        .arg("unpack")
        .arg(&wheel)
        .args([&pinned.sha256, &pinned.member, &pinned.member_sha256])
        .arg(path);
    child::output("unpacking the plugin", &mut command, LOCAL_DEADLINE)?;
    stamp.set("")?;
    // The library stays, its package is not needed any more.
    fs::remove_file(&wheel).with_context(|| format!("removing {}", wheel.display()))?;
    Ok(Outcome::Note(format!(
        "{} {}, SHA-256 checked",
        pinned.package, pinned.version
    )))
}

fn probe(
    workspace: &Workspace,
    python: &Path,
    path: &Path,
    expected: Option<ApiVersion>,
) -> Result<Outcome> {
    let file = fs::metadata(path).with_context(|| format!("reading {}", path.display()))?;
    let modified = file
        .modified()
        .with_context(|| format!("reading {}", path.display()))?;
    let identity = format!("{} {} {modified:?}", path.display(), file.len());
    let stamp = Stamp::new(workspace, "probe", &[&identity])?;
    if stamp.note().is_some() {
        return Ok(Outcome::UpToDate);
    }
    let found = plugin::probe(workspace, python, path)?;
    if let Some(expected) = expected
        && found != expected
    {
        bail!(
            "{} speaks {found}, and plugins.lock says {expected}",
            path.display()
        );
    }
    stamp.set(&found.to_string())?;
    Ok(Outcome::Note(found.to_string()))
}
