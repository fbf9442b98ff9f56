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

/// The bytes that the system has room for in the address of a socket, without the final zero.
const MAX_PATH_BYTES: usize = 107;

/// How many names to try for the directory that a socket is made in.
const MAX_TRIES: u32 = 100;

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
        let pid = std::process::id();
        let mut tries = 0..MAX_TRIES;
        loop {
            let number = tries.next();
            let dir = parent.join(format!(".s{pid}-{}", number.unwrap_or(MAX_TRIES)));
            match DirBuilder::new().mode(0o700).create(&dir) {
                // Left by a process with the same number that was killed, or in use right now.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number.is_some() => {}
                made => return made.map(|()| Self(dir)),
            }
        }
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
    let length = path.as_os_str().len();
    if length > MAX_PATH_BYTES {
        return Err(Status::invalid_argument(format!(
            "the path {} of a socket has {length} bytes, but the system allows {MAX_PATH_BYTES}; \
             use a shorter path, for example in /tmp",
            path.display()
        )));
    }
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
