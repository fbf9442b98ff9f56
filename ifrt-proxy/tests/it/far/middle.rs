//! A server in the middle: it passes everything on to a real server, and changes what a test wants to
//! have changed.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use ifrt_proxy::proto::xla::ifrt::proxy::grpc_ifrt_service_client::GrpcIfrtServiceClient;
use ifrt_proxy::proto::xla::ifrt::proxy::grpc_ifrt_service_server::{
    GrpcIfrtService, GrpcIfrtServiceServer,
};
use ifrt_proxy::proto::xla::ifrt::proxy::*;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::Channel;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use super::serve;
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request as Body;
use ifrt_proxy::server::Background;

/// What becomes of a response.
pub(super) enum Fate {
    /// These are sent in its place.
    Send(Vec<IfrtResponse>),
    /// The stream ends.
    End(Result<(), Status>),
}

type Respond = Box<dyn FnMut(&Body, IfrtResponse) -> Fate + Send>;
type Chunks = Box<
    dyn FnMut(
            Vec<GrpcHostBufferLookupResponse>,
        ) -> Vec<Result<GrpcHostBufferLookupResponse, Status>>
        + Send,
>;

/// What is changed.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) version: Option<IfrtProxyVersion>,
    pub(super) respond: Option<Respond>,
    pub(super) chunks: Option<Chunks>,
    pub(super) store: Option<Status>,
    /// How many requests of each kind have come.
    pub(super) requests: BTreeMap<String, usize>,
    /// What sends to the client.
    pub(super) client: Option<mpsc::UnboundedSender<Result<IfrtResponse, Status>>>,
}

/// The server in the middle.
pub(super) struct Middle {
    pub(super) address: String,
    pub(super) faults: Arc<Mutex<Faults>>,
    _runtime: Runtime,
    _real: Background,
}

impl Middle {
    pub(super) fn start() -> Self {
        let real = serve();
        let runtime = Runtime::new().unwrap();
        let faults: Arc<Mutex<Faults>> = Arc::default();
        let target = real.address().to_string().replace("grpc://", "http://");
        let incoming = {
            let _guard = runtime.enter();
            let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap());
            incoming.unwrap().with_nodelay(Some(true))
        };
        let address = format!("grpc://{}", incoming.local_addr().unwrap());
        let channel = runtime.block_on(Channel::from_shared(target).unwrap().connect());
        let service = Service {
            real: GrpcIfrtServiceClient::new(channel.unwrap()),
            faults: Arc::clone(&faults),
        };
        runtime.spawn(
            tonic::transport::Server::builder()
                .add_service(GrpcIfrtServiceServer::new(service))
                .serve_with_incoming(incoming),
        );
        Self {
            address,
            faults,
            _runtime: runtime,
            _real: real,
        }
    }

    /// Changes the responses from now on.
    pub(super) fn respond(
        &self,
        respond: impl FnMut(&Body, IfrtResponse) -> Fate + Send + 'static,
    ) {
        self.faults.lock().unwrap().respond = Some(Box::new(respond));
    }

    /// Sends something to the client that it did not ask for, or ends its stream.
    pub(super) fn send(&self, response: Result<IfrtResponse, Status>) {
        let faults = self.faults.lock().unwrap();
        faults.client.as_ref().unwrap().send(response).unwrap();
    }

    /// How many requests of this kind have come.
    pub(super) fn requests(&self, kind: &str) -> usize {
        let faults = self.faults.lock().unwrap();
        faults.requests.get(kind).copied().unwrap_or_default()
    }
}

struct Service {
    real: GrpcIfrtServiceClient<Channel>,
    faults: Arc<Mutex<Faults>>,
}

type Out<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The name of a kind of request, as Rust prints it.
fn kind(body: &Body) -> String {
    let text = format!("{body:?}");
    text.split('(').next().unwrap_or_default().to_owned()
}

#[tonic::async_trait]
impl GrpcIfrtService for Service {
    async fn get_version(
        &self,
        request: Request<GrpcGetVersionRequest>,
    ) -> Result<Response<GrpcGetVersionResponse>, Status> {
        let wrong = self.faults.lock().unwrap().version;
        match wrong {
            Some(version) => Ok(Response::new(GrpcGetVersionResponse {
                version: Some(version),
            })),
            None => self.real.clone().get_version(request).await,
        }
    }

