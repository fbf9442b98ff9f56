//! Addresses as clients write them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use ifrt::{Result, Status};

/// An address as clients write it: `grpc://HOST:PORT` or `grpc://unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenAddress {
    /// `HOST:PORT`; port 0 stands for any free one.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl FromStr for ListenAddress {
    type Err = Status;

    fn from_str(text: &str) -> Result<Self> {
        let malformed = |why: &str| {
            Status::invalid_argument(format!(
                "address {text:?} {why}; write grpc://127.0.0.1:PORT or grpc://unix:PATH"
            ))
        };
        let target = text
            .strip_prefix("grpc://")
            .ok_or_else(|| malformed("does not begin with grpc://"))?;
        if let Some(path) = target.strip_prefix("unix:") {
            // gRPC also knows the form unix:///PATH.
            let path = path
                .strip_prefix("//")
                .filter(|path| path.starts_with('/'))
                .unwrap_or(path);
            if path.is_empty() {
                return Err(malformed("has no path"));
            }
            return Ok(Self::Unix(path.into()));
        }
        let (host, port) = target
            .rsplit_once(':')
            .ok_or_else(|| malformed("has no port"))?;
        if host.is_empty() || (host.contains(':') && !host.starts_with('[')) {
            return Err(malformed("has no host"));
        }
        if port.parse::<u16>().is_err() {
            return Err(malformed("has no port"));
        }
        Ok(Self::Tcp(target.to_owned()))
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host_and_port) => write!(f, "grpc://{host_and_port}"),
            Self::Unix(path) => write!(f, "grpc://unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests;
