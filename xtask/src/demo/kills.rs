//! Sessions that end the hard way: a killed client, a terminated server.

use super::Checks;
use super::programs::{Devices, jax_command};
use crate::child::{Child, Line, Output};
use crate::cmd::setup::Ready;
use crate::ctx::Workspace;
use crate::server::{STOP_DEADLINE, Server};
use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// How long a client may take for one command, its start included.
const ANSWER_DEADLINE: Duration = Duration::from_secs(120);

/// How long the server may take to notice that a client is gone, and a client that the server is.
const NOTICE_DEADLINE: Duration = Duration::from_secs(15);

/// A JAX session that does what it is told.
struct Session {
    child: Child,
}

impl Session {
    fn start(
        workspace: &Workspace,
        ready: &Ready,
        name: &str,
        devices: Devices<'_>,
    ) -> Result<Self> {
        let mut command = jax_command(ready, devices);
        command.arg(workspace.path("xtask/python/demo_client.py"));
        let child = Child::spawn(name, &mut command, true, [Output::Keep; 2])?;
        Ok(Self { child })
    }

    /// Sends a command and returns what follows `done COMMAND: ` or `error COMMAND: `.
    fn ask(
        &mut self,
        word: &str,
        timeout: Duration,
    ) -> Result<std::result::Result<String, String>> {
        let mark = self.child.mark();
        self.child.write_line(word)?;
        let (done, error) = (format!("done {word}: "), format!("error {word}: "));
        self.child
            .wait_for_line(&format!("answer to {word:?}"), mark, timeout, |line| {
                let text = &line.text;
                text.strip_prefix(&done)
                    .map(|rest| Ok(rest.to_owned()))
                    .or_else(|| text.strip_prefix(&error).map(|rest| Err(rest.to_owned())))
            })
    }

    /// Like `ask`, for a command that must work.
    fn tell(&mut self, word: &str) -> Result<String> {
        match self.ask(word, ANSWER_DEADLINE)? {
            Ok(answer) => Ok(answer),
            Err(error) => bail!("{} answered {word:?} with {error}", self.child.name()),
        }
    }
}

/// What the server says it freed when a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Freed {
    arrays: u64,
    executables: u64,
}

/// Reads `… session N ended: freed A arrays, E executables, …`.
fn freed(text: &str) -> Option<Freed> {
    let (_, rest) = text.split_once("session ")?;
    let (session, rest) = rest.split_once(" ended: freed ")?;
    session.parse::<u64>().ok()?;
    let mut parts = rest.split(", ");
    let arrays = parts.next()?.strip_suffix(" arrays")?.parse().ok()?;
    let executables = parts.next()?.strip_suffix(" executables")?.parse().ok()?;
    Some(Freed {
        arrays,
        executables,
    })
}

/// Kills a client and terminates the server under another; every part is a check.
///
/// # Errors
/// The sessions cannot be brought into the state that the checks start from.
pub(crate) fn run(
    workspace: &Workspace,
    ready: &Ready,
    server: &Server,
    checks: &mut Checks,
) -> Result<()> {
    let package = workspace.python_package();
    let devices = Devices::Server {
        address: &server.address,
        package: &package,
        variables: &[],
    };
    let mut bystander = Session::start(workspace, ready, "the bystander", devices)?;
    let mut victim = Session::start(workspace, ready, "the victim", devices)?;
    victim.tell("hold")?;
    bystander.tell("hold")?;

    checks.check(
        "kill -9 of a client frees what it held",
        kill_client(server, &victim),
    );
    checks.check("the other client goes on", bystander.tell("compute"));
    checks.check(
        "kill -TERM of the server ends it cleanly",
        terminate(server),
    );
    checks.check(
        "the client's next call is an error",
        next_call(&mut bystander),
    );
    checks.check(
        "delete() twice after that is no error",
        delete_after(&mut bystander),
    );
    checks.check("the client ends cleanly", end_client(&mut bystander));
    Ok(())
}

fn kill_client(server: &Server, victim: &Session) -> Result<String> {
    // The client says what it holds: "50 arrays, 3 executables".
    let held = victim
        .child
        .lines()
        .iter()
        .find_map(|line| line.text.strip_prefix("done hold: ").map(str::to_owned))
        .and_then(|text| freed(&format!("session 0 ended: freed {text}")))
        .context("the victim did not say what it holds")?;
    let mark = server.child.mark();
    let started = Instant::now();
    victim.child.signal(Signal::KILL)?;
    let ended = |line: &Line| freed(&line.text);
    let freed = server
        .child
        .wait_for_line("end of the session", mark, NOTICE_DEADLINE, ended)?;
    let time = started.elapsed();
    if freed.arrays < held.arrays || freed.executables < held.executables {
        bail!("the client held {held:?}, and the server freed {freed:?}");
    }
    Ok(format!(
        "{} arrays and {} executables, {} ms after the kill",
        freed.arrays,
        freed.executables,
        time.as_millis()
    ))
}

fn terminate(server: &Server) -> Result<String> {
    let started = Instant::now();
    server.stop()?;
    Ok(format!(
        "exit code 0 after {} ms (at most {STOP_DEADLINE:?})",
        started.elapsed().as_millis()
    ))
}

fn next_call(client: &mut Session) -> Result<String> {
    let started = Instant::now();
    match client.ask("compute", NOTICE_DEADLINE)? {
        Ok(answer) => bail!("the server is gone, and the client computed {answer}"),
        Err(error) => Ok(format!(
            "{error} (after {} ms)",
            started.elapsed().as_millis()
        )),
    }
}

fn delete_after(client: &mut Session) -> Result<String> {
    let answer = client.tell("delete")?;
    if answer != "True" {
        bail!("is_deleted() answered {answer}");
    }
    Ok("and is_deleted() is true".to_owned())
}

fn end_client(client: &mut Session) -> Result<String> {
    client.child.write_line("quit")?;
    client.child.close_stdin();
    let status = client.child.wait(ANSWER_DEADLINE)?;
    if !status.success() {
        bail!("it ended with {status}{}", client.child.tail());
    }
    Ok("exit code 0".to_owned())
}

#[cfg(test)]
mod tests;
