//! Files of Unix sockets.
//!
//! The socket is made in a directory that only the owner can enter and moved to its place when its
//! permissions are set, so at no moment can anybody else connect.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use ifrt::{Result, Status};
use tokio::net::UnixListener;

/// The file of a listening socket. Dropped, it removes the file if it is still the same.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| identity(&metadata) == self.identity);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!("cannot remove the socket {}: {error}", self.path.display());
        }
    }
}

/// A directory that is gone when this is.
struct PrivateDir(PathBuf);

impl PrivateDir {
    /// Makes a directory beside `path`.
    fn beside(path: &Path) -> io::Result<Self> {
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        // The path of a socket may be only about a hundred bytes long.
        let dir = parent.join(format!(".s{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// Listens at `path`. A file that an earlier server left there is replaced.
pub(super) fn bind(path: &Path) -> Result<(UnixListener, SocketFile)> {
    check_free(path)?;
    let failed = |error: io::Error| {
        Status::unavailable(format!(
            "cannot make the socket {}: {error}; use a shorter path in a directory that you can \
             write to",
            path.display()
        ))
    };
    let dir = PrivateDir::beside(path).map_err(failed)?;
    let temporary = dir.0.join("s");
    let listener = UnixListener::bind(&temporary).map_err(failed)?;
    fs::set_permissions(&temporary, Permissions::from_mode(0o600)).map_err(failed)?;
    let metadata = fs::symlink_metadata(&temporary).map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)?;
    let file = SocketFile {
        path: path.to_owned(),
        identity: identity(&metadata),
    };
    Ok((listener, file))
}

/// Checks that nothing is at `path` but perhaps a socket that nobody listens on.
fn check_free(path: &Path) -> Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Status::unavailable(format!(
                "cannot look at {}: {error}",
                path.display()
            )));
        }
    };
    if !metadata.file_type().is_socket() {
        return Err(Status::already_exists(format!(
            "{} exists and is no socket; use another path",
            path.display()
        )));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            tracing::info!(
                "replacing the socket {} that nobody listens on",
                path.display()
            );
            Ok(())
        }
        Err(error) => Err(Status::unavailable(format!(
            "{} is a socket that cannot be tried: {error}; remove it or use another path",
            path.display()
        ))),
        Ok(_) => Err(Status::already_exists(format!(
            "another server listens on {}; stop it or use another path",
            path.display()
        ))),
    }
}
