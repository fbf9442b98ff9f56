//! [`ClientOptions`]: how a client is made.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use ifrt::{AttributeMap, Status};

use crate::tls::ClientTls;
use crate::token::Token;
use crate::version::Version;

/// What is called when the connection to a server is lost.
pub type DisconnectHook = Box<dyn FnOnce(Status) + Send>;

/// How a client is made.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// # use ifrt_proxy::client::ClientOptions;
/// let options = ClientOptions::new()
///     .connect_timeout(Duration::from_secs(5))
///     .on_disconnect(|status| eprintln!("the server is gone: {status}"));
/// ```
#[must_use = "options do nothing by themselves"]
pub struct ClientOptions {
    pub(super) settings: Settings,
    pub(super) on_disconnect: Option<DisconnectHook>,
}

/// What is only looked at.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) connect_timeout: Duration,
    pub(super) keepalive_interval: Option<Duration>,
    pub(super) keepalive_timeout: Duration,
    pub(super) initialization_data: AttributeMap,
    pub(super) token: Option<Token>,
    pub(super) tls: Option<ClientTls>,
    pub(super) server_name: Option<String>,
    pub(super) max_message_bytes: usize,
    pub(super) versions: (Version, Version),
}

impl Default for ClientOptions {
    fn default() -> Self {
        let settings = Settings {
            connect_timeout: Duration::from_secs(30),
            keepalive_interval: Some(Duration::from_secs(30)),
            keepalive_timeout: Duration::from_secs(30),
            initialization_data: AttributeMap::new(),
            token: None,
            tls: None,
            server_name: None,
            max_message_bytes: 1 << 30,
            versions: (Version::MIN, Version::MAX),
        };
        Self {
            settings,
            on_disconnect: None,
        }
    }
}

impl ClientOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long connecting may take, until the server has told what it is. 30 seconds by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// How often a silent connection is asked whether the server lives, and how long it may take to
    /// answer. `None` never asks: then a server whose machine vanishes is not noticed. Both are 30
    /// seconds by default.
    ///
    /// A server that ends closes its connections; that is noticed at once in any case.
    pub fn keepalive(mut self, interval: Option<Duration>, timeout: Duration) -> Self {
        self.settings.keepalive_interval = interval;
        self.settings.keepalive_timeout = timeout;
        self
    }

    /// Data for the server to look at when it opens the session.
    pub fn initialization_data(mut self, data: AttributeMap) -> Self {
        self.settings.initialization_data = data;
        self
    }

    /// The token to show to the server.
    pub fn token(mut self, token: Token) -> Self {
        self.settings.token = Some(token);
        self
    }

    /// Which servers to believe and what to show them, for addresses that begin with `grpcs://`.
    pub fn tls(mut self, tls: ClientTls) -> Self {
        self.settings.tls = Some(tls);
        self
    }

    /// The name in the certificate of the server, if it is not the host of its address.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.settings.server_name = Some(name.into());
        self
    }

    /// The largest single message that the server may send, in bytes; 1 GiB by default. The contents
    /// of arrays of numbers do not count, because their sizes are known.
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.settings.max_message_bytes = bytes;
        self
    }

    /// The versions of the protocol to offer, within those that this crate knows.
    pub fn protocol_versions(mut self, versions: RangeInclusive<i32>) -> Self {
        self.settings.versions.0.protocol = (*versions.start()).max(Version::MIN.protocol);
        self.settings.versions.1.protocol = (*versions.end()).min(Version::MAX.protocol);
        self
    }

    /// The versions of the serialized values to offer, within those that this crate knows.
    pub fn serdes_versions(mut self, versions: RangeInclusive<i32>) -> Self {
        self.settings.versions.0.serdes = (*versions.start()).max(Version::MIN.serdes);
        self.settings.versions.1.serdes = (*versions.end()).min(Version::MAX.serdes);
        self
    }

    /// Calls `hook` once if the connection is lost, on a thread of its own, after everything that
    /// was waiting for the server has failed. A client that is dropped is not lost.
    pub fn on_disconnect(mut self, hook: impl FnOnce(Status) + Send + 'static) -> Self {
        self.on_disconnect = Some(Box::new(hook));
        self
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
