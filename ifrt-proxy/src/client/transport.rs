//! From an address to a session.
//!
//! There are two connections, each on a thread of its own: one for the requests and responses of the
//! session, one for the contents of arrays.
//!
//! Proxies that the environment names are not used: neither this crate nor the transport below reads
//! such variables.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client/registry.cc`, `py_module.cc`, `grpc_client.cc`.

use std::sync::{Arc, mpsc};

use ifrt::serdes::{SerDesVersion, attribute_map_to_proto};
use ifrt::{Code, Result, Status};
use prost::Message;
use tonic::Streaming;
use tonic::metadata::BinaryMetadataValue;
use tonic::transport::{Channel, Endpoint};

use super::address;
use super::dial::Dialer;
use super::io_thread::IoThread;
use super::options::{ClientOptions, Settings};
use super::response::body;
use super::session::{Outgoing, Session};
use crate::metadata_keys::SESSION_METADATA;
use crate::proto::xla::ifrt::proxy::grpc_ifrt_service_client::GrpcIfrtServiceClient;
use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use crate::proto::xla::ifrt::proxy::{
    GrpcGetVersionRequest, GrpcIfrtSessionMetadata, IfrtProxyVersion, IfrtResponse, InitRequest,
    InitResponse,
};
use crate::token::Token;
use crate::version::{Version, from_wire};

/// The bytes that the server may send on one stream before they have been read.
const STREAM_WINDOW_BYTES: u32 = 8 << 20;

/// The same for all streams of a connection. HTTP/2 charges small unread messages against half of
/// it, so it is many times the window of a stream.
const CONNECTION_WINDOW_BYTES: u32 = 16 * STREAM_WINDOW_BYTES;

/// Large frames halve the cost of bulk transfers.
const MAX_FRAME_BYTES: u32 = 1 << 20;

/// An open session and its transport.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) session: Arc<Session>,
    pub(super) data: Channel,
    /// Kept so that it goes on.
    _control_thread: IoThread,
    pub(super) data_thread: IoThread,
    pub(super) max_message_bytes: usize,
}

/// Opens a session; returns what the server says of itself.
///
/// # Blocking
/// Until the server has answered, at most as long as the options say.
///
/// # Errors
/// INVALID_ARGUMENT for a malformed address; DEADLINE_EXCEEDED if it takes too long; otherwise what
/// the transport or the server says.
pub(super) fn connect(address: &str, options: ClientOptions) -> Result<(Connection, InitResponse)> {
    let target = address::parse(address)?;
    let control_thread = IoThread::start("ifrt-proxy-control")?;
    let data_thread = IoThread::start("ifrt-proxy-data")?;
    let ClientOptions {
        settings,
        on_disconnect,
    } = options;
    let timeout = settings.connect_timeout;
    let max_message_bytes = settings.max_message_bytes;
    let dialer = Dialer::new(
        address,
        endpoint(&target.uri, &settings)?,
        &target,
        &settings,
    )?;
    let (sender, receiver) = mpsc::channel();
    let (thread, data) = (control_thread.id(), data_thread.handle().clone());
    control_thread.handle().spawn(async move {
        let opening = async {
            let data_dialer = dialer.clone();
            let (channel, data) = tokio::join!(
                dialer.dial(),
                // On its own thread, where the connection then lives.
                data.spawn(async move { data_dialer.dial().await })
            );
            let channel = channel.map_err(|error| unreachable_server(&error))?;
            let data = data
                .map_err(|error| Status::internal(format!("connecting stopped: {error}")))?
                .map_err(|error| unreachable_server(&error))?;
            let negotiated = negotiate(channel.clone(), &settings).await?;
            let serdes = SerDesVersion::new(negotiated.serdes)
                .ok_or_else(|| Status::internal("a version without a format was negotiated"))?;
            let session = Arc::new(Session::new(negotiated, serdes, thread));
            let init = open(channel, &session, &settings).await?;
            Ok((session, data, init))
        };
        let opened = match tokio::time::timeout(timeout, opening).await {
            Ok(opened) => opened,
            Err(_elapsed) => Err(Status::deadline_exceeded(format!(
                "the server did not answer within {timeout:?}"
            ))),
        };
        // Whoever waited is gone if this fails.
        sender.send(opened).unwrap_or_default();
    });
    let opened = receiver
        .recv()
        .unwrap_or_else(|_| Err(Status::internal("the thread that connects has stopped")));
    let (session, data, init) = opened.map_err(|status| {
        status.annotate(format_args!(
            "unable to establish a connection to the IFRT proxy server at {address}: check the \
             address and that the server runs"
        ))
    })?;
    session.watch(on_disconnect)?;
    let connection = Connection {
        session,
        data,
        _control_thread: control_thread,
        data_thread,
        max_message_bytes,
    };
    Ok((connection, init))
}

