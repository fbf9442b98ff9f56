//! Moving the contents of arrays: each transfer is a stream of its own on the data connection.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client/grpc_host_buffer.cc`.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use ifrt::{Completion, Promise, Result, Status};
use prost::Message;
use tokio::runtime::Handle;
use tonic::metadata::BinaryMetadataValue;
use tonic::transport::Channel;

use super::session::Session;
use super::transport::{Connection, from_grpc};
use crate::metadata_keys::STORE_METADATA;
use crate::proto::xla::ifrt::proxy::grpc_ifrt_service_client::GrpcIfrtServiceClient;
use crate::proto::xla::ifrt::proxy::{
    GrpcHostBufferDeleteRequest, GrpcHostBufferLookupRequest, GrpcHostBufferStoreMetadata,
    GrpcHostBufferStoreRequest,
};

/// The bytes in one message.
const CHUNK_BYTES: usize = 1 << 20;

/// Moves the contents of arrays.
#[derive(Debug)]
pub(super) struct HostTransfer {
    session: Arc<Session>,
    service: GrpcIfrtServiceClient<Channel>,
    io: Handle,
    max_bytes: usize,
}

/// How many bytes are to come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// So many.
    Exactly(usize),
    /// Nobody knows before they are here.
    Unknown,
}

impl HostTransfer {
    pub(super) fn new(connection: &Connection) -> Self {
        Self {
            session: Arc::clone(&connection.session),
            service: GrpcIfrtServiceClient::new(connection.data.clone())
                .max_decoding_message_size(connection.max_message_bytes)
                .max_encoding_message_size(usize::MAX),
            io: connection.data_thread.handle().clone(),
            max_bytes: connection.max_message_bytes,
        }
    }

    /// Begins to send the content of a host buffer. The server waits for it where it is needed.
    ///
    /// If that fails the session is over: the server would wait for ever, and with it every later
    /// request.
    pub(super) fn upload(&self, handle: u64, data: Bytes) {
        let mut service = self.service.clone();
        let session = Arc::clone(&self.session);
        self.io.spawn(async move {
            let sent = match i64::try_from(data.len()) {
                Ok(size) => send(&mut service, session.id(), handle, size, data).await,
                Err(_) => Err(Status::invalid_argument("a host buffer is too large")),
            };
            if let Err(status) = sent {
                session.lose(&status.annotate("the content of an array could not be sent"));
            }
        });
    }

    /// Begins to fetch the content of a host buffer that the server has, after which the server
    /// forgets it.
    pub(super) fn download(&self, handle: u64, expected: Expected, promise: Promise<Bytes>) {
        let mut service = self.service.clone();
        let session_id = self.session.id();
        let max_bytes = self.max_bytes;
        let session = Arc::clone(&self.session);
        self.io.spawn(async move {
            let fetched = fetch(&mut service, session_id, handle, expected, max_bytes).await;
            let request = GrpcHostBufferDeleteRequest { session_id, handle };
            let fetched = fetched.map_err(|status| session.ended().unwrap_or(status));
            promise.set(fetched);
            if let Err(status) = service.host_buffer_delete(request).await {
                tracing::debug!(%status, "a host buffer that was read could not be deleted");
            }
        });
    }

    /// As [`HostTransfer::download`].
    pub(super) fn fetch(&self, handle: u64, expected: Expected) -> Completion<Bytes> {
        let (promise, completion) = Completion::pair();
        self.download(handle, expected, promise);
        completion
    }
}

async fn send(
    service: &mut GrpcIfrtServiceClient<Channel>,
    session_id: u64,
    handle: u64,
    buffer_size: i64,
    mut data: Bytes,
) -> Result<()> {
    let chunks = std::iter::from_fn(move || {
        let length = data.len().min(CHUNK_BYTES);
        (length > 0).then(|| GrpcHostBufferStoreRequest {
            data: data.split_to(length),
        })
    });
    let metadata = GrpcHostBufferStoreMetadata {
        session_id,
        handle,
        buffer_size,
    };
    let mut request = tonic::Request::new(tokio_stream::iter(chunks));
    let value = BinaryMetadataValue::from_bytes(&metadata.encode_to_vec());
    request.metadata_mut().insert_bin(STORE_METADATA, value);
    let sent = service.host_buffer_store(request).await;
    sent.map(drop).map_err(|status| from_grpc(&status))
}

