//! Where the server listens: TCP ports and Unix sockets.
//!
//! Whoever reaches the server can use its devices and read its arrays. [`Listener::bind`] therefore
//! takes only addresses that no other machine reaches, and a Unix socket is open to its owner only.
//! Other machines come in by [`Listener::bind_tls`], if something tells friends from strangers.

mod address;
mod connection;
mod handshake;
mod unix;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;
use std::{fmt, io};

use ifrt::{Result, Status};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};

pub use address::ListenAddress;
pub(crate) use connection::Connection;
use handshake::Handshake;
use unix::SocketFile;

use crate::tls::ServerTls;
use crate::token::Token;

/// How long to wait after an error such as "too many open files" before accepting again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The handshakes at one time. A stranger who only connects holds one for as long as they may take.
const MAX_HANDSHAKES: usize = 256;

/// An open socket that clients can connect to.
pub struct Listener {
    socket: Socket,
    address: ListenAddress,
}

/// What has connected.
enum Accepted {
    Open(Connection),
    Handshake(Handshake),
}

enum Socket {
    Tcp(TcpListener),
    Tls(TcpListener, TlsAcceptor),
    Unix(UnixListener, SocketFile),
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.address).finish()
    }
}

impl Listener {
    /// Opens a socket that only this machine reaches.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an address that other machines may reach; ALREADY_EXISTS if it is in
    /// use; others if it cannot be opened.
    pub async fn bind(address: &ListenAddress) -> Result<Self> {
        Self::open(address, false).await
    }

    /// Opens a socket on any address. Everyone who reaches it can do what the owner can.
    ///
    /// # Errors
    /// As [`Listener::bind`], but for the kind of address.
    pub async fn bind_insecurely_on_any_address(address: &ListenAddress) -> Result<Self> {
        Self::open(address, true).await
    }

    /// Opens a socket with TLS, for the address `grpcs://HOST:PORT`.
    ///
    /// Other machines may reach it if clients need a certificate, or `token`, which the server must be
    /// built with as well.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another kind of address, or if strangers on other machines could use the
    /// server; otherwise as [`Listener::bind`].
    pub async fn bind_tls(
        address: &ListenAddress,
        tls: &ServerTls,
        token: Option<&Token>,
    ) -> Result<Self> {
        let ListenAddress::Tls(host_and_port) = address else {
            return Err(Status::invalid_argument(format!(
                "{address} is no address for TLS; write grpcs://HOST:PORT"
            )));
        };
        let addresses = resolve(host_and_port).await?;
        if let Some(open) = addresses.iter().find(|a| !a.ip().is_loopback())
            && !tls.verifies_clients()
            && token.is_none()
        {
            return Err(Status::invalid_argument(format!(
                "{address} is {open}, which other machines may reach, and everyone there could use \
                 the devices: ask for client certificates (--tls-client-ca) or a token \
                 (--token-file)"
            )));
        }
        let (socket, local) = bind_tcp(address, &addresses).await?;
        Ok(Self {
            socket: Socket::Tls(socket, tls.acceptor()),
            address: ListenAddress::Tls(local),
        })
    }

    async fn open(address: &ListenAddress, any: bool) -> Result<Self> {
        match address {
            ListenAddress::Tcp(host_and_port) => {
                let addresses = resolve(host_and_port).await?;
                if let Some(open) = addresses.iter().find(|a| !a.ip().is_loopback())
                    && !any
                {
                    return Err(Status::invalid_argument(format!(
                        "{address} is {open}, which other machines may reach, and nothing there is \
                         encrypted: listen on grpc://127.0.0.1:PORT or grpc://unix:PATH and tunnel \
                         from other machines (ssh -L), or use TLS (grpcs://)"
                    )));
                }
                let (socket, local) = bind_tcp(address, &addresses).await?;
                Ok(Self {
                    socket: Socket::Tcp(socket),
                    address: ListenAddress::Tcp(local),
                })
            }
            ListenAddress::Tls(_) => Err(Status::invalid_argument(format!(
                "{address} needs a certificate and its key (--tls-certificate and --tls-key)"
            ))),
            ListenAddress::Unix(path) => {
                let (socket, file) = unix::bind(path)?;
                Ok(Self {
                    socket: Socket::Unix(socket, file),
                    address: address.clone(),
                })
            }
        }
    }

