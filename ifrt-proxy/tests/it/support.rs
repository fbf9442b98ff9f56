//! A server to test and a client to test it with.

mod client;
mod requests;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ifrt::fake::{FakeClient, FakeOptions};
use ifrt_proxy::server::{Limits, ListenAddress, Listener, Server, ServerBuilder};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) use client::{RawClient, SESSION_METADATA, STORE_METADATA, TestClient};
pub(crate) use requests::*;

/// How long anything may take. Only a hang takes as long.
const DEADLINE: Duration = Duration::from_secs(60);

/// Waits, but not for ever.
#[track_caller]
pub(crate) fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(DEADLINE, future).await {
            Ok(output) => output,
            Err(_) => panic!("hung at {caller}"),
        }
    }
}

/// Waits until the runtime is in a state that it gets into by itself.
pub(crate) async fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < DEADLINE, "waited in vain until {what}");
        tokio::task::yield_now().await;
    }
}

/// A server over a fake runtime.
pub(crate) struct TestServer {
    pub(crate) fake: Arc<FakeClient>,
    pub(crate) address: ListenAddress,
    stop: oneshot::Sender<()>,
    served: JoinHandle<ifrt::Result<()>>,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::with(FakeOptions::default(), Limits::default()).await
    }

    pub(crate) async fn with(options: FakeOptions, limits: Limits) -> Self {
        Self::listening(options, limits, "grpc://127.0.0.1:0").await
    }

    pub(crate) async fn listening(options: FakeOptions, limits: Limits, address: &str) -> Self {
        Self::built(options, address, |server| server.limits(limits)).await
    }

    pub(crate) async fn built(
        options: FakeOptions,
        address: &str,
        build: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let fake = FakeClient::new(options);
        let listener = Listener::bind(&address.parse().unwrap()).await.unwrap();
        let address = listener.address().clone();
        let (stop, stopped) = oneshot::channel();
        let client: Arc<dyn ifrt::Client> = fake.clone();
        let server = build(Server::builder(client)).build();
        let served = tokio::spawn(async move {
            server
                .serve(vec![listener], async {
                    drop(stopped.await);
                })
                .await
        });
        Self {
            fake,
            address,
            stop,
            served,
        }
    }

    /// A client with a session at the newest version.
    pub(crate) async fn client(&self) -> TestClient {
        TestClient::connect(&self.address, 25).await
    }

    pub(crate) async fn client_at(&self, protocol: i32) -> TestClient {
        TestClient::connect(&self.address, protocol).await
    }

    /// A client without a session.
    pub(crate) async fn raw(&self) -> RawClient {
        RawClient::connect(&self.address).await
    }

    /// Stops the server; returns when all that its clients had is free.
    pub(crate) async fn stop(self) -> ifrt::Result<()> {
        drop(self.stop);
        within(self.served).await.unwrap()
    }
}
