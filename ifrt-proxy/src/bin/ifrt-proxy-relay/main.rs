//! `ifrt-proxy-relay`: lets JAX programs on this machine reach a server that wants TLS.
//!
//! What is not here: the relay itself; see `ifrt_proxy::relay`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program talks to its user"
)]

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use ifrt::{Result, Status};
use ifrt_proxy::ClientTls;
use ifrt_proxy::relay::Relay;
use ifrt_proxy::server::{ListenAddress, Listener};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

const AFTER_HELP: &str = "\
Example:
  On the machine with the devices:
    ifrt-proxy-server --plugin PLUGIN.so --listen grpcs://0.0.0.0:8471 \\
        --tls-certificate server.pem --tls-key server.key --tls-client-ca clients-ca.pem

  On the machine of the user:
    ifrt-proxy-relay --to grpcs://far-machine:8471 --ca server-ca.pem \\
        --certificate client.pem --key client.key --listen grpc://127.0.0.1:8470 &
    JAX_PLATFORMS=proxy JAX_BACKEND_TARGET=grpc://127.0.0.1:8470 python program.py

Everyone who reaches the relay uses the server with the relay's certificate, so it listens on
loopback addresses and Unix sockets only. It ends with exit code 0 on SIGTERM and SIGINT.";

/// Lets JAX programs on this machine reach an ifrt-proxy-server that wants TLS.
///
/// The first line on standard output is `listening on ADDRESS`. The log goes to standard error.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
struct Args {
    /// The server: grpcs://HOST:PORT.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    to: ListenAddress,

    /// The certificates of the authorities that may have signed that of the server, in PEM format.
    #[arg(long, value_name = "PATH")]
    ca: PathBuf,

    /// The certificate to show to the server, with those that lead to its authority.
    #[arg(long, value_name = "PATH", requires = "key")]
    certificate: Option<PathBuf>,

    /// The private key of that certificate.
    #[arg(long, value_name = "PATH", requires = "certificate")]
    key: Option<PathBuf>,

    /// The name in the certificate of the server [default: the host of its address].
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,

    /// Where to listen: grpc://127.0.0.1:PORT (port 0 takes a free one) or grpc://unix:PATH. May be
    /// given several times.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "grpc://127.0.0.1:0",
        value_parser = parse_address
    )]
    listen: Vec<ListenAddress>,

    /// What to log, for example `info` or `ifrt_proxy=debug` [default: info].
    #[arg(long, value_name = "FILTER", env = "RUST_LOG")]
    log: Option<String>,
}

/// The error of the library without the name of its code.
fn parse_address(text: &str) -> std::result::Result<ListenAddress, String> {
    text.parse()
        .map_err(|error: Status| error.message().to_owned())
}

fn main() -> ExitCode {
    let args = Args::parse();
    match log(args.log.as_deref()).and_then(|()| run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error.message());
            ExitCode::FAILURE
        }
    }
}

/// Writes the log to standard error; standard output is for the addresses.
fn log(filter: Option<&str>) -> Result<()> {
    let filter = filter.unwrap_or("info");
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Status::invalid_argument(format!("the log filter {filter:?} cannot be read: {error}"))
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .try_init()
        .map_err(|error| Status::internal(format!("cannot start the log: {error}")))
}

fn run(args: &Args) -> Result<()> {
    let identity = args.certificate.as_deref().zip(args.key.as_deref());
    let tls = ClientTls::from_files(&args.ca, identity)?;
    let relay = Relay::new(&args.to, args.server_name.as_deref(), tls)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("relay")
        .build()
        .map_err(|error| Status::internal(format!("cannot start threads: {error}")))?;
    runtime.block_on(async {
        let mut listeners = Vec::new();
        for address in &args.listen {
            listeners.push(Listener::bind(address).await?);
        }
        let failed = |error| Status::internal(format!("cannot wait for signals: {error}"));
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        announce(&listeners);
        // A server that is not there yet may come; one that does not believe us should be told now.
        if let Err(error) = relay.check().await {
            tracing::warn!("{}; connections are tried all the same", error.message());
        }
        let stopped = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        relay.run(listeners, stopped).await;
        Ok(())
    })
}

/// Tells where clients find the relay. Scripts read the first line.
fn announce(listeners: &[Listener]) {
    let mut stdout = io::stdout().lock();
    for listener in listeners {
        let written = writeln!(stdout, "listening on {}", listener.address());
        // A relay whose standard output is closed can serve all the same.
        if let Err(error) = written.and_then(|()| stdout.flush()) {
            tracing::warn!("cannot tell that {} is open: {error}", listener.address());
        }
    }
}
