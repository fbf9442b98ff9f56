//! [`ServerTls`]: the certificate of a server, and whose clients it takes.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ifrt::{Result, Status};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::TLS13;

use super::{HTTP2, provider, read_certificates, read_key, roots, unusable};

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
