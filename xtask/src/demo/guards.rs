//! A server that wants a token and takes large uploads as files, and a client that has no token.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};

use crate::child::{Child, Line, Output};
use crate::cmd::setup::Ready;
use crate::ctx::Workspace;
use crate::demo::programs::{Devices, jax_command};

/// How long the client may take that is refused.
const DEADLINE: Duration = Duration::from_secs(60);

/// Not a secret: the server and its clients live as long as the demo.
const TOKEN: &str = "the token of the demo, known to all";

/// What the clients of the server must have.
pub(crate) struct Guards {
    token_file: PathBuf,
    /// Where the clients leave large uploads.
    pub(crate) directory: PathBuf,
}

impl Guards {
    /// # Errors
    /// The file or the directory cannot be made.
    pub(crate) fn new(workspace: &Workspace) -> Result<Self> {
        let token_file = workspace.state("demo/token")?;
        fs::write(&token_file, TOKEN)
            .with_context(|| format!("writing {}", token_file.display()))?;
        let directory = workspace.state("demo/uploads")?;
        // Left by a demo that was killed.
        if directory.exists() {
            fs::remove_dir_all(&directory)
                .with_context(|| format!("removing {}", directory.display()))?;
        }
        fs::create_dir(&directory).with_context(|| format!("making {}", directory.display()))?;
        Ok(Self {
            token_file,
            directory,
        })
    }

    /// For the command line of the server.
    pub(crate) fn server_arguments(&self) -> [OsString; 4] {
        [
            "--token-file".into(),
            self.token_file.clone().into(),
            "--shared-directory".into(),
            self.directory.clone().into(),
        ]
    }

    /// For the environment of a client.
    pub(crate) fn variables(&self) -> [(&'static str, &OsStr); 2] {
        [
            ("IFRT_PROXY_TOKEN_FILE", self.token_file.as_os_str()),
            ("IFRT_PROXY_SHARED_DIRECTORY", self.directory.as_os_str()),
        ]
    }

    /// Checks that no upload was left behind.
    ///
    /// # Errors
    /// One was, or the directory cannot be read.
    pub(crate) fn are_clean(&self) -> Result<String> {
        let left = fs::read_dir(&self.directory)?.count();
        if left > 0 {
            return Err(anyhow!(
                "{left} files are left in {}",
                self.directory.display()
            ));
        }
        Ok("the shared directory is empty".to_owned())
    }
}

/// Checks that the server has read uploads from files.
///
/// # Errors
/// It has not.
pub(crate) fn were_used(log: &[Line]) -> Result<String> {
    let read = |line: &&Line| line.text.contains("bytes from a file");
    match log.iter().filter(read).count() {
        0 => Err(anyhow!("the server has read no file")),
        count => Ok(format!("{count} of them")),
    }
}

/// What a client sees that shows no token.
///
/// # Errors
/// It is let in, or is not told why it is not.
pub(crate) fn stranger(ready: &Ready, address: &str, package: &Path) -> Result<String> {
    let mut command = jax_command(
        ready,
        Devices::Server {
            address,
            package,
            variables: &[("IFRT_PROXY_CONNECTION_TIMEOUT_SECS", OsStr::new("1"))],
        },
    );
    command.args(["-c", "import jax; print(jax.devices())"]);
    let child = Child::spawn(
        "a client without a token",
        &mut command,
        false,
        [Output::Keep; 2],
    )?;
    let status = child.wait(DEADLINE)?;
    let said = child.lines();
    let reason = said
        .iter()
        .rev()
        .find(|line| line.text.contains("UNAUTHENTICATED"));
    match (status.success(), reason) {
        (false, Some(line)) if line.text.contains("wants a token") => Ok(line.text.clone()),
        _ => Err(anyhow!("it ended with {status}{}", child.tail())),
    }
}