fn endpoint(uri: &str, settings: &Settings) -> Result<Endpoint> {
    let endpoint = Endpoint::from_shared(uri.to_owned())
        .map_err(|error| Status::invalid_argument(format!("{uri}: {}", causes(&error))))?;
    let endpoint = endpoint
        .connect_timeout(settings.connect_timeout)
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(MAX_FRAME_BYTES);
    Ok(match settings.keepalive_interval {
        None => endpoint,
        Some(interval) => endpoint
            .http2_keep_alive_interval(interval)
            .keep_alive_timeout(settings.keepalive_timeout)
            .keep_alive_while_idle(true),
    })
}

/// The version to speak.
async fn negotiate(channel: Channel, settings: &Settings) -> Result<Version> {
    let (min, max) = settings.versions;
    let request = GrpcGetVersionRequest {
        min_version: Some(to_wire(min)),
        max_version: Some(to_wire(max)),
    };
    let answer = GrpcIfrtServiceClient::new(channel)
        .get_version(request)
        .await
        .map_err(|status| from_grpc(&status))?;
    let version = from_wire(answer.into_inner().version.unwrap_or_default());
    let known = (min.protocol..=max.protocol).contains(&version.protocol)
        && (min.serdes..=max.serdes).contains(&version.serdes);
    if !known {
        return Err(Status::failed_precondition(format!(
            "the server wants to speak {version}, but this client speaks protocol {} to {} and \
             serdes {} to {}; use a server of another release",
            min.protocol, max.protocol, min.serdes, max.serdes
        )));
    }
    Ok(version)
}

/// Opens the stream of the session and asks the server what it is.
async fn open(
    channel: Channel,
    session: &Arc<Session>,
    settings: &Settings,
) -> Result<InitResponse> {
    let mut initialization_data = settings.initialization_data.clone();
    if let Some(token) = &settings.token {
        initialization_data.set(Token::ATTRIBUTE, token.secret().clone());
    }
    let metadata = GrpcIfrtSessionMetadata {
        version: Some(to_wire(session.version())),
        initialization_data: Some(attribute_map_to_proto(&initialization_data)),
    };
    // Servers may send nothing, not even headers, before they have a request.
    let init = session.request(Request::InitRequest(InitRequest {}), |response| {
        body!(response, InitResponse)
    });
    let mut request = tonic::Request::new(Outgoing(Arc::clone(session)));
    let value = BinaryMetadataValue::from_bytes(&metadata.encode_to_vec());
    request.metadata_mut().insert_bin(SESSION_METADATA, value);
    let responses = GrpcIfrtServiceClient::new(channel)
        .max_decoding_message_size(settings.max_message_bytes)
        .max_encoding_message_size(usize::MAX)
        .ifrt_session(request)
        .await
        .map_err(|status| from_grpc(&status))?;
    tokio::spawn(hear(Arc::clone(session), responses.into_inner()));
    let flushing = Arc::clone(session);
    tokio::spawn(async move { flushing.flush_by_itself().await });
    let init = init.await?;
    session.set_id(init.session_id);
    Ok(init)
}

/// Takes the responses of the server to whoever waits for them, until there are none any more.
async fn hear(session: Arc<Session>, mut responses: Streaming<IfrtResponse>) {
    let cause = loop {
        match responses.message().await {
            Ok(Some(response)) => {
                if let Err(status) = session.receive(response) {
                    break status;
                }
            }
            Ok(None) => break Status::unavailable("the server ended the session"),
            Err(status) => break from_grpc(&status),
        }
    };
    session.lose(&cause);
}

const fn to_wire(version: Version) -> IfrtProxyVersion {
    IfrtProxyVersion {
        protocol_version: version.protocol,
        ifrt_serdes_version_number: version.serdes,
    }
}

fn unreachable_server(error: &tonic::transport::Error) -> Status {
    Status::unavailable(causes(error))
}

/// The two kinds of codes have the same numbers. The cause of a broken connection is not in the
/// message.
pub(super) fn from_grpc(status: &tonic::Status) -> Status {
    let mut text = status.message().to_owned();
    let cause = std::error::Error::source(status);
    let has_cause = cause.is_some();
    if let Some(source) = cause {
        let cause = causes(source);
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    let status = Status::from_wire(i32::from(status.code()), text.clone())
        .unwrap_or_else(|| Status::new(Code::Unknown, text));
    match status.code() {
        // No words of the server, but of the transport whose connection is gone.
        Code::Cancelled | Code::Unknown if has_cause => Status::unavailable(status.message()),
        _ => status,
    }
}

/// An error with everything that caused it.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
