//! Unix sockets, and clients that name their path as the authority.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;

use ifrt::Code;
use ifrt::fake::FakeOptions;
use ifrt_proxy::server::{Limits, ListenAddress, Listener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::support::{TestServer, within};

fn address(path: &std::path::Path) -> ListenAddress {
    format!("grpc://unix:{}", path.display()).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_of_a_socket() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.sock");
    let listener = Listener::bind(&address(&path)).await.unwrap();
    let metadata = std::fs::symlink_metadata(&path).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    // Nothing else is left in the directory.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let error = Listener::bind(&address(&path)).await.unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists);
    assert!(error.message().contains("another server"), "{error}");
    drop(listener);
    assert!(!path.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_there_already() {
    let dir = tempfile::tempdir().unwrap();
    // The socket of a server that was killed.
    let stale = dir.path().join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    assert!(stale.exists());
    let listener = Listener::bind(&address(&stale)).await.unwrap();
    // A file that another program has put in its place is left alone.
    std::fs::remove_file(&stale).unwrap();
    std::fs::write(&stale, "precious").unwrap();
    drop(listener);
    assert_eq!(std::fs::read_to_string(&stale).unwrap(), "precious");
    let error = Listener::bind(&address(&stale)).await.unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&stale).unwrap(), "precious");

    let error = Listener::bind(&address(&dir.path().join("no/dir")))
        .await
        .unwrap_err();
    assert!(error.message().contains("directory"), "{error}");
    let long = dir.path().join("l".repeat(200));
    let error = Listener::bind(&address(&long)).await.unwrap_err();
    assert!(error.message().contains("shorter path"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// An HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

fn field(name: &str, value: &str) -> Vec<u8> {
    let string = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0x40], string(name), string(value)].concat()
}

/// The call GetVersion, byte by byte as gRPC C++ makes it over a Unix socket.
fn get_version(authority: &str) -> Vec<u8> {
    let block = [
        vec![0x86, 0x83],
        field(":path", "/xla.ifrt.proxy.GrpcIfrtService/GetVersion"),
        field(":authority", authority),
        field("te", "trailers"),
        field("content-type", "application/grpc"),
        field(
            "user-agent",
            "grpc-c++/1.78.0 grpc-c/52.0.0 (linux; chttp2)",
        ),
    ]
    .concat();
    // min {16, 0}, max {25, 3}.
    let message = b"\x0a\x02\x08\x10\x12\x04\x08\x19\x10\x03";
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[]),
        frame(1, 4, 1, &block),
        frame(0, 1, 1, &[&[0], &length[..], message].concat()),
    ]
    .concat()
}

/// Sends bytes and returns the payload of the first DATA frame, or the code of a reset.
async fn answer(path: &std::path::Path, call: &[u8]) -> Result<Vec<u8>, u8> {
    let mut stream = within(UnixStream::connect(path)).await.unwrap();
    stream.write_all(call).await.unwrap();
    loop {
        let mut header = [0; 9];
        within(stream.read_exact(&mut header)).await.unwrap();
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        within(stream.read_exact(&mut payload)).await.unwrap();
        match header[3] {
            0 => return Ok(payload),
            3 => return Err(payload[3]),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_as_the_authority() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.sock");
    let address = format!("grpc://unix:{}", path.display());
    let server = TestServer::listening(FakeOptions::default(), Limits::default(), &address).await;
    let expected = b"\x00\x00\x00\x00\x06\x0a\x04\x08\x19\x10\x03";
    for authority in ["localhost", "%2Ftmp%2Fx.sock", "x.sock", "%2F"] {
        let answered = answer(&path, &get_version(authority)).await.unwrap();
        assert_eq!(answered, expected, "{authority}");
    }
    // What is wrong with HTTP/2 is still refused.
    assert!(answer(&path, &get_version("a b")).await.is_err());
    server.stop().await.unwrap();
    assert!(!path.exists());
}
