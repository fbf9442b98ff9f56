//! TLS: what either end shows, and what it wants to see.
//!
//! Only TLS 1.3 is spoken, and only HTTP/2 inside it. Certificates and keys come from PEM files, which
//! are read once.

#[cfg(feature = "relay")]
mod client;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ifrt::{Result, Status};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

#[cfg(feature = "relay")]
pub use client::ClientTls;

/// The name of HTTP/2 in a handshake.
const HTTP2: &[u8] = b"h2";

/// The certificate of a server, and whose clients it takes.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    verifies_clients: bool,
}

impl ServerTls {
    /// Reads the chain of certificates of the server, its private key and, if clients are to show a
    /// certificate, those of the authorities that may have signed it. Blocks while it reads.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming the file that cannot be used.
    pub fn from_files(certificates: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Self> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| Status::internal(format!("TLS 1.3 is not to be had: {error}")))?;
        let builder = match client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider())
                        .build()
                        .map_err(|error| unusable(path, &error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(read_certificates(certificates)?, read_key(key)?)
            .map_err(|error| unusable(certificates, &error))?;
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Ok(Self {
            config: Arc::new(config),
            verifies_clients: client_ca.is_some(),
        })
    }

    /// Whether clients have to show a certificate.
    #[must_use]
    pub const fn verifies_clients(&self) -> bool {
        self.verifies_clients
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls")
            .field("verifies_clients", &self.verifies_clients)
            .finish_non_exhaustive()
    }
}

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
