//! Uploads through a directory that client and server share.

use std::fs;
use std::path::Path;

use ifrt::fake::FakeOptions;
use ifrt::serdes::attribute_map_to_proto;
use ifrt::{AttributeMap, Code};
use ifrt_proxy::proto::xla::ifrt::proxy::{
    GrpcHostBufferReadFromDiskRequest, GrpcHostBufferStoreMetadata, GrpcIfrtSessionMetadata,
    IfrtProxyVersion,
};
use prost::Message;
use tempfile::TempDir;

use crate::support::{TestClient, TestServer, make_array, within};

async fn sharing(root: &Path) -> TestServer {
    TestServer::built(FakeOptions::default(), "grpc://127.0.0.1:0", |server| {
        server.shared_directory(root).unwrap()
    })
    .await
}

async fn client_in(server: &TestServer, name: &str) -> Result<TestClient, ifrt::Status> {
    let mut data = AttributeMap::default();
    data.set("shared_directory", name.to_owned());
    TestClient::introduced(server.raw().await, 25, &data).await
}

/// Makes an array of `len` values of `f32` whose bytes are said to be in a file of `size` bytes.
async fn put_file(
    server: &TestServer,
    client: &mut TestClient,
    handle: u64,
    (len, size): (usize, i64),
) -> Result<Vec<f32>, ifrt::Status> {
    let op_id = client.send(make_array(&*server.fake, handle, &[0], len));
    let request = GrpcHostBufferReadFromDiskRequest {
        metadata: Some(GrpcHostBufferStoreMetadata {
            session_id: client.init.session_id,
            handle,
            buffer_size: size,
        }),
    };
    // An error here would end the session of a released client.
    within(client.raw.0.host_buffer_read_from_disk(request))
        .await
        .unwrap();
    client.answer(op_id).await?;
    client.fetch(handle).await
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_client_has_its_own() {
    let root = TempDir::new().unwrap();
    for name in ["a", "b-1_X"] {
        fs::create_dir(root.path().join(name)).unwrap();
    }
    let server = sharing(root.path()).await;
    let mut a = client_in(&server, "a").await.unwrap();
    let mut b = client_in(&server, "b-1_X").await.unwrap();
    let mut shared = server.client().await;
    // The same handle in all of them, beyond 32 bits and negative when it is cut off.
    let handle = 0x7_ffff_fff0;
    let name = "lt_-16";
    for (path, value) in [("a", 1.0), ("b-1_X", 2.0), (".", 3.0)] {
        fs::write(root.path().join(path).join(name), bytes(&[value, 0.5])).unwrap();
    }
    for (client, value) in [(&mut a, 1.0), (&mut b, 2.0), (&mut shared, 3.0)] {
        let read = put_file(&server, client, handle, (2, 8)).await.unwrap();
        assert_eq!(read, [value, 0.5]);
    }
    // What has been read is gone.
    for path in ["a", "b-1_X", "."] {
        assert!(!root.path().join(path).join(name).exists(), "{path}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_not_what_was_said() {
    let root = TempDir::new().unwrap();
    let secret = root.path().join("secret");
    fs::write(&secret, bytes(&[7.0])).unwrap();
    let own = root.path().join("own");
    fs::create_dir(&own).unwrap();
    let server = sharing(root.path()).await;
    let mut client = client_in(&server, "own").await.unwrap();

    fs::write(own.join("lt_2"), bytes(&[1.0, 2.0])).unwrap();
    fs::write(own.join("lt_3"), b"abc").unwrap();
    std::os::unix::fs::symlink(&secret, own.join("lt_4")).unwrap();
    fs::create_dir(own.join("lt_5")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        own.join("lt_6"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    for (handle, says) in [
        (1, "cannot read the upload"),
        (2, "has 8 bytes, but 4 were announced"),
        (3, "has 3 bytes, but 4 were announced"),
        (4, "cannot read the upload"),
        (5, "no regular file"),
        (6, "no regular file"),
    ] {
        let error = put_file(&server, &mut client, handle, (1, 4))
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::DataLoss, "{handle}: {error}");
        assert!(error.message().contains(says), "{handle}: {error}");
    }
    assert_eq!(fs::read(&secret).unwrap(), bytes(&[7.0]));
    assert!(!own.join("lt_4").exists());

    // The session goes on.
    fs::write(own.join("lt_7"), bytes(&[4.0])).unwrap();
    let read = put_file(&server, &mut client, 7, (1, 4)).await.unwrap();
    assert_eq!(read, [4.0]);
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_lead_elsewhere() {
    let root = TempDir::new().unwrap();
    let shared = root.path().join("shared");
    fs::create_dir(&shared).unwrap();
    std::os::unix::fs::symlink(root.path(), shared.join("link")).unwrap();
    let server = sharing(&shared).await;
    for (name, code) in [
        ("", Code::InvalidArgument),
        (".", Code::InvalidArgument),
        ("..", Code::InvalidArgument),
        ("a/b", Code::InvalidArgument),
        ("/tmp", Code::InvalidArgument),
        ("a\0", Code::InvalidArgument),
        ("missing", Code::NotFound),
        ("link", Code::NotFound),
    ] {
        match client_in(&server, name).await {
            Ok(_) => panic!("{name:?} was taken"),
            Err(error) => assert_eq!(error.code(), code, "{name:?}: {error:?}"),
        }
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_is_no_text() {
    let root = TempDir::new().unwrap();
    let server = sharing(root.path()).await;
    for name in [
        ifrt::AttributeValue::Int64(1),
        ifrt::AttributeValue::String(vec![0xff, 0xfe].into()),
    ] {
        let mut data = AttributeMap::default();
        data.set("shared_directory", name);
        let mut raw = server.raw().await;
        let metadata = GrpcIfrtSessionMetadata {
            version: Some(IfrtProxyVersion {
                protocol_version: 25,
                ifrt_serdes_version_number: 3,
            }),
            initialization_data: Some(attribute_map_to_proto(&data)),
        };
        let error = raw.open(Some(&metadata.encode_to_vec())).await.unwrap_err();
        assert!(error.message().contains("shared_directory"), "{error:?}");
    }
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_shares_nothing() {
    let server = TestServer::start().await;
    // A name is ignored: the client cannot know.
    let mut client = client_in(&server, "own").await.unwrap();
    let error = put_file(&server, &mut client, 100, (1, 4))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    assert!(error.message().contains("--shared-directory"), "{error}");
    let array = client.put(&*server.fake, 0, &[1.0]).await;
    assert_eq!(client.fetch(array).await.unwrap(), [1.0]);
    server.stop().await.unwrap();
}

#[test]
fn a_directory_that_is_not_there() {
    let fake: std::sync::Arc<dyn ifrt::Client> =
        ifrt::fake::FakeClient::new(FakeOptions::default());
    let root = TempDir::new().unwrap();
    let error = ifrt_proxy::server::Server::builder(fake)
        .shared_directory(root.path().join("missing"))
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("missing"), "{error}");
}
