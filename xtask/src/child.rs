//! Child processes: each in a process group of its own, with a deadline on every wait.
//!
//! A child and all that it started are killed when its handle is dropped, when it ends by itself,
//! and when this tool is interrupted. What it prints is kept, so that an expired deadline can show
//! its last lines.

mod lines;
mod registry;

pub(crate) use lines::{Line, Stream};
pub(crate) use registry::end_children_on_signals;

use anyhow::{Context as _, Result, bail};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a killed child may take to go away.
const KILL_DEADLINE: Duration = Duration::from_secs(10);

/// How many of a child's last lines a failure shows.
const TAIL_LINES: usize = 40;

/// How often a silent wait says that it still waits.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// What becomes of one output stream of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// It goes where this tool's own output goes.
    Inherit,
    /// It is kept.
    Keep,
    /// It is kept and printed as well.
    KeepAndPrint,
}

/// What a child has said and how it ended, shared with its threads.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<Line>,
    open_streams: usize,
    status: Option<ExitStatus>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `found` answers or the time is over.
    fn wait_until<T>(
        &self,
        timeout: Duration,
        mut found: impl FnMut(&State) -> Option<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            if let Some(value) = found(&state) {
                return Some(value);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

/// A running child.
#[derive(Debug)]
pub(crate) struct Child {
    name: String,
    group: Pid,
    stdin: Option<ChildStdin>,
    shared: Arc<Shared>,
}

impl Child {
    /// Starts a command. Its standard input is a pipe if `piped_stdin`, and empty otherwise.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(crate) fn spawn(
        name: &str,
        command: &mut Command,
        piped_stdin: bool,
        [out, err]: [Output; 2],
    ) -> Result<Self> {
        let stdio = |output| {
            if output == Output::Inherit {
                Stdio::inherit()
            } else {
                Stdio::piped()
            }
        };
        command
            .process_group(0)
            .stdin(if piped_stdin {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(stdio(out))
            .stderr(stdio(err));
        let mut process = command
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().display()))?;
        let shared = Arc::new(Shared::default());
        let stdin = process.stdin.take();
        shared.lock().open_streams =
            usize::from(process.stdout.is_some()) + usize::from(process.stderr.is_some());
        if let Some(stream) = process.stdout.take() {
            lines::collect(stream, Stream::Out, out, Arc::clone(&shared));
        }
        if let Some(stream) = process.stderr.take() {
            lines::collect(stream, Stream::Err, err, Arc::clone(&shared));
        }
        let group = Pid::from_child(&process);
        registry::add(group);
        let waiter = Arc::clone(&shared);
        std::thread::spawn(move || {
            // The group is swept while the leader is not yet reaped: until then its number cannot
            // belong to anybody else.
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(group), ended), Err(Errno::INTR)) {}
            // A group that is empty but for its leader needs no sweep.
            kill_process_group(group, Signal::KILL).unwrap_or_default();
            registry::remove(group);
            let mut state = waiter.lock();
            state.status = Some(process.wait().unwrap_or_else(|_| ExitStatus::from_raw(-1)));
            drop(state);
            waiter.changed.notify_all();
        });
        Ok(Self {
            name: name.to_owned(),
            group,
            stdin,
            shared,
        })
    }

    /// The name that messages use.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    /// How the child ended, if it has.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.shared.lock().status
    }

    /// Sends a signal to the child and all that it started; nothing happens if it has ended.
    ///
    /// # Errors
    /// The system refuses to send it.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let state = self.shared.lock();
        if state.status.is_none() {
            kill_process_group(self.group, signal)
                .with_context(|| format!("sending a signal to {}", self.name))?;
        }
        Ok(())
    }

    /// Writes a line to the child's standard input.
    ///
    /// # Errors
    /// It was not opened, or the child has closed it.
    pub(crate) fn write_line(&mut self, line: &str) -> Result<()> {
        let name = &self.name;
        let stdin = self
            .stdin
            .as_mut()
            .with_context(|| format!("{name} takes no input"))?;
        writeln!(stdin, "{line}")
            .and_then(|()| stdin.flush())
            .with_context(|| format!("writing {line:?} to {name}"))
    }

    /// Closes the child's standard input.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// How many lines the child has printed so far.
    pub(crate) fn mark(&self) -> usize {
        self.shared.lock().lines.len()
    }

    /// Everything that the child has printed so far.
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.shared.lock().lines.clone()
    }

    /// Waits for a line at or after `mark` for which `found` answers.
    ///
    /// # Errors
    /// The child ended, or the time is over, without such a line; the text shows its last lines.
    pub(crate) fn wait_for_line<T>(
        &self,
        what: &str,
        mark: usize,
        timeout: Duration,
        mut found: impl FnMut(&Line) -> Option<T>,
    ) -> Result<T> {
        let mut next = mark;
        let outcome = self.shared.wait_until(timeout, |state| {
            let new = state.lines.get(next..).unwrap_or_default();
            let value = new.iter().find_map(&mut found);
            next = state.lines.len();
            let ended = state.status.is_some() && state.open_streams == 0;
            value.map(Ok).or_else(|| ended.then_some(Err(state.status)))
        });
        match outcome {
            Some(Ok(value)) => Ok(value),
            Some(Err(status)) => bail!(
                "{} ended ({}) before {what}{}",
                self.name,
                describe(status),
                self.tail()
            ),
            None => bail!("{}: no {what} within {timeout:?}{}", self.name, self.tail()),
        }
    }

    /// Waits for the end of the child and of its output.
    ///
    /// # Errors
    /// The time is over; the text shows the child's last lines.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<ExitStatus> {
        let started = Instant::now();
        loop {
            let left = timeout.saturating_sub(started.elapsed());
            let ended = |state: &State| state.status.filter(|_| state.open_streams == 0);
            if let Some(status) = self.shared.wait_until(left.min(HEARTBEAT), ended) {
                return Ok(status);
            }
            if started.elapsed() >= timeout {
                bail!(
                    "{} did not end within {timeout:?}{}",
                    self.name,
                    self.tail()
                );
            }
            println!("  {}: {} s so far", self.name, started.elapsed().as_secs());
        }
    }

    /// Waits for the end of the child, however long it takes.
    pub(crate) fn wait_for_ever(&self) -> ExitStatus {
        loop {
            if let Some(status) = self.shared.wait_until(HEARTBEAT, |state| state.status) {
                return status;
            }
        }
    }

    /// The last lines of the child, ready to follow an error text.
    pub(crate) fn tail(&self) -> String {
        let state = self.shared.lock();
        let start = state.lines.len().saturating_sub(TAIL_LINES);
        let last = state.lines.get(start..).unwrap_or_default();
        if last.is_empty() {
            return String::new();
        }
        let mut text = format!("\nlast lines of {}:", self.name);
        for line in last {
            text.push_str("\n  | ");
            text.push_str(&line.text);
        }
        text
    }

    /// Writes everything that the child has printed so far to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn save_log(&self, path: &Path) -> Result<()> {
        let mut text = String::new();
        for line in &self.shared.lock().lines {
            text.push_str(&line.text);
            text.push('\n');
        }
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.signal(Signal::KILL).is_ok() {
            let gone = self.shared.wait_until(KILL_DEADLINE, |state| state.status);
            if gone.is_none() {
                eprintln!("warning: {} is still there after a kill", self.name);
            }
        }
    }
}

