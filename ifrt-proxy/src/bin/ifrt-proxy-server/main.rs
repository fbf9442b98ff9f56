//! `ifrt-proxy-server`: the devices of a PJRT plugin, for JAX programs in other processes.
//!
//! The one place where a backend meets the server. What is not here: everything else; see the
//! library.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program talks to its user"
)]

mod args;
mod exit;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use ifrt::{Client, Result, Status};
use ifrt_pjrt::{CreateOptions, PLUGIN_PATH_VARIABLE, PjrtClient};
use ifrt_proxy::server::{ListenAddress, Listener, Server};
use ifrt_proxy::{ServerTls, Token};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use args::Args;

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
        Status::invalid_argument(format!(
            "the log filter {filter:?} cannot be read: {error}; try --log info or --log \
             ifrt_proxy=debug"
        ))
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .try_init()
        .map_err(|error| Status::internal(format!("cannot start the log: {error}")))
}

fn run(args: &Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("grpc")
        .build()
        .map_err(|error| Status::internal(format!("cannot start threads: {error}")))?;
    let served = runtime.block_on(async {
        let token = args
            .token_file
            .as_deref()
            .map(Token::from_file)
            .transpose()?;
        let listeners = listeners(args, token.as_ref()).await?;
        let stopped = stop_signals()?;
        let client = client(args)?;
        announce(&client, &listeners);
        let mut server = Server::builder(Arc::clone(&client)).limits(args.limits());
        if let Some(token) = token {
            server = server.token(token);
        }
        if let Some(path) = &args.shared_directory {
            server = server.shared_directory(path)?;
        }
        if let Some(name) = &args.platform_name {
            server = server.platform_name(name);
        }
        server
            .build()
            .serve(listeners, stopped)
            .await
            .map(|()| client)
    });
    exit::within_grace(runtime, served)?;
    tracing::info!("stopped");
    Ok(())
}

/// The open sockets.
async fn listeners(args: &Args, token: Option<&Token>) -> Result<Vec<Listener>> {
    let tls = match (&args.tls_certificate, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            let client_ca = args.tls_client_ca.as_deref();
            Some(ServerTls::from_files(certificate, key, client_ca)?)
        }
        _ => None,
    };
    let mut listeners = Vec::new();
    for address in &args.listen {
        listeners.push(match (address, &tls) {
            (ListenAddress::Tls(_), Some(tls)) => Listener::bind_tls(address, tls, token).await?,
            _ if args.insecure_listen_on_any_address => {
                Listener::bind_insecurely_on_any_address(address).await?
            }
            _ => Listener::bind(address).await?,
        });
    }
    Ok(listeners)
}

/// The client of the plugin.
fn client(args: &Args) -> Result<Arc<dyn Client>> {
    let plugin = args.plugin.as_ref().ok_or_else(|| {
        Status::invalid_argument(format!(
            "no PJRT plugin is given: use --plugin PATH or set {PLUGIN_PATH_VARIABLE}; `cargo \
             xtask setup` downloads one for the CPU"
        ))
    })?;
    let options = CreateOptions::parse(&args.options)?;
    Ok(PjrtClient::create(plugin, &options)?)
}

/// Completes when the process is asked to stop.
fn stop_signals() -> Result<impl Future<Output = ()>> {
    let failed = |error: io::Error| Status::internal(format!("cannot wait for signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Tells where clients find the server. Scripts read the first line.
fn announce(client: &Arc<dyn Client>, listeners: &[Listener]) {
    tracing::info!(
        "{} devices of platform {}, {}",
        client.devices().len(),
        client.platform_name(),
        client.platform_version().replace('\n', " ")
    );
    let mut stdout = io::stdout().lock();
    for listener in listeners {
        let written = writeln!(stdout, "listening on {}", listener.address());
        // A server whose standard output is closed can serve all the same.
        if let Err(error) = written.and_then(|()| stdout.flush()) {
            tracing::warn!("cannot tell that {} is open: {error}", listener.address());
        }
    }
}
