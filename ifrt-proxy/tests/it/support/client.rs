//! A client of the proxy, as thin as it can be.

use std::collections::HashMap;

use bytes::Bytes;
use ifrt::serdes::{attribute_map_to_proto, status_from_proto};
use ifrt::{AttributeMap, Client, Status};
use ifrt_proxy::proto::xla::ifrt::proxy::grpc_ifrt_service_client::GrpcIfrtServiceClient;
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request;
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_response::Response;
use ifrt_proxy::proto::xla::ifrt::proxy::*;
use ifrt_proxy::server::ListenAddress;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;
use tonic::metadata::BinaryMetadataValue;
use tonic::transport::{Channel, Endpoint};

use super::within;

pub(crate) const SESSION_METADATA: &str = "ifrt-proxy-grpc-ifrt-session-metadata-bin";
pub(crate) const STORE_METADATA: &str = "ifrt-proxy-grpc-host-buffer-store-metadata-bin";

/// What a request is answered with.
pub(crate) type Answer = Result<Response, Status>;

/// The gRPC calls.
#[derive(Clone)]
pub(crate) struct RawClient(pub(crate) GrpcIfrtServiceClient<Channel>);

impl RawClient {
    pub(crate) async fn connect(address: &ListenAddress) -> Self {
        let ListenAddress::Tcp(host_and_port) = address else {
            panic!("{address} is no TCP address");
        };
        let endpoint = Endpoint::from_shared(format!("http://{host_and_port}"))
            .unwrap()
            .tcp_nodelay(true)
            .initial_stream_window_size(2 << 20)
            .initial_connection_window_size(64 << 20);
        let channel = within(endpoint.connect()).await.unwrap();
        let client = GrpcIfrtServiceClient::new(channel).max_decoding_message_size(usize::MAX);
        Self(client)
    }

    /// Opens a stream with these bytes as its metadata.
    pub(crate) async fn open(
        &mut self,
        metadata: Option<&[u8]>,
    ) -> Result<(mpsc::UnboundedSender<IfrtRequest>, Streaming<IfrtResponse>), tonic::Status> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut request = tonic::Request::new(UnboundedReceiverStream::new(receiver));
        if let Some(metadata) = metadata {
            let value = BinaryMetadataValue::from_bytes(metadata);
            request.metadata_mut().insert_bin(SESSION_METADATA, value);
        }
        let stream = within(self.0.ifrt_session(request)).await?;
        Ok((sender, stream.into_inner()))
    }

    /// Uploads chunks under a metadata of these bytes.
    pub(crate) async fn store(
        &mut self,
        metadata: Option<&[u8]>,
        chunks: Vec<Bytes>,
    ) -> Result<(), tonic::Status> {
        let chunks = chunks
            .into_iter()
            .map(|data| GrpcHostBufferStoreRequest { data });
        let mut request = tonic::Request::new(tokio_stream::iter(chunks));
        if let Some(metadata) = metadata {
            let value = BinaryMetadataValue::from_bytes(metadata);
            request.metadata_mut().insert_bin(STORE_METADATA, value);
        }
        within(self.0.host_buffer_store(request)).await.map(drop)
    }

    pub(crate) async fn lookup(
        &mut self,
        session_id: u64,
        handle: u64,
    ) -> Result<Vec<Bytes>, tonic::Status> {
        let request = GrpcHostBufferLookupRequest { session_id, handle };
        let mut stream = within(self.0.host_buffer_lookup(request))
            .await?
            .into_inner();
        let mut chunks = Vec::new();
        while let Some(chunk) = within(stream.message()).await? {
            chunks.push(chunk.data);
        }
        Ok(chunks)
    }
}

/// A client with a session.
pub(crate) struct TestClient {
    pub(crate) raw: RawClient,
    pub(crate) init: InitResponse,
    pub(crate) requests: mpsc::UnboundedSender<IfrtRequest>,
    responses: Streaming<IfrtResponse>,
    /// Responses that nobody has asked for yet, by op id.
    arrived: HashMap<u64, IfrtResponse>,
    /// The metadata of all responses so far, in the order of their arrival.
    pub(crate) log: Vec<(ResponseMetadata, bool)>,
    next_op_id: u64,
    next_handle: u64,
    /// The user context of the next requests.
    pub(crate) user_context_id: u64,
}

impl TestClient {
    pub(crate) async fn connect(address: &ListenAddress, protocol: i32) -> Self {
        Self::over(RawClient::connect(address).await, protocol).await
    }

    pub(crate) async fn over(raw: RawClient, protocol: i32) -> Self {
        let data = AttributeMap::default();
        Self::introduced(raw, protocol, &data).await.unwrap()
    }

    /// A client that says something of itself when it opens its session, or why it got none.
    pub(crate) async fn introduced(
        mut raw: RawClient,
        protocol: i32,
        data: &AttributeMap,
    ) -> Result<Self, Status> {
        let metadata = GrpcIfrtSessionMetadata {
            version: Some(IfrtProxyVersion {
                protocol_version: protocol,
                ifrt_serdes_version_number: 3,
            }),
            initialization_data: Some(attribute_map_to_proto(data)),
        };
        let (requests, responses) = raw.open(Some(&metadata.encode_to_vec())).await.unwrap();
        let mut client = Self {
            raw,
            init: InitResponse::default(),
            requests,
            responses,
            arrived: HashMap::new(),
            log: Vec::new(),
            next_op_id: 1,
            next_handle: 1,
            user_context_id: 0,
        };
        match client.call(Request::InitRequest(InitRequest {})).await {
            Ok(Response::InitResponse(init)) => client.init = init,
            Err(reason) => {
                // The stream ends with it too.
                let end = client.end().await.unwrap_err();
                assert_eq!(end.message(), reason.message());
                assert_eq!(i32::from(end.code()), reason.code().number());
                return Err(reason);
            }
            other => panic!("{other:?}"),
        }
        Ok(client)
    }

