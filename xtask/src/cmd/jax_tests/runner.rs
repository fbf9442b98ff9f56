//! Runs the tests of a file, in process or through a server, to the end of the last of them.

use super::outcome::{self, Event, Outcome, Results, TestResult};
use super::progress::Progress;
use super::servers::Keeper;
use crate::child::{Child, Output, Stream, describe};
use crate::cmd::setup::Ready;
use crate::ctx::Workspace;
use crate::demo::programs::{Devices, jax_command};
use crate::server::CPU_DEVICES;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How many cases JAX makes of each generated test; more of them prove little about a server.
pub(super) const GENERATED_CASES: &str = "1";

/// How long the imports and the collection may take on a busy machine.
const COLLECTION_DEADLINE: Duration = Duration::from_secs(600);

/// How long after its time limit a test may take to end its process.
const GRACE: Duration = Duration::from_secs(60);

/// How many processes of a file may be lost before the rest of it is given up.
const MAX_LOSSES: usize = 20;

/// How a process of `jax_tests.py` ends when the server has died in a test.
const SERVER_DIED: i32 = 86;

/// Where the devices of the tests are.
#[derive(Debug)]
pub(super) enum Place<'a, 'b> {
    /// In JAX's built-in CPU client.
    InProcess,
    /// In a server, which is started anew when it dies.
    Server(&'a mut Keeper<'b>),
}

impl Place<'_, '_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Server(_) => "server",
        }
    }
}

/// What every run of a file shares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runner<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) ready: &'a Ready,
    pub(super) root: &'a Path,
    pub(super) sample: usize,
    pub(super) timeout: Duration,
    pub(super) progress: &'a Progress,
}

/// How a process ended.
enum End {
    Finished,
    /// It was lost, in this test if it was in one.
    Lost {
        test: Option<String>,
        why: String,
    },
}

impl Runner<'_> {
    /// Runs the tests of a file: those of `only`, or else the sample.
    ///
    /// # Errors
    /// The file cannot be collected, or the machine refuses something.
    pub(super) fn run(
        &self,
        file: &str,
        mut place: Place<'_, '_>,
        only: Option<&BTreeSet<String>>,
    ) -> Result<Results> {
        let mut results = Results::new();
        for loss in 0..MAX_LOSSES {
            let log = format!("jax-tests/{file}.{}.{loss}.log", place.name());
            let log = self.workspace.state(log)?;
            let (command, name) = self.command(file, &mut place, only, &results)?;
            match self.process(file, command, &name, &log, &mut results)? {
                End::Finished => return Ok(results),
                End::Lost { test: None, why } => {
                    bail!("{file} cannot be run: {why}; see {}", log.display())
                }
                End::Lost {
                    test: Some(test),
                    why,
                } => {
                    let text = format!("{why}; see {}", log.display());
                    println!("  lost in {test}: {text}");
                    let result = TestResult {
                        outcome: Outcome::Died,
                        seconds: 0.0,
                        text,
                    };
                    results.insert(test, result);
                }
            }
        }
        bail!("{MAX_LOSSES} processes with {file} were lost")
    }

    /// The command for what is left to run.
    fn command(
        &self,
        file: &str,
        place: &mut Place<'_, '_>,
        only: Option<&BTreeSet<String>>,
        done: &Results,
    ) -> Result<(Command, String)> {
        let package = self.workspace.python_package();
        let program = self.workspace.path(super::PROGRAM);
        let name = format!("{file} {}", place.name());
        let lists = |what: &str| -> Result<PathBuf> {
            self.workspace
                .state(format!("jax-tests/{file}.{}.{what}", place.name()))
        };
        let (only_path, without) = (lists("only")?, lists("without")?);
        let mut command = match place {
            Place::InProcess => {
                let mut command = jax_command(self.ready, Devices::InProcess);
                command.arg(&program);
                command
            }
            Place::Server(keeper) => {
                let server = keeper.running()?;
                let mut command = jax_command(
                    self.ready,
                    Devices::Server {
                        address: &server.address,
                        package: &package,
                        variables: &[],
                    },
                );
                // The tests ask for the platform `cpu` by its name in many places.
                command
                    .env("JAX_PLATFORMS", "cpu")
                    .env("IFRT_PROXY_AS_CPU", "1")
                    .env("JAX_NUM_CPU_DEVICES", CPU_DEVICES.to_string());
                command
                    .arg(&program)
                    .args(["--server", &server.child.id().to_string()]);
                command
            }
        };
        command
            .env("JAX_NUM_GENERATED_CASES", GENERATED_CASES)
            .env("JAX_SKIP_SLOW_TESTS", "true")
            .arg("--root")
            .arg(self.root)
            .args(["--file", file])
            .args(["--timeout", &self.timeout.as_secs().to_string()]);
        if let Some(only) = only {
            write_names(&only_path, only)?;
            command.arg("--only").arg(&only_path);
        } else {
            command.args(["--sample", &self.sample.to_string()]);
        }
        write_names(&without, done.keys())?;
        command.arg("--without").arg(&without);
        Ok((command, name))
    }

    /// Runs one process and takes down what it says.
    fn process(
        &self,
        file: &str,
        mut command: Command,
        name: &str,
        log: &Path,
        results: &mut Results,
    ) -> Result<End> {
        let child = Child::spawn(name, &mut command, false, [Output::Keep; 2])?;
        let end = self.follow(file, &child, results);
        child.save_log(log)?;
        end
    }

    fn follow(&self, file: &str, child: &Child, results: &mut Results) -> Result<End> {
        let mut next = 0;
        let mut current: Option<String> = None;
        let mut started = Instant::now();
        loop {
            let deadline = current
                .as_ref()
                .map_or(COLLECTION_DEADLINE, |_| self.timeout + GRACE);
            let mut seen = 0;
            let event = child.wait_for_line("its next event", next, deadline, |line| {
                seen += 1;
                (line.stream == Stream::Out).then(|| outcome::parse(&line.text))
            });
            next += seen;
            let Ok(event) = event else {
                let why = match child.status() {
                    None => format!("nothing was heard for {deadline:?}"),
                    Some(status) if status.code() == Some(SERVER_DIED) => {
                        "the server died".to_owned()
                    }
                    Some(_) if current.is_some() && started.elapsed() >= self.timeout => {
                        format!("it took longer than {:?}", self.timeout)
                    }
                    Some(status) => format!("the process ended ({})", describe(Some(status))),
                };
                return Ok(End::Lost { test: current, why });
            };
            match event? {
                Event::Collected { tests } => self.progress.expect(tests, file),
                Event::Start { test } => {
                    current = Some(test);
                    started = Instant::now();
                }
                Event::End {
                    test,
                    outcome,
                    seconds,
                    text,
                } => {
                    current = None;
                    self.progress.advance(file);
                    let result = TestResult {
                        outcome,
                        seconds,
                        text,
                    };
                    results.insert(test, result);
                }
                Event::Finished => return Ok(End::Finished),
            }
        }
    }
}

/// Writes names, one a line.
fn write_names<'a>(path: &Path, names: impl IntoIterator<Item = &'a String>) -> Result<()> {
    let mut text = String::new();
    for name in names {
        text.push_str(name);
        text.push('\n');
    }
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
