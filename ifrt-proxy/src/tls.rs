//! TLS: what either end shows, and what it wants to see.
//!
//! Only TLS 1.3 is spoken, and only HTTP/2 inside it. Certificates and keys come from PEM files, which
//! are read once.

#[cfg(any(feature = "client", feature = "relay"))]
mod client;
#[cfg(feature = "server")]
mod server;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ifrt::{Result, Status};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

#[cfg(any(feature = "client", feature = "relay"))]
pub use client::ClientTls;
#[cfg(feature = "server")]
pub use server::ServerTls;

/// The name of HTTP/2 in a handshake.
const HTTP2: &[u8] = b"h2";

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn roots(path: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| unusable(path, &error))?;
    }
    Ok(roots)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| unusable(path, &error))?;
    if certificates.is_empty() {
        return Err(unusable(path, &"it holds no certificate in PEM format"));
    }
    Ok(certificates)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &dyn fmt::Display) -> Status {
    Status::invalid_argument(format!("cannot use {} for TLS: {error}", path.display()))
}
