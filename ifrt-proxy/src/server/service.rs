//! The gRPC service: from streams and messages to sessions.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/server/grpc_service_impl.cc`.

mod chunks;
mod refusal;
mod session_stream;

use std::pin::Pin;
use std::sync::Arc;

use ifrt::Status;
use prost::Message;
use tokio::runtime::Handle;
use tokio_stream::Stream;
use tonic::metadata::MetadataMap;
use tonic::{Code as GrpcCode, Request, Response, Streaming};

use crate::metadata_keys::{SESSION_METADATA, STORE_METADATA};
use crate::proto::xla::ifrt::proxy::grpc_ifrt_service_server::GrpcIfrtService;
use crate::proto::xla::ifrt::proxy::{
    GrpcGetVersionRequest, GrpcGetVersionResponse, GrpcHostBufferDeleteRequest,
    GrpcHostBufferDeleteResponse, GrpcHostBufferLookupRequest, GrpcHostBufferReadFromDiskRequest,
    GrpcHostBufferReadFromDiskResponse, GrpcHostBufferStoreMetadata, GrpcHostBufferStoreRequest,
    GrpcHostBufferStoreResponse, GrpcIfrtSessionMetadata, IfrtProxyVersion, IfrtRequest,
    IfrtResponse,
};
use crate::server::introduction::Introduction;
use crate::server::session::Session;
use crate::server::session::deleter::Doomed;
use crate::server::sessions::Sessions;
use crate::version::{self, from_wire};
use chunks::Chunks;
use refusal::Refusal;
use session_stream::SessionStream;

/// What the server sends on the stream of a session.
type Responses = Pin<Box<dyn Stream<Item = Result<IfrtResponse, tonic::Status>> + Send>>;

/// The gRPC service.
#[derive(Debug)]
pub(crate) struct Service {
    sessions: Arc<Sessions>,
}

impl Service {
    pub(crate) const fn new(sessions: Arc<Sessions>) -> Self {
        Self { sessions }
    }

    fn session(&self, id: u64) -> Result<Arc<Session>, tonic::Status> {
        self.sessions.get(id).map_err(|error| to_grpc(&error))
    }
}

#[tonic::async_trait]
impl GrpcIfrtService for Service {
    async fn get_version(
        &self,
        request: Request<GrpcGetVersionRequest>,
    ) -> Result<Response<GrpcGetVersionResponse>, tonic::Status> {
        let request = request.into_inner();
        let version = version::negotiate(
            from_wire(request.min_version.unwrap_or_default()),
            from_wire(request.max_version.unwrap_or_default()),
        )
        .map_err(|error| to_grpc(&error))?;
        Ok(Response::new(GrpcGetVersionResponse {
            version: Some(IfrtProxyVersion {
                protocol_version: version.protocol,
                ifrt_serdes_version_number: version.serdes,
            }),
        }))
    }

    type IfrtSessionStream = Responses;

    async fn ifrt_session(
        &self,
        request: Request<Streaming<IfrtRequest>>,
    ) -> Result<Response<Responses>, tonic::Status> {
        let metadata: GrpcIfrtSessionMetadata = binary_metadata(
            request.metadata(),
            SESSION_METADATA,
            GrpcCode::InvalidArgument,
            GrpcCode::InvalidArgument,
        )?;
        let introduction =
            Introduction::new(metadata, request.metadata()).map_err(|error| to_grpc(&error))?;
        let requests = request.into_inner();
        let opened = self.sessions.open(&introduction, Handle::current());
        Ok(Response::new(match opened {
            Ok((session, ends)) => {
                Box::pin(SessionStream::new(&self.sessions, session, ends, requests))
            }
            Err(reason) => {
                tracing::warn!("a client was refused: {reason}");
                Box::pin(Refusal::new(requests, reason))
            }
        }))
    }

