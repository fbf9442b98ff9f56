//! Where a server is.

use ifrt::{Result, Status};

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// As the transport takes it.
    pub(super) uri: String,
    /// The host, if the server speaks TLS.
    pub(super) tls_host: Option<String>,
}

/// Reads the address of a server.
///
/// # Errors
/// INVALID_ARGUMENT for anything but `grpc://host:port`, `grpcs://host:port` and `grpc://unix:/path`.
pub(super) fn parse(address: &str) -> Result<Address> {
    let malformed = |what: &str| {
        Err(Status::invalid_argument(format!(
            "{what} in the address {address:?} of an IFRT proxy server; write grpc://host:port, \
             grpcs://host:port or grpc://unix:/path/to/socket"
        )))
    };
    let Some((transport, target)) = address.split_once("://") else {
        return malformed("no transport");
    };
    let is_tls = match transport {
        "grpc" => false,
        "grpcs" => true,
        _ => return malformed("an unknown transport"),
    };
    if let Some(path) = target.strip_prefix("unix:").filter(|_| !is_tls) {
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.contains('\0') {
            return malformed("no path");
        }
        return Ok(Address {
            uri: format!("unix:{path}"),
            tls_host: None,
        });
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
    Ok(Address {
        uri: format!("http://{host}:{port}"),
        tls_host: is_tls.then(|| host.trim_matches(['[', ']']).to_owned()),
    })
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
            let found = parse(address).unwrap();
            assert_eq!(found.uri, expected, "{address}");
            assert_eq!(found.tls_host, None, "{address}");
        }
        for (address, uri, host) in [
            (
                "grpcs://far.example:443",
                "http://far.example:443",
                "far.example",
            ),
            ("grpcs://[::1]:443", "http://[::1]:443", "::1"),
        ] {
            let found = parse(address).unwrap();
            assert_eq!(found.uri, uri);
            assert_eq!(found.tls_host.as_deref(), Some(host));
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
            "grpcs://unix:/a",
        ] {
            let error = parse(address).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{address}");
            assert!(error.message().contains("grpc://host:port"), "{error}");
        }
    }
}