    type IfrtSessionStream = Out<IfrtResponse>;

    async fn ifrt_session(
        &self,
        request: Request<Streaming<IfrtRequest>>,
    ) -> Result<Response<Self::IfrtSessionStream>, Status> {
        let (metadata, _, mut requests) = request.into_parts();
        let (to_real, from_client) = mpsc::unbounded_channel();
        let mut onward = Request::new(UnboundedReceiverStream::new(from_client));
        *onward.metadata_mut() = metadata;
        let mut responses = self.real.clone().ifrt_session(onward).await?.into_inner();
        let (to_client, from_real) = mpsc::unbounded_channel();
        let faults = Arc::clone(&self.faults);
        faults.lock().unwrap().client = Some(to_client.clone());
        let bodies: Arc<Mutex<HashMap<u64, Body>>> = Arc::default();
        let seen = Arc::clone(&bodies);
        let counted = Arc::clone(&faults);
        tokio::spawn(async move {
            while let Ok(Some(request)) = requests.message().await {
                let op_id = request.request_metadata.as_ref().unwrap().op_id;
                let body = request.request.clone().unwrap();
                *counted
                    .lock()
                    .unwrap()
                    .requests
                    .entry(kind(&body))
                    .or_default() += 1;
                seen.lock().unwrap().insert(op_id, body);
                if to_real.send(request).is_err() {
                    break;
                }
            }
        });
        tokio::spawn(async move {
            while let Ok(Some(response)) = responses.message().await {
                let op_id = response.response_metadata.as_ref().unwrap().op_id;
                let body = bodies.lock().unwrap().remove(&op_id).unwrap();
                let fate = match &mut faults.lock().unwrap().respond {
                    Some(respond) => respond(&body, response),
                    None => Fate::Send(vec![response]),
                };
                let (sent, last) = match fate {
                    Fate::Send(sent) => (sent.into_iter().map(Ok).collect(), false),
                    Fate::End(Ok(())) => (Vec::new(), true),
                    Fate::End(Err(status)) => (vec![Err(status)], true),
                };
                for one in sent {
                    to_client.send(one).unwrap_or_default();
                }
                if last {
                    faults.lock().unwrap().client = None;
                    break;
                }
            }
        });
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(
            from_real,
        ))))
    }

    async fn host_buffer_store(
        &self,
        request: Request<Streaming<GrpcHostBufferStoreRequest>>,
    ) -> Result<Response<GrpcHostBufferStoreResponse>, Status> {
        let fault = self.faults.lock().unwrap().store.clone();
        if let Some(status) = fault {
            return Err(status);
        }
        let (metadata, _, chunks) = request.into_parts();
        let mut onward = Request::new(chunks.map_while(Result::ok));
        *onward.metadata_mut() = metadata;
        self.real.clone().host_buffer_store(onward).await
    }

    type HostBufferLookupStream = Out<GrpcHostBufferLookupResponse>;

    async fn host_buffer_lookup(
        &self,
        request: Request<GrpcHostBufferLookupRequest>,
    ) -> Result<Response<Self::HostBufferLookupStream>, Status> {
        let mut real = self
            .real
            .clone()
            .host_buffer_lookup(request)
            .await?
            .into_inner();
        let mut chunks = Vec::new();
        while let Some(chunk) = real.message().await? {
            chunks.push(chunk);
        }
        let chunks = match &mut self.faults.lock().unwrap().chunks {
            Some(change) => change(chunks),
            None => chunks.into_iter().map(Ok).collect(),
        };
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks))))
    }

    async fn host_buffer_delete(
        &self,
        request: Request<GrpcHostBufferDeleteRequest>,
    ) -> Result<Response<GrpcHostBufferDeleteResponse>, Status> {
        self.real.clone().host_buffer_delete(request).await
    }

    async fn host_buffer_read_from_disk(
        &self,
        _request: Request<GrpcHostBufferReadFromDiskRequest>,
    ) -> Result<Response<GrpcHostBufferReadFromDiskResponse>, Status> {
        Err(Status::unimplemented("there are no files"))
    }
}