async fn fetch(
    service: &mut GrpcIfrtServiceClient<Channel>,
    session_id: u64,
    handle: u64,
    expected: Expected,
    max_bytes: usize,
) -> Result<Bytes> {
    let request = GrpcHostBufferLookupRequest { session_id, handle };
    let stream = service.host_buffer_lookup(request).await;
    let mut stream = stream.map_err(|status| from_grpc(&status))?.into_inner();
    let mut content = Content::new(expected, max_bytes);
    while let Some(chunk) = stream
        .message()
        .await
        .map_err(|status| from_grpc(&status))?
    {
        content.push(chunk.data)?;
    }
    content.finish()
}

/// What has come so far.
struct Content {
    expected: Expected,
    limit: usize,
    first: Bytes,
    all: BytesMut,
}

impl Content {
    fn new(expected: Expected, max_bytes: usize) -> Self {
        let limit = match expected {
            Expected::Exactly(bytes) => bytes,
            Expected::Unknown => max_bytes,
        };
        Self {
            expected,
            limit,
            first: Bytes::new(),
            all: BytesMut::new(),
        }
    }

    fn push(&mut self, chunk: Bytes) -> Result<()> {
        let length = self.first.len().max(self.all.len());
        let total = length.checked_add(chunk.len());
        if total.is_none_or(|total| total > self.limit) {
            return Err(self.mismatch(total.unwrap_or(usize::MAX)));
        }
        if length == 0 {
            self.first = chunk;
            return Ok(());
        }
        if self.all.is_empty() {
            let mut all = Vec::new();
            let wanted = match self.expected {
                Expected::Exactly(bytes) => bytes,
                Expected::Unknown => length.saturating_mul(4).min(self.limit),
            };
            // The size may be a claim of the server, so there may be no such memory.
            all.try_reserve_exact(wanted).map_err(|error| {
                Status::resource_exhausted(format!(
                    "there is no memory for {wanted} bytes of an array: {error}"
                ))
            })?;
            all.extend_from_slice(&self.first);
            self.first = Bytes::new();
            self.all = BytesMut::from(Bytes::from(all));
        }
        self.all.extend_from_slice(&chunk);
        Ok(())
    }

    fn finish(self) -> Result<Bytes> {
        let length = self.first.len().max(self.all.len());
        match self.expected {
            Expected::Exactly(bytes) if bytes != length => Err(self.mismatch(length)),
            _ if self.all.is_empty() => Ok(self.first),
            _ => Ok(self.all.freeze()),
        }
    }

    fn mismatch(&self, found: usize) -> Status {
        Status::internal(format!(
            "During CopyToHostBuffer, size mismatch in response from proxy: {} {} vs {found}",
            match self.expected {
                Expected::Exactly(_) => "exactly",
                Expected::Unknown => "at most",
            },
            self.limit
        ))
    }
}

#[cfg(test)]
mod tests {
    use ifrt::Code;

    use super::*;

    fn collect(expected: Expected, limit: usize, chunks: &[&'static [u8]]) -> Result<Bytes> {
        let mut content = Content::new(expected, limit);
        for chunk in chunks {
            content.push(Bytes::from_static(chunk))?;
        }
        content.finish()
    }

    #[test]
    fn contents_are_whole() {
        let exactly =
            |bytes, chunks: &[&'static [u8]]| collect(Expected::Exactly(bytes), 0, chunks);
        assert_eq!(exactly(0, &[b""]), Ok(Bytes::new()));
        assert_eq!(exactly(0, &[]), Ok(Bytes::new()));
        assert_eq!(exactly(3, &[b"abc"]), Ok(Bytes::from_static(b"abc")));
        assert_eq!(exactly(3, &[b"", b"a", b"", b"bc"]), Ok("abc".into()));
        let unknown = |limit, chunks: &[&'static [u8]]| collect(Expected::Unknown, limit, chunks);
        assert_eq!(unknown(8, &[b"ab", b"cd", b"e"]), Ok("abcde".into()));
    }

    #[test]
    fn wrong_sizes_and_monstrous_claims_are_errors() {
        for (bytes, chunks) in [(3, &[&b"ab"[..]][..]), (3, &[b"ab", b"cd"]), (0, &[b"a"])] {
            let error = collect(Expected::Exactly(bytes), 0, chunks).unwrap_err();
            assert_eq!(error.code(), Code::Internal);
            assert!(error.message().contains("size mismatch"), "{error}");
        }
        assert!(collect(Expected::Unknown, 3, &[b"ab", b"cd"]).is_err());
        let error = collect(Expected::Exactly(usize::MAX), 0, &[b"ab", b"cd"]).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
    }
}