    async fn host_buffer_store(
        &self,
        request: Request<Streaming<GrpcHostBufferStoreRequest>>,
    ) -> Result<Response<GrpcHostBufferStoreResponse>, tonic::Status> {
        let metadata: GrpcHostBufferStoreMetadata = binary_metadata(
            request.metadata(),
            STORE_METADATA,
            GrpcCode::Internal,
            GrpcCode::DataLoss,
        )?;
        let session = self.session(metadata.session_id)?;
        let mut upload = session
            .host_buffers
            .begin_upload(metadata.handle, metadata.buffer_size)
            .map_err(|error| to_grpc(&error))?;
        let mut chunks = request.into_inner();
        let receive = async {
            while let Some(chunk) = chunks.message().await? {
                upload.push(&chunk.data).map_err(|error| to_grpc(&error))?;
            }
            Ok::<_, tonic::Status>(())
        };
        tokio::select! {
            received = receive => received?,
            () = session.until_end() => {
                return Err(tonic::Status::cancelled("the session has ended"));
            }
        }
        upload.finish().map_err(|error| to_grpc(&error))?;
        Ok(Response::new(GrpcHostBufferStoreResponse {}))
    }

    type HostBufferLookupStream = tokio_stream::Iter<Chunks>;

    async fn host_buffer_lookup(
        &self,
        request: Request<GrpcHostBufferLookupRequest>,
    ) -> Result<Response<Self::HostBufferLookupStream>, tonic::Status> {
        let request = request.into_inner();
        let bytes = self
            .session(request.session_id)?
            .host_buffers
            .get(request.handle)
            .map_err(|error| to_grpc(&error))?;
        Ok(Response::new(tokio_stream::iter(Chunks::new(bytes))))
    }

    async fn host_buffer_delete(
        &self,
        request: Request<GrpcHostBufferDeleteRequest>,
    ) -> Result<Response<GrpcHostBufferDeleteResponse>, tonic::Status> {
        let request = request.into_inner();
        let session = self.session(request.session_id)?;
        let bytes = session
            .host_buffers
            .remove(request.handle)
            .map_err(|error| to_grpc(&error))?;
        // Giving back the pages of a large buffer takes milliseconds, which other streams of this
        // thread should not wait for.
        session.deleter.push([Doomed::HostBuffer(bytes)]);
        Ok(Response::new(GrpcHostBufferDeleteResponse {}))
    }

    async fn host_buffer_read_from_disk(
        &self,
        request: Request<GrpcHostBufferReadFromDiskRequest>,
    ) -> Result<Response<GrpcHostBufferReadFromDiskResponse>, tonic::Status> {
        let metadata = request.into_inner().metadata.unwrap_or_default();
        let session = self.session(metadata.session_id)?;
        let upload = session
            .host_buffers
            .begin_upload(metadata.handle, metadata.buffer_size)
            .map_err(|error| to_grpc(&error))?;
        match session.shared_directory.clone() {
            Some(directory) => {
                let read = move || directory.read(metadata.handle, upload);
                if tokio::task::spawn_blocking(read).await.is_err() {
                    tracing::error!("reading the file of an upload panicked");
                }
            }
            None => upload.fail(Status::unimplemented(
                "this server does not read host buffers from files; start it with \
                 --shared-directory, or unset \
                 IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_THRESHOLD_BYTES in the client",
            )),
        }
        Ok(Response::new(GrpcHostBufferReadFromDiskResponse {}))
    }
}

/// The message in a binary metadata entry, or errors with the codes that the reference server uses.
fn binary_metadata<M: Message + Default>(
    metadata: &MetadataMap,
    key: &str,
    if_missing: GrpcCode,
    if_malformed: GrpcCode,
) -> Result<M, tonic::Status> {
    let value = metadata
        .get_bin(key)
        .ok_or_else(|| tonic::Status::new(if_missing, format!("the call has no metadata {key}")))?;
    let malformed = |error: String| {
        tonic::Status::new(
            if_malformed,
            format!("unable to parse metadata {key}: {error}"),
        )
    };
    let bytes = value
        .to_bytes()
        .map_err(|error| malformed(error.to_string()))?;
    M::decode(bytes).map_err(|error| malformed(error.to_string()))
}

/// The two kinds of codes have the same numbers.
pub(crate) fn to_grpc(status: &Status) -> tonic::Status {
    tonic::Status::new(GrpcCode::from_i32(status.code().number()), status.message())
}

fn from_grpc(status: &tonic::Status) -> Status {
    Status::from_wire(i32::from(status.code()), status.message())
        .unwrap_or_else(|| Status::unknown(status.message()))
}
