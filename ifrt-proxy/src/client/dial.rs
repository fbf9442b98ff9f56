//! Making connections, with TLS or without.

use std::io;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use ifrt::{Result, Status};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::transport::{Channel, Endpoint, Uri};

use super::address::Address;
use super::options::Settings;

/// Makes connections to one server.
#[derive(Clone)]
pub(super) struct Dialer {
    endpoint: Endpoint,
    tls: Option<Tls>,
}

#[derive(Clone)]
struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
    /// `host:port`.
    target: Arc<str>,
}

impl Dialer {
    /// # Errors
    /// INVALID_ARGUMENT if the address and the options do not agree about TLS, or for a name that no
    /// certificate can have.
    pub(super) fn new(
        written: &str,
        endpoint: Endpoint,
        address: &Address,
        settings: &Settings,
    ) -> Result<Self> {
        let tls = match (&address.tls_host, &settings.tls) {
            (None, None) => None,
            (Some(host), Some(tls)) => {
                let name = settings.server_name.as_ref().unwrap_or(host);
                let name = ServerName::try_from(name.clone()).map_err(|error| {
                    Status::invalid_argument(format!(
                        "{name:?} cannot be in a certificate: {error}"
                    ))
                })?;
                let target = address.uri.trim_start_matches("http://");
                Some(Tls {
                    connector: tls.connector(),
                    name,
                    target: target.into(),
                })
            }
            (Some(_), None) => {
                return Err(Status::invalid_argument(format!(
                    "{written} speaks TLS: say which authorities to believe with \
                     ClientOptions::tls"
                )));
            }
            // Whoever asks for TLS must not get plaintext.
            (None, Some(_)) => {
                return Err(Status::invalid_argument(format!(
                    "{written} is an address without TLS, which was asked for; write \
                     grpcs://host:port"
                )));
            }
        };
        Ok(Self { endpoint, tls })
    }

    /// Connects. The connection lives on the thread that this is awaited on.
    pub(super) async fn dial(&self) -> std::result::Result<Channel, tonic::transport::Error> {
        let Some(tls) = &self.tls else {
            return self.endpoint.connect().await;
        };
        let tls = tls.clone();
        let connect = tower::service_fn(move |_: Uri| {
            let tls = tls.clone();
            async move {
                let stream = TcpStream::connect(&*tls.target).await?;
                stream.set_nodelay(true)?;
                let stream = tls.connector.connect(tls.name, stream).await?;
                Ok::<_, io::Error>(TokioIo::new(stream))
            }
        });
        self.endpoint.connect_with_connector(connect).await
    }
}
