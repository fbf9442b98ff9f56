//! A server that is started anew when it dies, and a record of every death.

use crate::child::{Output, describe};
use crate::cmd::setup::Ready;
use crate::ctx::Workspace;
use crate::server::{self, Server};
use anyhow::{Context as _, Result};
use std::path::Path;

/// Keeps a server running for one thread of a run.
#[derive(Debug)]
pub(super) struct Keeper<'a> {
    workspace: &'a Workspace,
    binary: &'a Path,
    ready: &'a Ready,
    /// Which thread of the run it is for.
    number: usize,
    server: Option<Server>,
    deaths: Vec<String>,
}

impl<'a> Keeper<'a> {
    pub(super) const fn new(
        workspace: &'a Workspace,
        binary: &'a Path,
        ready: &'a Ready,
        number: usize,
    ) -> Self {
        Self {
            workspace,
            binary,
            ready,
            number,
            server: None,
            deaths: Vec::new(),
        }
    }

    /// The server, which is started if there is none.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn running(&mut self) -> Result<&Server> {
        self.look()?;
        let server = match self.server.take() {
            Some(server) => server,
            None => {
                let mut command =
                    server::command(self.binary, &self.ready.plugin, server::ANY_PORT);
                command.env("RUST_LOG", "warn").env("NO_COLOR", "1");
                Server::start("the server", &mut command, Output::Keep)?
            }
        };
        Ok(self.server.insert(server))
    }

    /// Takes down a death, if the server has died.
    ///
    /// # Errors
    /// Its log cannot be written.
    pub(super) fn look(&mut self) -> Result<()> {
        let Some(server) = &self.server else {
            return Ok(());
        };
        let Some(status) = server.child.status() else {
            return Ok(());
        };
        let log = self.log()?;
        server.child.save_log(&log)?;
        self.deaths.push(format!(
            "the server died ({}); see {}",
            describe(Some(status)),
            log.display()
        ));
        self.server = None;
        Ok(())
    }

    /// Asks the server to end, and returns what went wrong with it and its predecessors.
    ///
    /// # Errors
    /// Its log cannot be written.
    pub(super) fn finish(mut self) -> Result<Vec<String>> {
        self.look()?;
        if let Some(server) = &self.server {
            let stopped = server.stop();
            server.child.save_log(&self.log()?)?;
            if let Err(error) = stopped {
                self.deaths.push(format!("{error:#}"));
            }
        }
        Ok(self.deaths)
    }

    fn log(&self) -> Result<std::path::PathBuf> {
        let name = format!("jax-tests/server.{}.{}.log", self.number, self.deaths.len());
        self.workspace
            .state(name)
            .context("keeping the log of the server")
    }
}
