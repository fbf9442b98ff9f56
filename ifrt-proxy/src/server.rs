//! The server: any [`Client`] for other processes to use, over gRPC.
//!
//! # How a request travels
//! A stream per session brings requests, which a task moves into the session's queue at once. The
//! worker thread of the session takes them out in order and hands each to its handler, which
//! enqueues work into the runtime and updates the tables of handles. Responses go back through one
//! writer, as soon as there is something to say. Host data travels in streams of its own.
//!
//! # Code map
//! - `service`: gRPC. Nothing beyond it knows of it.
//! - `sessions`, `session`: what one client has, and its threads.
//! - `dispatch`, `handlers`: the requests.
//! - `listener`, `authority`: sockets.
//! - `introduction`, `shared_directory`: who a client is, and where it leaves large uploads.
//! - [`Limits`]: what a client may make the server hold.
//!
//! # Invariants
//! - Nothing from a client is trusted: handles, sizes, numbers, programs.
//! - No client's mistake is felt by another client.
//! - Deletion never waits for the runtime.
//! - A handler that panics answers INTERNAL, and its session goes on.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/server`.

mod authority;
mod background;
mod dispatch;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod handlers;
mod introduction;
mod limits;
pub(crate) mod listener;
mod service;
mod session;
mod sessions;
mod shared_directory;
mod sync;

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use ifrt::{Client, Result, Status};
use tokio::sync::oneshot;

pub use background::Background;
pub use limits::Limits;
pub use listener::{ListenAddress, Listener};

use crate::proto::xla::ifrt::proxy::grpc_ifrt_service_server::GrpcIfrtServiceServer;
use service::Service;
use session::Shared;
use sessions::Sessions;
use shared_directory::SharedDirectory;

use crate::token::Token;

/// The bytes that a client may send on one stream before the server has read them.
const STREAM_WINDOW_BYTES: u32 = 2 << 20;

/// The same for all streams of a connection.
///
/// HTTP/2 charges small unread messages against half of this, so that a burst of requests would
/// end the connection if it were not many times the window of a stream.
const CONNECTION_WINDOW_BYTES: u32 = 32 * STREAM_WINDOW_BYTES;

/// Large frames halve the cost of bulk transfers.
const MAX_FRAME_BYTES: u32 = 1 << 20;

/// Clients may put data of their own into the headers of a session.
const MAX_HEADER_BYTES: u32 = 1 << 20;

/// A client that goes away may reset thousands of uploads at once.
const MAX_PENDING_RESETS: usize = 1 << 16;

/// A server for one runtime.
///
/// # Examples
/// ```no_run
/// # use std::sync::Arc;
/// # use ifrt_proxy::server::{Listener, Server};
/// # async fn example(client: Arc<dyn ifrt::Client>) -> ifrt::Result<()> {
/// let listener = Listener::bind(&"grpc://127.0.0.1:0".parse()?).await?;
/// let server = Server::builder(client).build();
/// server.serve(vec![listener], std::future::pending()).await
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    shared: Shared,
}

/// What a [`Server`] is made of.
#[derive(Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct ServerBuilder {
    shared: Shared,
}

impl ServerBuilder {
    /// What a client may make the server hold.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.shared.limits = limits;
        self
    }

    /// The name of the platform to tell clients, in place of that of the runtime. JAX chooses its
    /// lowering by it.
    pub fn platform_name(mut self, name: impl Into<String>) -> Self {
        self.shared.platform_name = Some(name.into());
        self
    }

    /// Takes only clients that show this token.
    pub fn token(mut self, token: Token) -> Self {
        self.shared.token = Some(token);
        self
    }

    /// Lets clients on this machine hand over large uploads as files in this directory.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it cannot be opened.
    pub fn shared_directory(mut self, path: impl Into<PathBuf>) -> Result<Self> {
        self.shared.directory = Some(SharedDirectory::open(path.into())?);
        Ok(self)
    }

    /// The server.
    pub fn build(self) -> Server {
        Server {
            shared: self.shared,
        }
    }
}

impl Server {
    /// A server for this runtime, with the default limits.
    pub fn builder(client: Arc<dyn Client>) -> ServerBuilder {
        ServerBuilder {
            shared: Shared {
                client,
                platform_name: None,
                limits: Limits::default(),
                token: None,
                directory: None,
            },
        }
    }

    /// Serves clients until `shutdown` completes; then ends all sessions, frees what they had, and
    /// waits for that as long as the limits say.
    ///
    /// Must run in a multi-threaded tokio runtime with time and I/O.
    ///
    /// # Errors
    /// INVALID_ARGUMENT without listeners; INTERNAL if serving fails.
    pub async fn serve(
        self,
        listeners: Vec<Listener>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<()> {
        if listeners.is_empty() {
            return Err(Status::invalid_argument(
                "a server needs at least one address to listen on",
            ));
        }
        let limits = self.shared.limits.clone();
        let sessions = Sessions::new(self.shared);
        let service = GrpcIfrtServiceServer::new(Service::new(Arc::clone(&sessions)))
            .max_decoding_message_size(limits.max_message_bytes)
            .max_encoding_message_size(usize::MAX);
        // The number of concurrent streams stays unlimited: each upload is one, and clients take a
        // refused stream for the end of the session.
        let (stop, stopped) = oneshot::channel::<()>();
        let (incoming, mut accepting) = listener::incoming(listeners);
        let serving = tonic::transport::Server::builder()
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(MAX_FRAME_BYTES)
            .http2_max_header_list_size(MAX_HEADER_BYTES)
            .http2_max_pending_accept_reset_streams(Some(MAX_PENDING_RESETS))
            .http2_keepalive_interval(limits.keepalive_interval)
            .http2_keepalive_timeout(Some(limits.keepalive_timeout))
            .add_service(service)
            .serve_with_incoming_shutdown(incoming, async {
                // The sender goes when this function does, which stops the server as well.
                drop(stopped.await);
            });
        let mut serving = pin!(serving);
        tokio::select! {
            served = &mut serving => return served.map_err(serve_error),
            () = shutdown => {}
        }
        tracing::info!("shutting down");
        sessions.stop();
        drop(stop);
        let ended = async {
            let served = serving.await.map_err(serve_error);
            while accepting.join_next().await.is_some() {}
            sessions.until_freed().await;
            served
        };
        match tokio::time::timeout(limits.shutdown_grace, ended).await {
            Ok(served) => served,
            Err(_elapsed) => {
                tracing::warn!(
                    "some connections or sessions did not end within {:?}",
                    limits.shutdown_grace
                );
                Ok(())
            }
        }
    }
}

fn serve_error(error: tonic::transport::Error) -> Status {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    Status::internal(format!("the server failed: {text}"))
}
