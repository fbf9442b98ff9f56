//! The relay: lets clients that know no TLS reach a server that wants it.
//!
//! The client inside jaxlib speaks plaintext. It connects to a relay on its own machine, and the relay
//! carries the bytes of each connection through a TLS connection of its own to the server. It does not
//! look into them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ifrt::{Result, Status};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_stream::StreamExt;

use crate::server::listener::{Connection, incoming};
use crate::server::{ListenAddress, Listener};
use crate::tls::ClientTls;

/// How long a connection to the server may take to come about.
const DEADLINE: Duration = Duration::from_secs(20);

/// The bytes that are carried at once, either way.
const BUFFER_BYTES: usize = 256 << 10;

/// Where a relay leads.
#[derive(Clone, Debug)]
pub struct Relay {
    host_and_port: String,
    name: ServerName<'static>,
    tls: ClientTls,
}

impl Relay {
    /// A relay to `grpcs://HOST:PORT`. The certificate of the server must be made out to `name`, or to
    /// the host.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another kind of address, or a name that no certificate can have.
    pub fn new(server: &ListenAddress, name: Option<&str>, tls: ClientTls) -> Result<Self> {
        let ListenAddress::Tls(host_and_port) = server else {
            return Err(Status::invalid_argument(format!(
                "{server} is no address of a server with TLS; write grpcs://HOST:PORT"
            )));
        };
        let host = host_and_port.rsplit_once(':').map_or("", |(host, _)| host);
        let name = name.unwrap_or_else(|| host.trim_matches(['[', ']']));
        let name = ServerName::try_from(name.to_owned()).map_err(|error| {
            Status::invalid_argument(format!("{name:?} cannot be in a certificate: {error}"))
        })?;
        Ok(Self {
            host_and_port: host_and_port.clone(),
            name,
            tls,
        })
    }

    /// Tries to reach the server.
    ///
    /// # Errors
    /// UNAVAILABLE saying what stands in the way.
    pub async fn check(&self) -> Result<()> {
        self.connect().await.map(drop)
    }

    /// Carries connections to the server until `shutdown` completes, and then cuts them.
    ///
    /// Must run in a tokio runtime with time and I/O.
    pub async fn run(self, listeners: Vec<Listener>, shutdown: impl Future<Output = ()> + Send) {
        let relay = Arc::new(self);
        let (mut connections, _accepting) = incoming(listeners);
        let mut carried = JoinSet::new();
        let accept = async {
            while let Some(Ok(connection)) = connections.next().await {
                while carried.try_join_next().is_some() {}
                let relay = Arc::clone(&relay);
                carried.spawn(async move {
                    if let Err(error) = relay.carry(connection).await {
                        tracing::warn!("a connection was cut: {error}");
                    }
                });
            }
        };
        tokio::select! {
            () = accept => {}
            () = shutdown => {}
        }
    }

    async fn carry(&self, mut client: Connection) -> Result<()> {
        let mut server = self.connect().await?;
        let carried =
            copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER_BYTES, BUFFER_BYTES);
        match carried.await {
            Ok(_) => Ok(()),
            // A client that is killed, or a server without a word of farewell.
            Err(error) if is_plain_end(&error) => Ok(()),
            Err(error) => Err(self.unreachable(&error)),
        }
    }

    async fn connect(&self) -> Result<TlsStream<TcpStream>> {
        let connecting = async {
            let stream = TcpStream::connect(&self.host_and_port).await?;
            stream.set_nodelay(true)?;
            let connector = self.tls.connector();
            connector.connect(self.name.clone(), stream).await
        };
        match tokio::time::timeout(DEADLINE, connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(self.unreachable(&error)),
            Err(_) => Err(self.unreachable(&format!("no answer within {DEADLINE:?}"))),
        }
    }

    fn unreachable(&self, error: &dyn std::fmt::Display) -> Status {
        Status::unavailable(format!("grpcs://{}: {error}", self.host_and_port))
    }
}

fn is_plain_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof
    )
}
