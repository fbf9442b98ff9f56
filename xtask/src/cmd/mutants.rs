//! `cargo xtask mutants`: plants bugs in the deletion of `jaxlib-core`, one after the other, and
//! checks that the tests find each.
//!
//! The bugs stand in [`planted`]. They are planted in a copy of the tree below `target/xtask/mutants`,
//! never in the tree itself.

use crate::build::BUILD_DEADLINE;
use crate::child::{self, Child, Output};
use crate::cmd::setup;
use crate::ctx::Workspace;
use crate::plugin::VARIABLE;
use crate::step::{Counts, Outcome, step};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

mod planted;

use planted::{PLANTED, Planted};

/// What `mutants` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct MutantsArgs {
    #[command(flatten)]
    setup: setup::Args,
    /// Print the list of bugs and plant none
    #[arg(long)]
    list: bool,
    /// Only bugs whose description contains this
    filter: Option<String>,
}

/// Building the tests and running some of them. A bug that makes a test hang is found as well.
const TEST_DEADLINE: Duration = Duration::from_secs(300);

const LIST_DEADLINE: Duration = Duration::from_secs(60);

/// Runs the command.
///
/// # Errors
/// A bug was not found, or could not be planted; or the tests fail without any.
pub(crate) fn run(workspace: &Workspace, args: &MutantsArgs) -> Result<()> {
    let filter = args.filter.as_deref().unwrap_or("");
    let planted: Vec<&Planted> = PLANTED
        .iter()
        .filter(|one| one.what.contains(filter))
        .collect();
    if args.list {
        for one in &planted {
            println!("{:60} {:14} {}", one.what, one.file, one.tests);
        }
        return Ok(());
    }
    let ready = setup::ensure(workspace, &args.setup)?;
    let copy = Copy {
        root: workspace.state("mutants/tree")?,
        target: workspace.state("mutants/target")?,
        plugin: ready.plugin.path,
    };
    step("copy the tree", || {
        copy.refresh(workspace).map(|()| Outcome::Done)
    })?;
    step("without a bug", || {
        let tests: Vec<&str> = planted.iter().map(|one| one.tests).collect();
        match copy.test(&tests, BUILD_DEADLINE)? {
            Verdict::Passed => Ok(Outcome::Done),
            Verdict::Found(how) => bail!("the tests fail without a bug ({how})"),
        }
    })?;
    let mut counts = Counts::default();
    for one in planted {
        let outcome = step(one.what, || {
            let found = copy.with(one, || copy.test(&[one.tests], TEST_DEADLINE))?;
            match found {
                Verdict::Found(how) => Ok(Outcome::Note(format!("found by {} ({how})", one.tests))),
                Verdict::Passed => bail!("nobody noticed: {} passed", one.tests),
            }
        });
        match outcome {
            Ok(_) => counts.passed += 1,
            Err(error) => {
                println!("  {error:#}");
                counts.failed += 1;
            }
        }
    }
    println!("{counts}");
    if counts.failed > 0 {
        bail!("{} bugs were not found", counts.failed);
    }
    Ok(())
}

/// What tests say of a tree.
enum Verdict {
    Passed,
    /// How they failed.
    Found(String),
}

/// A copy of the tree, for bugs.
struct Copy {
    root: PathBuf,
    target: PathBuf,
    plugin: PathBuf,
}

impl Copy {
    /// Makes the copy like the tree. Files that are like it already are left alone, so that cargo
    /// builds only what has changed.
    fn refresh(&self, workspace: &Workspace) -> Result<()> {
        let mut command = Command::new("git");
        command
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(workspace.root());
        let files = child::output("git ls-files", &mut command, LIST_DEADLINE)?;
        for file in files.split('\0').filter(|file| !file.is_empty()) {
            let from = workspace.path(file);
            if !from.is_file() {
                continue;
            }
            let content = fs::read(&from).with_context(|| from.display().to_string())?;
            replace(&self.root.join(file), &content)?;
        }
        Ok(())
    }

    /// Does something while the bug is planted.
    fn with<T>(&self, one: &Planted, body: impl FnOnce() -> Result<T>) -> Result<T> {
        let path = self.root.join("jaxlib-core/src/deletion").join(one.file);
        let right = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let places = right.matches(one.from).count();
        if places != 1 {
            bail!(
                "{} has the text of the bug {places} times; bring \
                 xtask/src/cmd/mutants/planted.rs up to date",
                one.file
            );
        }
        replace(&path, right.replace(one.from, one.to).as_bytes())?;
        let result = body();
        replace(&path, right.as_bytes())?;
        result
    }

    /// Runs the tests with one of these in their names.
    fn test(&self, names: &[&str], deadline: Duration) -> Result<Verdict> {
        let args = ["test", "--package", "jaxlib-core", "--lib", "--test", "it"];
        let mut command = Command::new(env!("CARGO"));
        command
            .args(args)
            .args(["--no-fail-fast", "--"])
            .args(names)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("RUSTFLAGS", "--cap-lints=allow")
            .env("CARGO_TERM_COLOR", "never")
            .env(VARIABLE, &self.plugin);
        let child = Child::spawn("cargo test", &mut command, false, [Output::Keep; 2])?;
        let Ok(status) = child.wait(deadline) else {
            return Ok(Verdict::Found("it did not end".to_owned()));
        };
        if status.success() {
            return Ok(Verdict::Passed);
        }
        let lines = child.lines();
        let texts = lines.iter().map(|line| line.text.as_str());
        if let Some(error) = texts.clone().find(|text| text.starts_with("error[")) {
            bail!("the tree does not compile: {error}");
        }
        let failed = texts.clone().filter(|text| text.ends_with("... FAILED"));
        let how = match failed.count() {
            0 => "the process ended".to_owned(),
            count => format!("{count} failed"),
        };
        Ok(Verdict::Found(how))
    }
}

/// Writes a file unless it is like that already.
fn replace(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::write(path, content).with_context(|| path.display().to_string())
}
