//! Servers with TLS, and the relay through which clients without it reach them.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ifrt::Code;
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt_proxy::client::{ClientOptions, ProxyClient};
use ifrt_proxy::relay::Relay;
use ifrt_proxy::server::{ListenAddress, Listener, Server};
use ifrt_proxy::{ClientTls, ServerTls, Token};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::{RawClient, TestClient, within};

/// Certificates of a server and of clients, in files.
struct Papers {
    directory: TempDir,
}

impl Papers {
    fn new() -> Self {
        let papers = Self {
            directory: TempDir::new().unwrap(),
        };
        for authority in ["servers", "clients", "strangers"] {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params
                .distinguished_name
                .push(DnType::CommonName, authority);
            let key = KeyPair::generate().unwrap();
            let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
            papers.write(&format!("{authority}-ca.pem"), &issuer.pem());
            let mut leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            papers.issue(authority, &leaf, &issuer);
            leaf.not_after = date_time_ymd(2001, 1, 1);
            papers.issue(&format!("{authority}-expired"), &leaf, &issuer);
        }
        papers
    }

    fn issue(&self, name: &str, params: &CertificateParams, issuer: &CertifiedIssuer<'_, KeyPair>) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, issuer).unwrap();
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A server that shows `server`, and wants certificates of `clients` if it is given.
    fn server(&self, server: &str, clients: Option<&str>) -> ServerTls {
        let ca = clients.map(|clients| self.path(&format!("{clients}-ca.pem")));
        ServerTls::from_files(
            &self.path(&format!("{server}.pem")),
            &self.path(&format!("{server}.key")),
            ca.as_deref(),
        )
        .unwrap()
    }

    /// A client that believes `servers` and shows `client`.
    fn client(&self, servers: &str, client: Option<&str>) -> ClientTls {
        let identity = client.map(|client| {
            (
                self.path(&format!("{client}.pem")),
                self.path(&format!("{client}.key")),
            )
        });
        let identity = identity.as_ref().map(|(a, b)| (a.as_path(), b.as_path()));
        ClientTls::from_files(&self.path(&format!("{servers}-ca.pem")), identity).unwrap()
    }
}

/// A server over a fake runtime, with TLS.
struct TlsServer {
    fake: Arc<FakeClient>,
    address: ListenAddress,
    stop: oneshot::Sender<()>,
    served: JoinHandle<ifrt::Result<()>>,
}

impl TlsServer {
    async fn start(tls: &ServerTls) -> Self {
        let listener = Listener::bind_tls(&"grpcs://127.0.0.1:0".parse().unwrap(), tls, None)
            .await
            .unwrap();
        let address = listener.address().clone();
        let fake = FakeClient::new(FakeOptions::default());
        let client: Arc<dyn ifrt::Client> = fake.clone();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(async move {
            Server::builder(client)
                .build()
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

    async fn stop(self) {
        drop(self.stop);
        within(self.served).await.unwrap().unwrap();
    }
}

/// A relay, and where it listens.
async fn relay(server: &TlsServer, tls: ClientTls, listen: &str) -> (ListenAddress, Relay) {
    let relay = Relay::new(&server.address, Some("localhost"), tls).unwrap();
    let listener = Listener::bind(&listen.parse().unwrap()).await.unwrap();
    let address = listener.address().clone();
    tokio::spawn(relay.clone().run(vec![listener], std::future::pending()));
    (address, relay)
}

const LOOPBACK: &str = "grpc://127.0.0.1:0";

/// Whether a client without TLS can work with the server through the relay.
async fn works(server: &TlsServer, address: &ListenAddress) -> bool {
    let mut raw = RawClient::connect(address).await;
    let version = ifrt_proxy::proto::xla::ifrt::proxy::GrpcGetVersionRequest {
        min_version: Some(version(16)),
        max_version: Some(version(25)),
    };
    if within(raw.0.get_version(version)).await.is_err() {
        return false;
    }
    let mut client = TestClient::over(raw, 25).await;
    let values: Vec<f32> = (0..100_000_u32).map(|n| n as f32).collect();
    let array = client.put(&*server.fake, 0, &values).await;
    assert_eq!(client.fetch(array).await.unwrap(), values);
    true
}

fn version(protocol_version: i32) -> ifrt_proxy::proto::xla::ifrt::proxy::IfrtProxyVersion {
    ifrt_proxy::proto::xla::ifrt::proxy::IfrtProxyVersion {
        protocol_version,
        ifrt_serdes_version_number: 0,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_right_papers() {
    let papers = Papers::new();
    let server = TlsServer::start(&papers.server("servers", Some("clients"))).await;
    let tls = papers.client("servers", Some("clients"));
    let (address, relay) = relay(&server, tls, LOOPBACK).await;
    relay.check().await.unwrap();
    for _ in 0..3 {
        assert!(works(&server, &address).await);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_wants_no_certificate() {
    let papers = Papers::new();
    let server = TlsServer::start(&papers.server("servers", None)).await;
    let (address, _) = relay(&server, papers.client("servers", None), LOOPBACK).await;
    assert!(works(&server, &address).await);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_with_the_wrong_papers() {
    let papers = Papers::new();
    let server = TlsServer::start(&papers.server("servers", Some("clients"))).await;
    for shown in [
        None,
        Some("strangers"),
        Some("servers"),
        Some("clients-expired"),
    ] {
        let (address, _) = relay(&server, papers.client("servers", shown), LOOPBACK).await;
        assert!(!works(&server, &address).await, "{shown:?}");
    }
    let right = papers.client("servers", Some("clients"));
    let (address, _) = relay(&server, right, LOOPBACK).await;
    assert!(works(&server, &address).await);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_with_the_wrong_papers() {
    let papers = Papers::new();
    for (shown, says) in [
        ("strangers", "UnknownIssuer"),
        ("servers-expired", "expired"),
    ] {
        let server = TlsServer::start(&papers.server(shown, None)).await;
        let (address, relay) = relay(&server, papers.client("servers", None), LOOPBACK).await;
        let error = relay.check().await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
        assert!(error.message().contains(says), "{error}");
        assert!(!works(&server, &address).await, "{shown}");
        server.stop().await;
    }
    // Made out to another name.
    let server = TlsServer::start(&papers.server("servers", None)).await;
    let tls = papers.client("servers", None);
    let error = Relay::new(&server.address, None, tls)
        .unwrap()
        .check()
        .await
        .unwrap_err();
    assert!(error.message().contains("not valid for name"), "{error}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_speak_no_tls_do_not_disturb() {
    let papers = Papers::new();
    let server = TlsServer::start(&papers.server("servers", None)).await;
    let ListenAddress::Tls(host_and_port) = server.address.clone() else {
        panic!("{}", server.address);
    };
    // Some say nothing at all.
    let silent: Vec<_> = (0..50)
        .map(|_| TcpStream::connect(&host_and_port).unwrap())
        .collect();
    // A plaintext client.
    let plain = tonic::transport::Endpoint::from_shared(format!("http://{host_and_port}")).unwrap();
    if let Ok(channel) = within(plain.connect()).await {
        let mut raw = RawClient(
            ifrt_proxy::proto::xla::ifrt::proxy::grpc_ifrt_service_client::GrpcIfrtServiceClient::new(
                channel,
            ),
        );
        let request = ifrt_proxy::proto::xla::ifrt::proxy::GrpcGetVersionRequest::default();
        within(raw.0.get_version(request)).await.unwrap_err();
    }
    let (address, _) = relay(&server, papers.client("servers", None), LOOPBACK).await;
    assert!(works(&server, &address).await);
    drop(silent);
    server.stop().await;
}

/// Connects with the client in Rust, which may block.
async fn connect(address: impl ToString, options: ClientOptions) -> ifrt::Result<Arc<ProxyClient>> {
    let address = address.to_string();
    let connecting = tokio::task::spawn_blocking(move || {
        let options = options.connect_timeout(std::time::Duration::from_secs(30));
        ProxyClient::connect(&address, options)
    });
    within(connecting).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_in_rust() {
    use ifrt::Client as _;
    let papers = Papers::new();
    let server = TlsServer::start(&papers.server("servers", Some("clients"))).await;
    let right = || ClientOptions::new().tls(papers.client("servers", Some("clients")));
    let named = || right().server_name("localhost");
    let client = connect(&server.address, named()).await.unwrap();
    assert_eq!(client.devices().len(), server.fake.devices().len());
    let localhost = server.address.to_string().replace("127.0.0.1", "localhost");
    let client = connect(&localhost, right()).await.unwrap();
    assert_eq!(client.devices().len(), server.fake.devices().len());

    let plaintext = server.address.to_string().replace("grpcs", "grpc");
    for (address, options, says) in [
        // Made out to another name, or by another authority.
        (server.address.to_string(), right(), "not valid for name"),
        (
            server.address.to_string(),
            ClientOptions::new()
                .tls(papers.client("strangers", None))
                .server_name("localhost"),
            "UnknownIssuer",
        ),
        (
            server.address.to_string(),
            ClientOptions::new(),
            "ClientOptions::tls",
        ),
        (plaintext, right(), "grpcs://host:port"),
        (localhost.clone(), right().server_name("a b"), "certificate"),
    ] {
        let error = connect(&address, options).await.unwrap_err();
        assert!(error.message().contains(says), "{address}: {error}");
    }
    // The server refuses these after the handshake, as far as the client can tell.
    for shown in [None, Some("strangers"), Some("clients-expired")] {
        let options = ClientOptions::new().tls(papers.client("servers", shown));
        let error = connect(&localhost, options).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{shown:?}: {error}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_gone() {
    let papers = Papers::new();
    let server = TlsServer::start(&papers.server("servers", None)).await;
    let (address, relay) = relay(&server, papers.client("servers", None), LOOPBACK).await;
    let mut client = TestClient::connect(&address, 25).await;
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    assert_eq!(client.fetch(array).await.unwrap(), [1.0]);
    server.stop().await;
    client.end().await.unwrap_err();
    let error = relay.check().await.unwrap_err();
    assert!(error.message().contains("refused"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_on_other_machines() {
    let papers = Papers::new();
    let open: ListenAddress = "grpcs://0.0.0.0:0".parse().unwrap();
    let anyone = papers.server("servers", None);
    let error = Listener::bind_tls(&open, &anyone, None).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    for says in ["--tls-client-ca", "--token-file"] {
        assert!(error.message().contains(says), "{error}");
    }
    let token = Token::new("0123456789abcdef").unwrap();
    let known = papers.server("servers", Some("clients"));
    for (tls, token) in [(&anyone, Some(&token)), (&known, None)] {
        let listener = Listener::bind_tls(&open, tls, token).await.unwrap();
        assert!(
            listener
                .address()
                .to_string()
                .starts_with("grpcs://0.0.0.0:")
        );
    }
    // Other kinds of addresses.
    for text in ["grpc://127.0.0.1:0", "grpc://unix:/nowhere/x"] {
        let address = text.parse().unwrap();
        let error = Listener::bind_tls(&address, &known, None)
            .await
            .unwrap_err();
        assert!(error.message().contains("grpcs://HOST:PORT"), "{error}");
        let tls = papers.client("servers", None);
        let error = Relay::new(&address, None, tls).unwrap_err();
        assert!(error.message().contains("grpcs://HOST:PORT"), "{error}");
    }
    let error = Listener::bind(&open).await.unwrap_err();
    assert!(error.message().contains("--tls-certificate"), "{error}");
}

#[test]
fn files_that_cannot_be_used() {
    let papers = Papers::new();
    papers.write(
        "garbage",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    );
    papers.write("empty", "");
    let (pem, key) = (papers.path("servers.pem"), papers.path("servers.key"));
    let other_key = papers.path("clients.key");
    let names = |error: ifrt::Status, path: &Path| {
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(
            error.message().contains(&*path.to_string_lossy()),
            "{error}"
        );
    };
    for bad in ["garbage", "empty", "missing"] {
        let bad = papers.path(bad);
        names(ServerTls::from_files(&bad, &key, None).unwrap_err(), &bad);
        names(ServerTls::from_files(&pem, &bad, None).unwrap_err(), &bad);
        names(
            ServerTls::from_files(&pem, &key, Some(&bad)).unwrap_err(),
            &bad,
        );
        names(ClientTls::from_files(&bad, None).unwrap_err(), &bad);
        names(
            ClientTls::from_files(&pem, Some((&bad, &key))).unwrap_err(),
            &bad,
        );
    }
    // The key of somebody else.
    names(
        ServerTls::from_files(&pem, &other_key, None).unwrap_err(),
        &pem,
    );
    names(
        ClientTls::from_files(&pem, Some((&pem, &other_key))).unwrap_err(),
        &pem,
    );
}
