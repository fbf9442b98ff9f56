//! The handshake of TLS, which a client may drag out.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use super::Connection;

/// How long a client may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// A client whose handshake has not begun.
pub(super) struct Handshake {
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
}

impl Handshake {
    pub(super) fn new(acceptor: &TlsAcceptor, stream: TcpStream, peer: SocketAddr) -> Self {
        Self {
            acceptor: acceptor.clone(),
            stream,
            peer,
        }
    }

    /// Hands on the connection, or logs why there is none.
    pub(super) async fn run(self, sender: mpsc::Sender<Connection>) {
        let peer = self.peer;
        match tokio::time::timeout(DEADLINE, self.acceptor.accept(self.stream)).await {
            // The receiver is gone when the server stops.
            Ok(Ok(stream)) => drop(sender.send(Connection::tls(stream)).await),
            Ok(Err(error)) => tracing::warn!(
                "{peer} was refused: {error}; a client speaks TLS 1.3 here, with a certificate of \
                 the client CA if there is one, or goes through ifrt-proxy-relay"
            ),
            Err(_) => tracing::warn!("{peer} was refused: no handshake within {DEADLINE:?}"),
        }
    }
}
