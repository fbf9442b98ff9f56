//! Negotiation, and what a session needs to be opened.

use ifrt_proxy::proto::xla::ifrt::proxy::*;
use prost::Message;
use tonic::Code;

use crate::support::{TestServer, within};

async fn negotiate(
    server: &TestServer,
    min: (i32, i32),
    max: (i32, i32),
) -> Result<(i32, i32), tonic::Status> {
    let version = |(protocol_version, ifrt_serdes_version_number)| {
        Some(IfrtProxyVersion {
            protocol_version,
            ifrt_serdes_version_number,
        })
    };
    let request = GrpcGetVersionRequest {
        min_version: version(min),
        max_version: version(max),
    };
    let mut client = server.raw().await;
    let response = within(client.0.get_version(request)).await?;
    let version = response.into_inner().version.unwrap();
    Ok((version.protocol_version, version.ifrt_serdes_version_number))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions() {
    let server = TestServer::start().await;
    assert_eq!(negotiate(&server, (16, 0), (25, 3)).await.unwrap(), (25, 3));
    assert_eq!(negotiate(&server, (16, 2), (30, 6)).await.unwrap(), (25, 5));
    for protocol in 16..=25 {
        let agreed = negotiate(&server, (16, 0), (protocol, 0)).await.unwrap();
        assert_eq!(agreed, (protocol, 0));
    }
    for (min, max) in [((1, 0), (15, 3)), ((26, 0), (27, 3)), ((16, 6), (25, 7))] {
        let error = negotiate(&server, min, max).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("the client"), "{error:?}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_every_version() {
    let server = TestServer::start().await;
    for protocol in 16..=25 {
        let mut client = server.client_at(protocol).await;
        let array = client.put(&*server.fake, 0, &[1.0, 2.0]).await;
        assert_eq!(client.fetch(array).await.unwrap(), [1.0, 2.0]);
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_that_is_missing_or_garbage() {
    let server = TestServer::start().await;
    let mut client = server.raw().await;
    let session = |protocol_version, ifrt_serdes_version_number| {
        let metadata = GrpcIfrtSessionMetadata {
            version: Some(IfrtProxyVersion {
                protocol_version,
                ifrt_serdes_version_number,
            }),
            initialization_data: None,
        };
        metadata.encode_to_vec()
    };
    for metadata in [
        None,
        Some(b"\xff\xff\xff".to_vec()),
        Some(Vec::new()),
        Some(session(15, 0)),
        Some(session(26, 0)),
        Some(session(25, 6)),
        Some(session(25, -1)),
    ] {
        let error = client.open(metadata.as_deref()).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{metadata:?}");
    }
    for (metadata, code) in [
        (None, Code::Internal),
        (Some(&b"\xff\xff\xff"[..]), Code::DataLoss),
        (Some(b""), Code::NotFound),
    ] {
        let error = client.store(metadata, Vec::new()).await.unwrap_err();
        assert_eq!(error.code(), code, "{metadata:?}");
    }
    // The server lives.
    drop(server.client().await);
    server.stop().await.unwrap();
}
