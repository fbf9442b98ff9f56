//! [`ClientTls`]: which servers a client believes, and what it shows them.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ifrt::{Result, Status};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::version::TLS13;

use super::{HTTP2, provider, read_certificates, read_key, roots, unusable};

/// Which servers a client believes, and what it shows them.
#[derive(Clone)]
pub struct ClientTls(Arc<ClientConfig>);

impl ClientTls {
    /// Reads the certificates of the authorities that may have signed that of the server and, if the
    /// server wants one, the certificate of the client with its private key. Blocks while it reads.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming the file that cannot be used.
    pub fn from_files(ca: &Path, identity: Option<(&Path, &Path)>) -> Result<Self> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| Status::internal(format!("TLS 1.3 is not to be had: {error}")))?
            .with_root_certificates(roots(ca)?);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some((certificates, key)) => builder
                .with_client_auth_cert(read_certificates(certificates)?, read_key(key)?)
                .map_err(|error| unusable(certificates, &error))?,
        };
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn connector(&self) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.0))
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").finish_non_exhaustive()
    }
}