    /// A handle that this client has not used.
    pub(crate) fn new_handle(&mut self) -> u64 {
        self.next_handle += 1;
        self.next_handle - 1
    }

    /// Sends a request and does not wait.
    pub(crate) fn send(&mut self, request: Request) -> u64 {
        let op_id = self.next_op_id;
        self.next_op_id += 1;
        let request = IfrtRequest {
            request_metadata: Some(RequestMetadata {
                op_id,
                payloads: Vec::new(),
                user_context_id: self.user_context_id,
            }),
            request: Some(request),
        };
        self.requests.send(request).unwrap();
        op_id
    }

    /// The response to a request, as it came.
    pub(crate) async fn response(&mut self, op_id: u64) -> IfrtResponse {
        loop {
            if let Some(response) = self.arrived.remove(&op_id) {
                return response;
            }
            let response = within(self.responses.message())
                .await
                .unwrap()
                .expect("the server ended the stream");
            let metadata = response.response_metadata.clone().unwrap();
            self.log
                .push((metadata.clone(), response.response.is_some()));
            let earlier = self.arrived.insert(metadata.op_id, response);
            assert!(earlier.is_none(), "two responses to request {op_id}");
        }
    }

    /// What a request was answered with.
    pub(crate) async fn answer(&mut self, op_id: u64) -> Answer {
        let response = self.response(op_id).await;
        let status = response
            .response_metadata
            .and_then(|metadata| metadata.status)
            .as_ref()
            .and_then(status_from_proto);
        match (status, response.response) {
            (None, Some(response)) => Ok(response),
            (Some(status), None) => Err(status),
            other => panic!("neither a response nor an error: {other:?}"),
        }
    }

    /// Sends a request and waits for what it is answered with.
    pub(crate) async fn call(&mut self, request: Request) -> Answer {
        let op_id = self.send(request);
        self.answer(op_id).await
    }

    /// True if the response has arrived already, among those that were read.
    pub(crate) fn has_arrived(&self, op_id: u64) -> bool {
        self.arrived.contains_key(&op_id)
    }

    /// The error or the end with which the server ends the stream.
    pub(crate) async fn end(mut self) -> Result<(), tonic::Status> {
        loop {
            match within(self.responses.message()).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(status) => return Err(status),
            }
        }
    }

    pub(crate) async fn upload(&mut self, handle: u64, data: &[u8]) -> Result<(), tonic::Status> {
        let metadata = GrpcHostBufferStoreMetadata {
            session_id: self.init.session_id,
            handle,
            buffer_size: i64::try_from(data.len()).unwrap(),
        };
        let chunks = data.chunks(1 << 20).map(Bytes::copy_from_slice).collect();
        self.raw
            .store(Some(&metadata.encode_to_vec()), chunks)
            .await
    }

    pub(crate) async fn lookup(&mut self, handle: u64) -> Result<Vec<u8>, tonic::Status> {
        let chunks = self.raw.lookup(self.init.session_id, handle).await?;
        Ok(chunks.concat())
    }

    /// Makes an array of one shard of `f32` on `device`, and waits for the answer.
    pub(crate) async fn put(&mut self, fake: &dyn Client, device: i32, values: &[f32]) -> u64 {
        let handle = self.new_handle();
        let data: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let op_id = self.send(super::make_array(fake, handle, &[device], values.len()));
        self.upload(handle, &data).await.unwrap();
        self.answer(op_id).await.unwrap();
        handle
    }

    /// Reads an array of `f32` with one shard.
    pub(crate) async fn fetch(&mut self, array: u64) -> Result<Vec<f32>, Status> {
        let bytes = self.fetch_bytes(array).await?;
        Ok(bytes
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
            .collect())
    }

    pub(crate) async fn fetch_bytes(&mut self, array: u64) -> Result<Vec<u8>, Status> {
        let handle = self.new_handle();
        let request = CopyToHostBufferRequest {
            host_buffer_handle: handle,
            array_handle: array,
            byte_strides: None,
        };
        self.call(Request::CopyToHostBufferRequest(request)).await?;
        let bytes = self.lookup(handle).await.unwrap();
        let delete = GrpcHostBufferDeleteRequest {
            session_id: self.init.session_id,
            handle,
        };
        within(self.raw.0.host_buffer_delete(delete)).await.unwrap();
        Ok(bytes)
    }

    /// Compiles a program of the fake and returns the handle of the executable.
    pub(crate) async fn compile(&mut self, program: &str) -> Result<u64, Status> {
        match self.call(super::compile(program)).await? {
            Response::CompileResponse(response) => Ok(response.loaded_executable_handle),
            other => panic!("{other:?}"),
        }
    }

    /// Runs an executable for the first time and returns what the server says of it.
    pub(crate) async fn execute_first(
        &mut self,
        executable: u64,
        args: &[u64],
    ) -> Result<LoadedExecutableExecuteResponse, Status> {
        let request = super::execute(executable, args, &[]);
        match self.call(request).await? {
            Response::LoadedExecutableExecuteResponse(response) => Ok(response),
            other => panic!("{other:?}"),
        }
    }

    /// Whether the server takes the array for deleted.
    pub(crate) async fn is_deleted(&mut self, array_handle: u64) -> Result<bool, Status> {
        let request = Request::IsArrayDeletedRequest(IsArrayDeletedRequest { array_handle });
        match self.call(request).await? {
            Response::IsArrayDeletedResponse(response) => Ok(response.deleted),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn ready(&mut self, arrays: &[u64]) -> Result<(), Status> {
        self.call(super::check_value_ready(arrays)).await.map(drop)
    }
}
