//! Who may open a session.

use crate::support::{SESSION_METADATA, TestClient, TestServer, within};
use ifrt::fake::FakeOptions;
use ifrt::{AttributeMap, Code};
use ifrt_proxy::Token;
use ifrt_proxy::client::{ClientOptions, ProxyClient};
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request;
use ifrt_proxy::proto::xla::ifrt::proxy::{
    GrpcIfrtSessionMetadata, IfrtProxyVersion, IfrtRequest, InitRequest,
};
use prost::Message;

const SECRET: &str = "correct horse battery staple";

async fn guarded() -> TestServer {
    let token = Token::new(SECRET).unwrap();
    TestServer::built(FakeOptions::default(), "grpc://127.0.0.1:0", |server| {
        server.token(token)
    })
    .await
}

fn showing(token: impl Into<ifrt::AttributeValue>) -> AttributeMap {
    let mut data = AttributeMap::default();
    data.set(Token::ATTRIBUTE, token);
    data
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_right_token_opens() {
    let server = guarded().await;
    let raw = server.raw().await;
    let mut client = TestClient::introduced(raw, 25, &showing(SECRET))
        .await
        .unwrap();
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    assert_eq!(client.fetch(array).await.unwrap(), [1.0]);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anything_else_does_not() {
    let server = guarded().await;
    let shorter = &SECRET[..SECRET.len() - 1];
    for (data, says) in [
        (AttributeMap::default(), "the client has shown none"),
        (showing(""), "is not that of this server"),
        (showing(shorter), "is not that of this server"),
        (showing(format!("{SECRET}!")), "is not that of this server"),
        (showing(SECRET.to_uppercase()), "is not that of this server"),
        (showing(17_i64), "the client has shown none"),
    ] {
        let raw = server.raw().await;
        let Err(error) = TestClient::introduced(raw, 25, &data).await else {
            panic!("{data:?} opened a session");
        };
        assert_eq!(error.code(), Code::Unauthenticated, "{data:?}");
        assert!(error.message().contains(says), "{error:?}");
        assert!(error.message().contains("IFRT_PROXY_TOKEN_FILE"));
        assert!(!error.message().contains("horse"), "{error:?}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_in_rust() {
    use ifrt::Client as _;
    let server = guarded().await;
    let connect = |options: ClientOptions| {
        let address = server.address.to_string();
        within(tokio::task::spawn_blocking(move || {
            ProxyClient::connect(&address, options)
        }))
    };
    let options = ClientOptions::new().token(Token::new(SECRET).unwrap());
    assert!(!format!("{options:?}").contains("horse"));
    let client = connect(options).await.unwrap().unwrap();
    assert_eq!(client.devices().len(), server.fake.devices().len());
    let wrong = Token::new(SECRET.to_uppercase()).unwrap();
    for options in [ClientOptions::new(), ClientOptions::new().token(wrong)] {
        let error = connect(options).await.unwrap().unwrap_err();
        assert_eq!(error.code(), Code::Unauthenticated, "{error}");
    }
    drop(client);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_in_the_header() {
    let server = guarded().await;
    let metadata = GrpcIfrtSessionMetadata {
        version: Some(IfrtProxyVersion {
            protocol_version: 25,
            ifrt_serdes_version_number: 3,
        }),
        initialization_data: None,
    };
    for (header, opens) in [
        (format!("Bearer {SECRET}"), true),
        (format!("bearer  {SECRET} "), true),
        (format!("Basic {SECRET}"), false),
        ("Bearer".to_owned(), false),
        (format!("Bearer {SECRET}{SECRET}"), false),
    ] {
        let mut raw = server.raw().await;
        let mut request = tonic::Request::new(init_and_nothing_else());
        let value = tonic::metadata::BinaryMetadataValue::from_bytes(&metadata.encode_to_vec());
        let headers = request.metadata_mut();
        headers.insert_bin(SESSION_METADATA, value);
        headers.insert("authorization", header.parse().unwrap());
        let mut responses = within(raw.0.ifrt_session(request))
            .await
            .unwrap()
            .into_inner();
        let response = within(responses.message()).await.unwrap().unwrap();
        let metadata = response.response_metadata.unwrap();
        let refused = metadata
            .status
            .is_some_and(|status| status.code == Code::Unauthenticated.number());
        assert_eq!(refused, !opens, "{header}");
    }
    server.stop().await.unwrap();
}

fn init_and_nothing_else() -> impl tokio_stream::Stream<Item = IfrtRequest> + Send + 'static {
    use tokio_stream::StreamExt as _;
    let init = IfrtRequest {
        request_metadata: None,
        request: Some(Request::InitRequest(InitRequest {})),
    };
    tokio_stream::once(init).chain(tokio_stream::pending())
}
