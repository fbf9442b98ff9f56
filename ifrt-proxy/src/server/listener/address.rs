//! Addresses as clients write them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use ifrt::{Result, Status};

/// An address as clients write it: `grpc://HOST:PORT`, `grpcs://HOST:PORT` or `grpc://unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenAddress {
    /// `HOST:PORT`; port 0 stands for any free one.
    Tcp(String),
    /// `HOST:PORT` with TLS.
    Tls(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl FromStr for ListenAddress {
    type Err = Status;

    fn from_str(text: &str) -> Result<Self> {
        let malformed = |why: &str| {
            Status::invalid_argument(format!(
                "address {text:?} {why}; write grpc://127.0.0.1:PORT, grpcs://HOST:PORT or \
                 grpc://unix:PATH"
            ))
        };
        if let Some(target) = text.strip_prefix("grpcs://") {
            check_host_and_port(target).map_err(malformed)?;
            return Ok(Self::Tls(target.to_owned()));
        }
        let target = text
            .strip_prefix("grpc://")
            .ok_or_else(|| malformed("does not begin with grpc:// or grpcs://"))?;
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
        check_host_and_port(target).map_err(malformed)?;
        Ok(Self::Tcp(target.to_owned()))
    }
}

/// Says what is missing.
fn check_host_and_port(target: &str) -> std::result::Result<(), &'static str> {
    let (host, port) = target.rsplit_once(':').ok_or("has no port")?;
    if host.is_empty() || (host.contains(':') && !host.starts_with('[')) {
        return Err("has no host");
    }
    match port.parse::<u16>() {
        Ok(_) => Ok(()),
        Err(_) => Err("has no port"),
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host_and_port) => write!(f, "grpc://{host_and_port}"),
            Self::Tls(host_and_port) => write!(f, "grpcs://{host_and_port}"),
            Self::Unix(path) => write!(f, "grpc://unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests;
