//! The bodies of the fuzz targets: each takes any bytes and must neither panic nor hang nor keep
//! memory, whatever they are. A broken promise is a panic, which a fuzzer reports and a test fails on.
//!
//! `ifrt-proxy/fuzz` drives these functions with libFuzzer and keeps a corpus for each, which an
//! ordinary test replays.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Buf as _;
use ifrt::fake::{FakeClient, FakeOptions};
use prost::Message;
use tokio::runtime::Runtime;
use tonic::metadata::MetadataMap;

use super::Server;
use super::authority::fixed;
use super::introduction::Introduction;
use super::session::reply::Outgoing;
use super::session::{Session, SessionEnds};
use super::sessions::Sessions;
use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use crate::proto::xla::ifrt::proxy::{
    GrpcIfrtSessionMetadata, IfrtProxyVersion, IfrtRequest, RequestMetadata,
};
use crate::token::Token;
use crate::version::Version;

/// A target by name.
pub type Target = (&'static str, fn(&[u8]));

/// Every target by name.
pub const TARGETS: [Target; 3] = [
    ("authority", authority),
    ("introduction", introduction),
    ("requests", requests),
];

/// How long an answer may take. Only a hang takes as long.
const DEADLINE: Duration = Duration::from_secs(20);

/// The requests of one input. More of them find nothing new.
const MAX_REQUESTS: usize = 64;

/// The first byte says how the rest, which a client sends over a Unix socket, is cut into pieces. The
/// pieces must not matter, no length may change, and no byte but percent signs.
///
/// # Panics
/// If that is not so.
pub fn authority(data: &[u8]) {
    let Some((piece, sent)) = data.split_first() else {
        return;
    };
    let whole = fixed(sent, sent.len().max(1));
    assert_eq!(whole, fixed(sent, usize::from(*piece).max(1)));
    assert_eq!(whole.len(), sent.len());
    for (before, after) in sent.iter().zip(&whole) {
        assert!(before == after || *before == b'%');
    }
}

/// The metadata of a session. None opens a server whose token nobody knows.
///
/// # Panics
/// If one does.
pub fn introduction(data: &[u8]) {
    static TOKEN: LazyLock<Option<Token>> =
        LazyLock::new(|| Token::new(getrandom::u64().ok()?.to_string().repeat(2)).ok());
    let Ok(metadata) = GrpcIfrtSessionMetadata::decode(data) else {
        return;
    };
    if let Ok(introduction) = Introduction::new(metadata, &MetadataMap::new()) {
        assert!(introduction.authenticate(None).is_ok());
        assert!(introduction.authenticate(TOKEN.as_ref()).is_err());
    }
}

/// The first byte chooses the version; then come requests, each after its length in two bytes.
///
/// Each is answered exactly once, nothing panics, and afterwards nothing is left of the session.
///
/// # Panics
/// If that is not so.
pub fn requests(data: &[u8]) {
    let Some((first, mut rest)) = data.split_first() else {
        return;
    };
    let protocols = Version::MAX.protocol - Version::MIN.protocol + 1;
    let protocol = Version::MIN.protocol + i32::from(*first) % protocols;
    let mut found = Vec::new();
    while rest.len() >= 2 && found.len() < MAX_REQUESTS {
        let length = usize::from(rest.get_u16_le()).min(rest.len());
        let (message, others) = rest.split_at(length);
        rest = others;
        if let Ok(request) = IfrtRequest::decode(message) {
            found.push(request);
        }
    }
    let Some(house) = &*HOUSE else { return };
    house.serve(protocol, found);
}

/// A server without gRPC.
struct House {
    runtime: Runtime,
    fake: Arc<FakeClient>,
    sessions: Arc<Sessions>,
}

static HOUSE: LazyLock<Option<House>> = LazyLock::new(|| {
    // Not so much memory that a shape could take all of the machine's.
    let fake = FakeClient::new(FakeOptions {
        memory_bytes: 1 << 20,
        ..FakeOptions::default()
    });
    let client: Arc<dyn ifrt::Client> = fake.clone();
    Some(House {
        runtime: Runtime::new().ok()?,
        fake,
        sessions: Sessions::new(Server::builder(client).shared),
    })
});

impl House {
    fn serve(&self, protocol: i32, requests: Vec<IfrtRequest>) {
        let metadata = GrpcIfrtSessionMetadata {
            version: Some(IfrtProxyVersion {
                protocol_version: protocol,
                ifrt_serdes_version_number: Version::MAX.serdes,
            }),
            initialization_data: None,
        };
        let opened = Introduction::new(metadata, &MetadataMap::new())
            .and_then(|client| self.sessions.open(&client, self.runtime.handle().clone()));
        // A system without threads is not what is looked for.
        let Ok((session, ends)) = opened else { return };
        self.runtime.block_on(async {
            let served = tokio::time::timeout(DEADLINE, answered_once(&session, ends, requests));
            assert!(served.await.is_ok(), "a request was not answered");
            self.sessions.end(&session, Ok(()));
            drop(session);
            let freed = tokio::time::timeout(DEADLINE, self.sessions.until_freed());
            assert!(freed.await.is_ok(), "a session does not end");
        });
        assert_eq!(self.fake.live_bytes(), 0);
    }
}

async fn answered_once(session: &Session, mut ends: SessionEnds, requests: Vec<IfrtRequest>) {
    let mut open = vec![true; requests.len()];
    for (op_id, mut request) in (0_u64..).zip(requests) {
        request
            .request_metadata
            .get_or_insert_with(RequestMetadata::default)
            .op_id = op_id;
        for handle in awaited(&request) {
            supply(session, handle, op_id);
        }
        let size = request.encoded_len();
        assert!(
            ends.requests.push(request, size).await,
            "the worker is gone"
        );
    }
    while open.contains(&true) {
        let Some(Outgoing::Response(response, _)) = ends.responses.recv().await else {
            panic_on_end();
            return;
        };
        let metadata = response.response_metadata.unwrap_or_default();
        let message = metadata.status.map_or_else(String::new, |s| s.message);
        assert!(!message.contains("panicked"), "{message}");
        assert!(!message.contains("without an answer"), "{message}");
        let slot = usize::try_from(metadata.op_id).ok();
        let slot = slot.and_then(|slot| open.get_mut(slot));
        assert_eq!(slot.map(std::mem::take), Some(true), "two answers");
    }
}

#[allow(clippy::panic, reason = "the body of a fuzz target fails by it")]
fn panic_on_end() {
    panic!("the session ended by itself");
}

/// The host buffers that a request waits for.
fn awaited(request: &IfrtRequest) -> Vec<u64> {
    match &request.request {
        Some(Request::MakeArrayFromHostBufferRequest(request)) => vec![request.host_buffer_handle],
        Some(Request::MakeArraysFromHostBufferShardsRequest(request)) => request
            .specs
            .iter()
            .flat_map(|spec| &spec.host_buffers)
            .map(|buffer| buffer.host_buffer_handle)
            .collect(),
        _ => Vec::new(),
    }
}

/// Uploads what may be there already, in a few sizes.
fn supply(session: &Session, handle: u64, op_id: u64) {
    let content = [0x3f_u8; 16];
    let size = usize::try_from(op_id % 5).unwrap_or_default() * 4;
    let content = content.get(..size).unwrap_or_default();
    let announced = i64::try_from(content.len()).unwrap_or_default();
    if let Ok(mut upload) = session.host_buffers.begin_upload(handle, announced) {
        let outcome = upload.push(content).and_then(|()| upload.finish());
        assert_eq!(outcome, Ok(()));
    }
}
