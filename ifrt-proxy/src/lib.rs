//! IFRT over gRPC, wire compatible with the IFRT proxy of XLA.
//!
//! A *session* is one bidirectional stream on which a client sends requests about arrays and
//! executables that live in the server; host data travels in streams of its own. An unmodified
//! JAX program is such a client.
//!
//! # What to read
//! - `server` (feature of that name): the server, over any [`ifrt::Client`].
//! - `client` (feature of that name): the contract over a server somewhere else.
//! - `relay`: how clients without TLS reach a server that wants it.
//! - [`version`]: which versions of the protocol two sides agree on.
//! - [`proto`]: the messages and the service, generated.
//!
//! # What is not here
//! Any knowledge of a backend: the binary `ifrt-proxy-server` puts one behind the server.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy`.

#[cfg(feature = "client")]
pub mod client;
#[cfg(any(feature = "client", feature = "server"))]
mod metadata_keys;
pub mod proto;
#[cfg(feature = "relay")]
pub mod relay;
#[cfg(feature = "server")]
pub mod server;
#[cfg(any(feature = "client", feature = "server"))]
mod tls;
#[cfg(any(feature = "client", feature = "server"))]
mod token;
pub mod version;

#[cfg(any(feature = "client", feature = "relay"))]
pub use tls::ClientTls;
#[cfg(feature = "server")]
pub use tls::ServerTls;
#[cfg(any(feature = "client", feature = "server"))]
pub use token::Token;
