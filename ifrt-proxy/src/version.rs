//! Which version of the protocol and of the serialized values a client and the server speak.
//!
//! Two numbers are negotiated before a session is opened: the version of the protocol and the
//! version of the serialized values (serdes). For each the newest one that both sides know is
//! taken. A released client aborts its process when the answer lies outside the range that it
//! offered, so an answer is either inside it or an error.
//!
//! What is not here: what each version means; see `VERSION.md`.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/common/versions.h`, `server/version.cc`.

use std::fmt;

use ifrt::{Result, Status};

#[cfg(any(feature = "client", feature = "server"))]
use crate::proto::xla::ifrt::proxy::IfrtProxyVersion;

/// A version of the protocol and one of the serialized values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The version of the protocol: which requests there are and what they mean.
    pub protocol: i32,
    /// The version of the serialized values.
    pub serdes: i32,
}

impl Version {
    /// The oldest version that is understood here.
    pub const MIN: Self = Self {
        protocol: 16,
        serdes: 0,
    };
    /// The newest version that is understood here.
    pub const MAX: Self = Self {
        protocol: 25,
        serdes: 5,
    };
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "protocol {} and serdes {}", self.protocol, self.serdes)
    }
}

/// The version in a message.
#[cfg(any(feature = "client", feature = "server"))]
pub(crate) const fn from_wire(version: IfrtProxyVersion) -> Version {
    Version {
        protocol: version.protocol_version,
        serdes: version.ifrt_serdes_version_number,
    }
}

/// The protocol version from which on the status of an execution is fetched by a request of its
/// own and no longer as a future.
pub const FETCH_EXECUTE_RESULT: i32 = 21;

/// The version to speak with a client that understands `min` to `max`.
///
/// # Errors
/// INVALID_ARGUMENT naming both ranges if they have no version in common.
pub fn negotiate(min: Version, max: Version) -> Result<Version> {
    let protocol = pick(
        "protocol",
        (Version::MIN.protocol, Version::MAX.protocol),
        (min.protocol, max.protocol),
    )?;
    let serdes = pick(
        "serdes",
        (Version::MIN.serdes, Version::MAX.serdes),
        (min.serdes, max.serdes),
    )?;
    Ok(Version { protocol, serdes })
}

fn pick(what: &str, server: (i32, i32), client: (i32, i32)) -> Result<i32> {
    let version = server.1.min(client.1);
    if version < server.0 || version < client.0 {
        return Err(Status::invalid_argument(format!(
            "no common {what} version: the server understands {} to {}, the client {} to {}; use \
             a client or a server of another release",
            server.0, server.1, client.0, client.1
        )));
    }
    Ok(version)
}

/// Checks the version that a client names when it opens a session.
///
/// # Errors
/// INVALID_ARGUMENT if it is not understood here.
pub fn check(version: Version) -> Result<()> {
    let (min, max) = (Version::MIN, Version::MAX);
    if (min.protocol..=max.protocol).contains(&version.protocol)
        && (min.serdes..=max.serdes).contains(&version.serdes)
    {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "a session of {version} was asked for; the server understands protocol {} to {} and \
         serdes {} to {}",
        min.protocol, max.protocol, min.serdes, max.serdes
    )))
}

#[cfg(test)]
mod tests;
