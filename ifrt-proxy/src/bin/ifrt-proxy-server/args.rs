//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use ifrt_proxy::server::{Limits, ListenAddress};

const AFTER_HELP: &str = "\
Examples:
  Eight CPU devices on a free port:
    ifrt-proxy-server --plugin pjrt_c_api_cpu_plugin.so --option cpu_device_count=8

  On a Unix socket, which only its owner can open:
    ifrt-proxy-server --plugin PLUGIN.so --listen grpc://unix:/tmp/devices.sock

  A JAX program that uses them, with ADDRESS from the first line that the server prints:
    JAX_PLATFORMS=proxy JAX_BACKEND_TARGET=ADDRESS python program.py

  From another machine, through a tunnel:
    ssh -N -L 8000:127.0.0.1:PORT server &
    JAX_PLATFORMS=proxy JAX_BACKEND_TARGET=grpc://127.0.0.1:8000 python program.py

  With TLS, for clients that come through ifrt-proxy-relay:
    ifrt-proxy-server --plugin PLUGIN.so --listen grpcs://0.0.0.0:8471 \
        --tls-certificate server.pem --tls-key server.key --tls-client-ca clients-ca.pem

Whoever reaches an address can run programs on the devices, unless --token-file asks for a token or
--tls-client-ca for a certificate. Without TLS the server listens only where other machines do not
reach it.

It ends with exit code 0 on SIGTERM and SIGINT.";

/// Lets JAX programs in other processes use the devices of a PJRT plugin.
///
/// The first line on standard output is `listening on ADDRESS`. The log goes to standard error.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The shared library of the PJRT plugin.
    #[arg(long, value_name = "PATH", env = ifrt_pjrt::PLUGIN_PATH_VARIABLE)]
    pub(crate) plugin: Option<PathBuf>,

    /// An option for the plugin, for example cpu_device_count=8. May be given several times.
    #[arg(long = "option", value_name = "NAME=VALUE")]
    pub(crate) options: Vec<String>,

    /// Where to listen: grpc://HOST:PORT (port 0 takes a free one), grpcs://HOST:PORT with TLS, or
    /// grpc://unix:PATH. May be given several times.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "grpc://127.0.0.1:0",
        value_parser = parse_address
    )]
    pub(crate) listen: Vec<ListenAddress>,

    /// The certificate to show at grpcs:// addresses, with those that lead to its authority, in PEM
    /// format.
    #[arg(long, value_name = "PATH", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,

    /// The private key of that certificate.
    #[arg(long, value_name = "PATH", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Take only clients at grpcs:// addresses whose certificate one of these authorities has signed.
    #[arg(long, value_name = "PATH", requires = "tls_certificate")]
    pub(crate) tls_client_ca: Option<PathBuf>,

    /// Listen in plaintext on addresses that other machines may reach. Everyone on the way can read
    /// and change everything.
    #[arg(long)]
    pub(crate) insecure_listen_on_any_address: bool,

    /// Take only clients that show the token in this file. JAX clients name a copy of it in
    /// IFRT_PROXY_TOKEN_FILE.
    #[arg(long, value_name = "PATH")]
    pub(crate) token_file: Option<PathBuf>,

    /// Let clients on this machine hand over large uploads as files in this directory, best below
    /// /dev/shm. JAX clients name it in IFRT_PROXY_SHARED_DIRECTORY; each makes a directory of its own
    /// there, which the server must be allowed to read. Measure before you use it: the stream is as
    /// fast where memory is.
    #[arg(long, value_name = "DIR")]
    pub(crate) shared_directory: Option<PathBuf>,

    /// The name of the platform to tell JAX, which chooses its lowering by it [default: that of
    /// the plugin].
    #[arg(long, value_name = "NAME")]
    pub(crate) platform_name: Option<String>,

    /// What to log, for example `info` or `ifrt_proxy=debug` [default: info].
    #[arg(long, value_name = "FILTER", env = "RUST_LOG")]
    pub(crate) log: Option<String>,

    /// The sessions at one time.
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_sessions)]
    max_sessions: usize,

    /// The bytes of one message.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().max_message_bytes)]
    max_message_bytes: usize,

    /// The bytes of a session's host buffers that no request has used yet. Arrays beyond it fail.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().max_host_buffer_bytes)]
    max_host_buffer_bytes: u64,

    /// The bytes of a session's requests that are not answered yet. A client waits beyond it.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().max_pending_request_bytes)]
    max_pending_request_bytes: usize,

    /// The seconds after which a silent client is asked whether it lives; 0 never asks.
    #[arg(long, value_name = "SECONDS", default_value_t = default_keepalive())]
    keepalive_seconds: u64,

    /// The seconds that it may take to answer. A suspended program does not answer.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = Limits::default().keepalive_timeout.as_secs()
    )]
    keepalive_timeout_seconds: u64,
}

/// The error of the library without the name of its code.
fn parse_address(text: &str) -> Result<ListenAddress, String> {
    text.parse()
        .map_err(|error: ifrt::Status| error.message().to_owned())
}

fn default_keepalive() -> u64 {
    let interval = Limits::default().keepalive_interval;
    interval.map_or(0, |interval| interval.as_secs())
}

impl Args {
    pub(crate) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.max_sessions = self.max_sessions;
        limits.max_message_bytes = self.max_message_bytes;
        limits.max_host_buffer_bytes = self.max_host_buffer_bytes;
        limits.max_pending_request_bytes = self.max_pending_request_bytes;
        limits.keepalive_interval = match self.keepalive_seconds {
            0 => None,
            seconds => Some(Duration::from_secs(seconds)),
        };
        limits.keepalive_timeout = Duration::from_secs(self.keepalive_timeout_seconds);
        limits
    }
}
