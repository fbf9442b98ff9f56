//! A running proxy server, from its first line to its clean end.

use crate::child::{Child, Output, Stream};
use crate::plugin::Plugin;
use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long a server may take to load its plugin and to listen.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// How long it may take to end after it was asked to.
pub(crate) const STOP_DEADLINE: Duration = Duration::from_secs(20);

/// How the line starts that gives the address.
const LISTENING: &str = "listening on ";

/// How many devices the default CPU plugin is asked for.
pub(crate) const CPU_DEVICES: usize = 8;

/// A free port of this machine.
pub(crate) const ANY_PORT: &str = "grpc://127.0.0.1:0";

/// A server that listens.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) child: Child,
    /// What a JAX user sets `JAX_BACKEND_TARGET` to.
    pub(crate) address: String,
}

/// The command line of a server.
pub(crate) fn command(binary: &Path, plugin: &Plugin, listen: &str) -> Command {
    let mut command = Command::new(binary);
    command.arg("--plugin").arg(&plugin.path);
    if plugin.is_default {
        command.args(["--option", &format!("cpu_device_count={CPU_DEVICES}")]);
    }
    command.args(["--listen", listen]);
    command
}

impl Server {
    /// Starts a server and waits until it listens.
    ///
    /// # Errors
    /// It ends, or prints no address in time; the text shows what it said.
    pub(crate) fn start(name: &str, command: &mut Command, err: Output) -> Result<Self> {
        let child = Child::spawn(name, command, false, [Output::Keep, err])?;
        let address = child.wait_for_line("address", 0, START_DEADLINE, |line| {
            (line.stream == Stream::Out)
                .then(|| line.text.strip_prefix(LISTENING).map(str::to_owned))
        })?;
        let address = address.with_context(|| {
            format!(
                "the first line of {name} is not `{LISTENING}ADDRESS`{}",
                child.tail()
            )
        })?;
        Ok(Self { child, address })
    }

    /// Asks the server to end and checks that it ends cleanly.
    ///
    /// # Errors
    /// It does not end in time, or not with exit code 0.
    pub(crate) fn stop(&self) -> Result<()> {
        self.child.signal(Signal::TERM)?;
        let status = self.child.wait(STOP_DEADLINE)?;
        if !status.success() {
            bail!(
                "{} ended with {status} after SIGTERM{}",
                self.child.name(),
                self.child.tail()
            );
        }
        Ok(())
    }
}
