//! `cargo xtask jax-tests`: JAX's own tests in process and through our server, compared test by test.
//!
//! `jax_tests.py` runs the tests of one file and says what became of each. The results in process
//! are kept below `target/xtask`, since they change only with JAX and its tests.

use crate::build::{self, SERVER};
use crate::cmd::setup::{self, Ready};
use crate::ctx::{Workspace, write_atomically};
use crate::stamp::Stamp;
use crate::step::{step, work};
use anyhow::{Context as _, Result, bail};
use checkout::Checkout;
use known::Known;
use outcome::{Outcome, Results};
use progress::Progress;
use report::{FileReport, Report};
use runner::{Place, Runner};
use servers::Keeper;
use sets::Set;
use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

mod checkout;
mod compare;
mod known;
mod outcome;
mod progress;
mod report;
mod runner;
mod servers;
mod sets;

/// What JAX's tests need besides JAX.
const REQUIREMENTS: &str = "xtask/python/requirements-jax-tests.txt";

/// The program that runs the tests of a file.
const PROGRAM: &str = "xtask/python/jax_tests.py";

/// What `jax-tests` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Get the tests once, at the version that `cargo xtask setup` installs:

    git clone --depth 1 --branch jax-v0.10.2 https://github.com/jax-ml/jax ../jax
    cargo xtask jax-tests --tests ../jax

A test that passes in process must pass through the server, or stand in
xtask/python/jax_tests_known.txt under a reason that does not lie in the server; a test that stands
there must not pass. A test that fails or skips itself in process proves nothing and is not counted.
The logs lie below target/xtask/jax-tests. The last line is `N passed, N failed, N known differences`.")]
pub(crate) struct JaxTestsArgs {
    #[command(flatten)]
    setup: setup::Args,
    /// A checkout of JAX at the version that is installed
    #[arg(long, value_name = "DIR")]
    tests: PathBuf,
    /// Which files of tests to run
    #[arg(long, value_enum, default_value = "smoke")]
    set: Set,
    /// Run these files instead of a set, such as `array_test`
    #[arg(long, value_name = "NAME", num_args = 1..)]
    file: Vec<String>,
    /// Take at most this many tests of each file, the same in every run; 0 takes all.
    /// The default is 25 for the set `smoke` and 0 otherwise
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// How many files to run at the same time, each with a server of its own
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,
    /// How many seconds a test may take before its process is ended
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Write the whole result to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A step fails, or a test differs that is not listed, or one is listed that does not differ.
pub(crate) fn run(workspace: &Workspace, args: &JaxTestsArgs) -> Result<()> {
    let checkout = Checkout::open(&args.tests)?;
    let files = files(args, &checkout)?;
    let known = Known::read(workspace)?;
    let ready = setup::ensure(workspace, &args.setup)?;
    let stamp = ("jax-tests", "what the tests need");
    step(stamp.1, || {
        setup::install(workspace, &ready.python, stamp, REQUIREMENTS)
    })?;
    checkout.check(&setup::jax_version(&ready.python)?)?;
    let binary = work("server", || build::release(workspace, SERVER))?;
    let of_set = if args.file.is_empty() {
        args.set.sample()
    } else {
        0
    };
    let sample = args.sample.unwrap_or(of_set);
    let progress = Progress::new(files.len());
    let plan = Plan {
        runner: Runner {
            workspace,
            ready: &ready,
            root: &checkout.root,
            sample,
            timeout: Duration::from_secs(args.timeout),
            progress: &progress,
        },
        checkout: &checkout,
        known: &known,
        binary: &binary,
        ready: &ready,
        files: &files,
        next: AtomicUsize::new(0),
    };
    let report = plan.run(args.jobs)?;
    print!("{}{}", report.table(), report.differences());
    if let Some(path) = &args.json {
        let text = serde_json::to_vec_pretty(&report.json(&checkout.version))?;
        write_atomically(path, &text)?;
    }
    let numbers = report.numbers();
    println!("{}", report::words(numbers));
    if numbers.failed > 0 {
        bail!("{} tests of JAX failed through the server", numbers.failed);
    }
    if numbers.passed + numbers.known == 0 {
        bail!("no test was compared");
    }
    Ok(())
}

/// The names of the files to run.
///
/// # Errors
/// One does not exist.
fn files(args: &JaxTestsArgs, checkout: &Checkout) -> Result<Vec<String>> {
    let named: Vec<String> = args
        .file
        .iter()
        .map(|name| name.trim_end_matches(".py").to_owned())
        .collect();
    let files = if named.is_empty() {
        args.set
            .files()
            .iter()
            .copied()
            .map(str::to_owned)
            .collect()
    } else {
        named
    };
    for file in &files {
        checkout.text(file)?;
    }
    Ok(files)
}

/// A run: what its threads share.
struct Plan<'a> {
    runner: Runner<'a>,
    checkout: &'a Checkout,
    known: &'a Known,
    binary: &'a Path,
    ready: &'a Ready,
    files: &'a [String],
    /// The index of the next file to run.
    next: AtomicUsize,
}

