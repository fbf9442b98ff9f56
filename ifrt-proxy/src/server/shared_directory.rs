//! The directory through which clients on the same machine hand over large uploads.
//!
//! A client writes the bytes of an upload into a file and names only its handle. The name of the file
//! is made of the low half of the handle, so two clients with one directory would overwrite each
//! other's files; each therefore makes a directory of its own below the shared one, and says its name
//! when it opens its session. A client that says none uses the shared directory itself.
//!
//! Neither names nor files are trusted: a name is a single component, links are not followed, and only
//! a regular file of exactly the announced size is read. It is read and not mapped, because a client
//! that shortens a mapped file would end the server.
//!
//! # Mirrors
//! `HostBufferStore::ReadFromDisk` in `xla/python/ifrt_proxy/server/host_buffer.cc`.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use ifrt::{Result, Status};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, unlinkat};

use crate::server::session::host_buffers::Upload;

/// The directory of one client.
#[derive(Clone, Debug)]
pub(crate) struct SharedDirectory(Arc<OwnedFd>, Arc<PathBuf>);

const FOLLOW_NOTHING: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

impl SharedDirectory {
    /// The directory that all clients share.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it cannot be opened.
    pub(crate) fn open(path: PathBuf) -> Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let directory = openat(CWD, &path, flags, Mode::empty()).map_err(|error| {
            Status::invalid_argument(format!(
                "cannot open the shared directory {}: {error}; make it, below /dev/shm if uploads \
                 are to stay in memory",
                path.display()
            ))
        })?;
        Ok(Self(Arc::new(directory), Arc::new(path)))
    }

    /// The directory of a client that has one of its own below this.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a name that leads elsewhere; NOT_FOUND if there is no such directory.
    pub(crate) fn below(&self, name: &str) -> Result<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 255 || !name.chars().all(plain) {
            return Err(Status::invalid_argument(format!(
                "{name:?} cannot be the name of a client's shared directory: it consists of \
                 letters, digits, - and _"
            )));
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | FOLLOW_NOTHING;
        let path = self.1.join(name);
        let directory = openat(&*self.0, name, flags, Mode::empty()).map_err(|error| {
            Status::not_found(format!(
                "cannot open the client's shared directory {}: {error}; client and server must \
                 mean the same directory, and the server must be allowed to read it",
                path.display()
            ))
        })?;
        Ok(Self(Arc::new(directory), Arc::new(path)))
    }

    /// Reads the file for a handle into `upload` and removes it. Blocks meanwhile.
    ///
    /// What is wrong with the file fails the upload, and with it the array that it is for.
    pub(crate) fn read(&self, handle: u64, upload: Upload) {
        let name = file_name(handle);
        let outcome = self.open_file(&name, upload.size());
        // Whatever it is, the client does not need it any more.
        if let Err(error) = unlinkat(&*self.0, &name, AtFlags::empty()) {
            tracing::debug!("cannot remove {}: {error}", self.1.join(&name).display());
        }
        match outcome {
            Ok(file) => {
                tracing::debug!("reading {} bytes from a file", upload.size());
                upload.finish_from(file);
            }
            Err(error) => upload.fail(error),
        }
    }

    fn open_file(&self, name: &str, size: u64) -> Result<File> {
        let path = self.1.join(name);
        // Opening a named pipe would wait for its other end.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | FOLLOW_NOTHING;
        let cannot = |error| {
            Status::data_loss(format!(
                "cannot read the upload in {}: {error}",
                path.display()
            ))
        };
        let file = openat(&*self.0, name, flags, Mode::empty()).map_err(cannot)?;
        let found = fstat(&file).map_err(cannot)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(Status::data_loss(format!(
                "{} is no regular file",
                path.display()
            )));
        }
        if u64::try_from(found.st_size) != Ok(size) {
            return Err(Status::data_loss(format!(
                "{} has {} bytes, but {size} were announced",
                path.display(),
                found.st_size
            )));
        }
        Ok(File::from(file))
    }
}

/// Released clients keep half of the handle.
fn file_name(handle: u64) -> String {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "the client cuts the handle off in this way"
    )]
    let low = handle as i32;
    format!("lt_{low}")
}