    /// The address to give to clients, with the port that the system chose.
    pub const fn address(&self) -> &ListenAddress {
        &self.address
    }

    async fn accept(&self) -> io::Result<Accepted> {
        match &self.socket {
            Socket::Tcp(socket) => {
                let (stream, _) = socket.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Accepted::Open(Connection::tcp(stream)))
            }
            Socket::Unix(socket, _file) => {
                let (stream, _) = socket.accept().await?;
                Ok(Accepted::Open(Connection::unix(stream)))
            }
            Socket::Tls(socket, acceptor) => {
                let (stream, peer) = socket.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Accepted::Handshake(Handshake::new(acceptor, stream, peer)))
            }
        }
    }
}

/// The open socket, and where it is.
async fn bind_tcp(
    address: &ListenAddress,
    addresses: &[SocketAddr],
) -> Result<(TcpListener, String)> {
    let socket = TcpListener::bind(addresses)
        .await
        .map_err(|error| tcp_error(address, &error))?;
    let local = socket
        .local_addr()
        .map_err(|error| Status::internal(format!("cannot tell the port of {address}: {error}")))?;
    Ok((socket, local.to_string()))
}

async fn resolve(host_and_port: &str) -> Result<Vec<SocketAddr>> {
    let addresses = tokio::net::lookup_host(host_and_port)
        .await
        .map_err(|error| {
            Status::invalid_argument(format!(
                "cannot resolve {host_and_port:?}: {error}; write grpc://127.0.0.1:PORT"
            ))
        })?;
    let addresses: Vec<_> = addresses.collect();
    if addresses.is_empty() {
        return Err(Status::invalid_argument(format!(
            "{host_and_port:?} has no address"
        )));
    }
    Ok(addresses)
}

fn tcp_error(address: &ListenAddress, error: &io::Error) -> Status {
    match error.kind() {
        io::ErrorKind::AddrInUse => Status::already_exists(format!(
            "{address} is in use by another process; stop it or use another port (port 0 takes a \
             free one)"
        )),
        io::ErrorKind::PermissionDenied => Status::permission_denied(format!(
            "not allowed to listen on {address}; use a port above 1023"
        )),
        _ => Status::unavailable(format!("cannot listen on {address}: {error}")),
    }
}

/// The connections of all listeners, and the tasks that accept them. The tasks end, and the
/// listeners are closed, when the stream is dropped.
pub(crate) fn incoming(
    listeners: Vec<Listener>,
) -> (
    impl Stream<Item = std::result::Result<Connection, Infallible>>,
    JoinSet<()>,
) {
    let (sender, receiver) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    for listener in listeners {
        let sender = sender.clone();
        tasks.spawn(async move {
            let closed = sender.clone();
            tokio::select! {
                () = accept_all(&listener, sender) => {}
                () = closed.closed() => {}
            }
        });
    }
    (ReceiverStream::new(receiver).map(Ok), tasks)
}

async fn accept_all(listener: &Listener, sender: mpsc::Sender<Connection>) {
    // Dropped, it ends the handshakes that are under way.
    let mut handshakes = JoinSet::new();
    loop {
        if handshakes.len() >= MAX_HANDSHAKES {
            handshakes.join_next().await;
        }
        while handshakes.try_join_next().is_some() {}
        match listener.accept().await {
            Ok(Accepted::Handshake(handshake)) => {
                handshakes.spawn(handshake.run(sender.clone()));
            }
            Ok(Accepted::Open(connection)) => {
                if sender.send(connection).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!("{} failed to accept: {error}", listener.address);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