impl Plan<'_> {
    /// Runs all files, some at the same time.
    fn run(&self, jobs: NonZeroUsize) -> Result<Report> {
        let workers: Vec<Result<Report>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs.get().min(self.files.len()))
                .map(|number| scope.spawn(move || self.work(number)))
                .collect();
            workers
                .into_iter()
                .map(|worker| {
                    worker
                        .join()
                        .unwrap_or_else(|_| bail!("a thread of the run panicked"))
                })
                .collect()
        });
        let mut report = Report::default();
        for worker in workers {
            let worker = worker?;
            report.files.extend(worker.files);
            report.deaths.extend(worker.deaths);
        }
        let place = |file: &FileReport| self.files.iter().position(|name| *name == file.name);
        report.files.sort_by_key(place);
        Ok(report)
    }

    fn work(&self, number: usize) -> Result<Report> {
        let mut report = Report::default();
        let mut keeper = Keeper::new(self.runner.workspace, self.binary, self.ready, number);
        while let Some(file) = self.files.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let found = self.file(file, &mut keeper);
            keeper.look()?;
            self.runner.progress.finish(&found.to_string());
            report.files.push(found);
        }
        report.deaths = keeper.finish()?;
        Ok(report)
    }

    /// Runs a file in both places; what keeps it from being run is a part of the report.
    fn file(&self, file: &str, keeper: &mut Keeper<'_>) -> FileReport {
        let started = Instant::now();
        let mut report = FileReport {
            name: file.to_owned(),
            numbers: compare::Numbers::default(),
            verdicts: compare::Verdicts::new(),
            seconds: 0.0,
            trouble: None,
        };
        let ran = self
            .runner
            .run(file, Place::Server(keeper), None)
            .and_then(|server| {
                let in_process = self.in_process(file, server.keys().cloned().collect())?;
                Ok((in_process, server))
            });
        match ran {
            Ok((in_process, server)) => {
                let whole = self.runner.sample == 0;
                report.verdicts = compare::compare(file, &in_process, &server, self.known, whole);
                report.numbers = compare::numbers(&in_process, &server, &report.verdicts);
            }
            Err(error) => report.trouble = Some(format!("{error:#}")),
        }
        report.seconds = started.elapsed().as_secs_f64();
        report
    }

    /// The results in process of these tests, as far as possible from an earlier run.
    fn in_process(&self, file: &str, tests: BTreeSet<String>) -> Result<Results> {
        let workspace = self.runner.workspace;
        let read = |path: &str| {
            let path = workspace.path(path);
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
        };
        let inputs = [
            setup::jax_versions(&self.ready.python)?,
            self.checkout.text(file)?,
            read(REQUIREMENTS)?,
            read(PROGRAM)?,
            runner::GENERATED_CASES.to_owned(),
        ];
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let kept = Stamp::new(workspace, &format!("jax-tests-{file}"), &inputs)?;
        let mut results: Results = match kept.note() {
            Some(text) => serde_json::from_str(&text)
                .context("reading kept results; remove target/xtask/stamps/jax-tests-*")?,
            None => Results::new(),
        };
        let missing: BTreeSet<String> = tests
            .into_iter()
            .filter(|test| !results.contains_key(test))
            .collect();
        if !missing.is_empty() {
            results.extend(self.runner.run(file, Place::InProcess, Some(&missing))?);
            // What fails in process may do so by chance, and would hide what the server does.
            let steady: Results = results
                .iter()
                .filter(|(_, r)| matches!(r.outcome, Outcome::Passed | Outcome::Skipped))
                .map(|(test, result)| (test.clone(), result.clone()))
                .collect();
            kept.set(&serde_json::to_string(&steady)?)?;
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests;
