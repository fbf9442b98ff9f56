//! Where a server is.

use ifrt::{Result, Status};

/// The address of a server, as a URI that the transport takes.
///
/// # Errors
/// INVALID_ARGUMENT for anything but `grpc://host:port` and `grpc://unix:/path`.
pub(super) fn uri(address: &str) -> Result<String> {
    let malformed = |what: &str| {
        Err(Status::invalid_argument(format!(
            "{what} in the address {address:?} of an IFRT proxy server; write grpc://host:port or \
             grpc://unix:/path/to/socket"
        )))
    };
    let Some((transport, target)) = address.split_once("://") else {
        return malformed("no transport");
    };
    if transport != "grpc" {
        return malformed("an unknown transport");
    }
    if let Some(path) = target.strip_prefix("unix:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.contains('\0') {
            return malformed("no path");
        }
        return Ok(format!("unix:{path}"));
    }
    // How gRPC writes a name that is resolved in the usual way.
    let target = target.strip_prefix("dns:").unwrap_or(target);
    let target = target.trim_start_matches('/');
    let Some((host, port)) = target.rsplit_once(':') else {
        return malformed("no port");
    };
    if !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return malformed("no valid port");
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_v6 = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
    if !is_v6 && (host.is_empty() || !host.bytes().all(plain)) {
        return malformed("no valid host");
    }
    Ok(format!("http://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use ifrt::Code;

    use super::*;

    #[test]
    fn addresses() {
        for (address, expected) in [
            ("grpc://127.0.0.1:8470", "http://127.0.0.1:8470"),
            ("grpc://[::1]:1", "http://[::1]:1"),
            ("grpc://dns:///far.example:1", "http://far.example:1"),
            ("grpc://unix:/run/a b.sock", "unix:/run/a b.sock"),
            ("grpc://unix:///run/a.sock", "unix:/run/a.sock"),
            ("grpc://unix:a.sock", "unix:a.sock"),
        ] {
            assert_eq!(uri(address).as_deref(), Ok(expected), "{address}");
        }
    }

    #[test]
    fn what_is_no_address() {
        for address in [
            "",
            "localhost:1",
            "http://localhost:1",
            "grpc://",
            "grpc://localhost",
            "grpc://localhost:0",
            "grpc://localhost:65536",
            "grpc://:1",
            "grpc://user@host:1",
            "grpc://host/path:1",
            "grpc://[::x]:1",
            "grpc://unix:",
        ] {
            let error = uri(address).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{address}");
            assert!(error.message().contains("grpc://host:port"), "{error}");
        }
    }
}
