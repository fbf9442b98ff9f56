//! [`Token`]: the secret that a client shows when it opens a session.
//!
//! A client puts it into the `initialization_data` of its session, under [`Token::ATTRIBUTE`], which
//! is what the client inside jaxlib can do, or into the header `authorization: Bearer TOKEN`.
//!
//! A token is no encryption: whoever can listen on the wire can read it.

use std::fmt;
use std::path::Path;

use bytes::Bytes;
use ifrt::{Result, Status};
use subtle::ConstantTimeEq as _;

/// A secret that server and client share.
#[derive(Clone)]
pub struct Token(Bytes);

/// Shorter ones can be guessed.
const MIN_BYTES: usize = 16;

/// A file that is much longer than this is some other file.
const MAX_BYTES: usize = 4096;

impl Token {
    /// The name of the token among the `initialization_data` of a session.
    pub const ATTRIBUTE: &'static str = "token";

    /// A token of these bytes, without white space around them.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it is shorter than 16 bytes or longer than 4 KiB.
    pub fn new(secret: impl AsRef<[u8]>) -> Result<Self> {
        let secret = secret.as_ref().trim_ascii();
        if !(MIN_BYTES..=MAX_BYTES).contains(&secret.len()) {
            return Err(Status::invalid_argument(format!(
                "a token of {} bytes: it needs {MIN_BYTES} to {MAX_BYTES}; `openssl rand -hex 32` \
                 makes one",
                secret.len()
            )));
        }
        Ok(Self(Bytes::copy_from_slice(secret)))
    }

    /// The token in a file. Blocks while it reads.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the file cannot be read or holds no token.
    pub fn from_file(path: &Path) -> Result<Self> {
        let secret = std::fs::read(path).map_err(|error| {
            Status::invalid_argument(format!(
                "cannot read the token file {}: {error}; `(umask 077; openssl rand -hex 32 > {})` \
                 makes one",
                path.display(),
                path.display()
            ))
        })?;
        Self::new(secret).map_err(|error| {
            Status::invalid_argument(format!("{}: {}", path.display(), error.message()))
        })
    }

    /// What a client shows.
    #[cfg(feature = "client")]
    pub(crate) const fn secret(&self) -> &Bytes {
        &self.0
    }

    /// Whether this is what a client has shown. Takes as long for a wrong one of the right length
    /// as for the right one.
    #[must_use]
    pub fn matches(&self, shown: &[u8]) -> bool {
        self.0.ct_eq(shown).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

#[cfg(test)]
mod tests;