/// An exit status in words.
pub(crate) fn describe(status: Option<ExitStatus>) -> String {
    status.map_or_else(|| "no exit status".to_owned(), |status| status.to_string())
}

/// Runs a command to its end with its output printed as it comes.
///
/// # Errors
/// It cannot be started, takes too long or fails.
pub(crate) fn run(name: &str, command: &mut Command, timeout: Duration) -> Result<()> {
    let child = Child::spawn(name, command, false, [Output::Inherit; 2])?;
    let status = child.wait(timeout)?;
    if !status.success() {
        bail!("{name} failed ({status}): {command:?}");
    }
    Ok(())
}

/// Runs a command to its end and returns what it printed on standard output.
///
/// # Errors
/// It cannot be started, takes too long or fails; the text shows its last lines.
pub(crate) fn output(name: &str, command: &mut Command, timeout: Duration) -> Result<String> {
    let child = Child::spawn(name, command, false, [Output::Keep; 2])?;
    let status = child.wait(timeout)?;
    if !status.success() {
        bail!("{name} failed ({status}){}", child.tail());
    }
    let lines = child.lines();
    let out: Vec<&str> = lines
        .iter()
        .filter(|l| l.stream == Stream::Out)
        .map(|l| l.text.as_str())
        .collect();
    Ok(out.join("\n"))
}

#[cfg(test)]
mod tests;
