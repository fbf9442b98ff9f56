//! One session: everything that one client has on the server.
//!
//! Requests arrive in the order in which the client wrote them, and their effects on the handle
//! tables and the runtime happen in that order, on the worker thread of the session. The worker
//! never waits for work to be done: what has to wait is answered by the completion that it waits
//! for. The one exception is a host buffer whose bytes have not arrived yet.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/server/ifrt_backend.cc`, `server/grpc_service_impl.cc`.

pub(crate) mod context;
pub(crate) mod deleter;
pub(crate) mod host_buffers;
pub(crate) mod reply;
pub(crate) mod tables;
mod upload;
mod worker;

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc as std_mpsc};

use ifrt::serdes::SerDesVersion;
use ifrt::{Client, Result, Status, user_context};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use crate::proto::xla::ifrt::proxy::IfrtRequest;
use crate::proto::xla::ifrt::proxy::ifrt_response::Response;
use crate::server::limits::Limits;
use crate::server::shared_directory::SharedDirectory;
use crate::token::Token;
use crate::version::{FETCH_EXECUTE_RESULT, Version};
use context::{ContextRef, EndedContexts, Failure, Outcome, RequestContext};
use deleter::{Deleter, Doomed, dispose};
use host_buffers::HostBuffers;
use reply::{Outgoing, Reply, Responder};
use tables::{FutureKind, Tables};

/// What all sessions of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) client: Arc<dyn Client>,
    /// The name of the platform to tell clients, if not that of the runtime.
    pub(crate) platform_name: Option<String>,
    pub(crate) limits: Limits,
    /// What a client must show, if anything.
    pub(crate) token: Option<Token>,
    /// Where clients on this machine leave large uploads.
    pub(crate) directory: Option<SharedDirectory>,
}

/// A request on its way to the worker, with the room that it takes in the queue.
#[derive(Debug)]
pub(crate) struct Queued {
    request: IfrtRequest,
    room: OwnedSemaphorePermit,
}

/// The receiving ends of a new session.
#[derive(Debug)]
pub(crate) struct SessionEnds {
    /// What is to be sent to the client.
    pub(crate) responses: mpsc::UnboundedReceiver<Outgoing>,
    /// Where requests go.
    pub(crate) requests: Inbox,
}

/// Where the requests of a client go; the session's worker takes them out in order.
#[derive(Debug)]
pub(crate) struct Inbox {
    queue: std_mpsc::Sender<Queued>,
    room: Arc<Semaphore>,
    total_room: u32,
}

/// The queue is measured in units of so many bytes.
const ROOM_UNIT_BYTES: usize = 1024;

impl Inbox {
    /// Queues a request of `size_bytes`, as soon as there is room for it. False if the session
    /// has no worker any more.
    pub(crate) async fn push(&self, request: IfrtRequest, size_bytes: usize) -> bool {
        // A request larger than the whole queue waits until it is alone.
        let units = u32::try_from(size_bytes / ROOM_UNIT_BYTES + 1)
            .unwrap_or(u32::MAX)
            .min(self.total_room);
        match Arc::clone(&self.room).acquire_many_owned(units).await {
            Ok(room) => self.queue.send(Queued { request, room }).is_ok(),
            Err(_closed) => false,
        }
    }
}

/// Everything that one client has on the server.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its place in the order of all sessions, for the log.
    pub(crate) number: u64,
    /// The id by which its client names it. Whoever knows it reaches the host buffers.
    pub(crate) secret: u64,
    pub(crate) version: Version,
    /// Where this client leaves large uploads.
    pub(crate) shared_directory: Option<SharedDirectory>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) tables: Tables,
    pub(crate) host_buffers: Arc<HostBuffers>,
    pub(crate) deleter: Deleter,
    responder: Arc<Responder>,
    ended_contexts: Arc<EndedContexts>,
    background: Handle,
    ending: AtomicBool,
    ended: watch::Sender<bool>,
}

impl Session {
    /// Starts a session and its threads.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub(crate) fn start(
        number: u64,
        secret: u64,
        version: Version,
        shared_directory: Option<SharedDirectory>,
        shared: &Arc<Shared>,
        background: Handle,
    ) -> io::Result<(Arc<Self>, SessionEnds)> {
        let (sender, responses) = mpsc::unbounded_channel();
        let ended_contexts = Arc::new(EndedContexts::default());
        let session = Arc::new(Self {
            number,
            secret,
            version,
            shared_directory,
            shared: Arc::clone(shared),
            tables: Tables::new(),
            host_buffers: HostBuffers::new(shared.limits.max_host_buffer_bytes),
            deleter: Deleter::start(number)?,
            responder: Responder::new(sender, Arc::clone(&ended_contexts)),
            ended_contexts,
            background,
            ending: AtomicBool::new(false),
            ended: watch::Sender::new(false),
        });
        let (queue, requests) = std_mpsc::channel();
        if let Err(error) = worker::start(&session, requests) {
            drop(session.deleter.end());
            return Err(error);
        }
        let total_room = u32::try_from(shared.limits.max_pending_request_bytes / ROOM_UNIT_BYTES)
            .unwrap_or(u32::MAX)
            .clamp(1, u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        let requests = Inbox {
            queue,
            room: Arc::new(Semaphore::new(
                usize::try_from(total_room).unwrap_or(usize::MAX),
            )),
            total_room,
        };
        Ok((
            session,
            SessionEnds {
                responses,
                requests,
            },
        ))
    }

    /// The runtime.
    pub(crate) fn client(&self) -> &dyn Client {
        &*self.shared.client
    }

    /// The version of the values in responses.
    pub(crate) fn serdes(&self) -> SerDesVersion {
        SerDesVersion::new(self.version.serdes).unwrap_or(SerDesVersion::MINIMUM)
    }

    /// Where the client looks for the status of an execution.
    pub(crate) const fn execute_status_kind(&self) -> FutureKind {
        if self.version.protocol >= FETCH_EXECUTE_RESULT {
            FutureKind::ExecuteResult
        } else {
            FutureKind::Future
        }
    }

    /// True from the first call of [`Session::end`].
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// Completes when the session ends.
    pub(crate) fn until_end(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut ended = self.ended.subscribe();
        async move {
            // An error means that the session itself is gone.
            drop(ended.wait_for(|ended| *ended).await);
        }
    }

    /// Ends the session: waits of the worker end, the client's stream ends with `reason`, and
    /// everything that the client had is freed in the background. `freed` runs after that.
    ///
    /// Only the first call does anything.
    pub(crate) fn end(self: &Arc<Self>, reason: Result<()>, freed: impl FnOnce() + Send + 'static) {
        if self.ending.swap(true, Ordering::AcqRel) {
            return;
        }
        self.ended.send_replace(true);
        self.responder.end(reason);
        let session = Arc::clone(self);
        drop(self.background.spawn_blocking(move || {
            session.free();
            freed();
        }));
    }

    fn free(&self) {
        let buffers = self.host_buffers.end();
        let remains = self.tables.close();
        let unfinished = self.deleter.end();
        let counts = (
            remains.arrays.len(),
            remains.executables.len(),
            buffers.len(),
        );
        // The deletion thread may be stuck in the runtime, so its queue is emptied here.
        let doomed = unfinished
            .into_iter()
            .map(|item| match item {
                Doomed::Delete(array) => Doomed::Array(array),
                other => other,
            })
            .chain(remains.arrays.into_iter().map(Doomed::Array))
            .chain(remains.executables.into_iter().map(Doomed::Executable))
            .chain(buffers.into_iter().map(Doomed::HostBuffer));
        for item in doomed {
            dispose(item);
        }
        tracing::info!(
            "session {} ended: freed {} arrays, {} executables, {} host buffers",
            self.number,
            counts.0,
            counts.1,
            counts.2
        );
    }
}

/// A request while it is handled: whose it is and where in the user's program it came from.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) session: Arc<Session>,
    pub(crate) context: Option<ContextRef>,
}

impl Call {
    /// The runtime.
    pub(crate) fn client(&self) -> &dyn Client {
        self.session.client()
    }

    /// Runs work that may take a while on another thread, and sends what comes of it.
    pub(crate) fn in_background(
        &self,
        reply: Reply,
        work: impl FnOnce(&Self) -> Outcome<Response> + Send + 'static,
    ) {
        let call = self.clone();
        drop(self.session.background.spawn_blocking(move || {
            let outcome = call.isolated(|| work(&call));
            reply.send(outcome);
        }));
    }

    /// Runs `work` with the user context of the request, and turns a panic into an error.
    pub(crate) fn isolated<T>(&self, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let _scope = user_context::scope(RequestContext::to_user_context(self.context.as_ref()));
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(outcome) => outcome,
            Err(panic) => {
                let text = panic_text(&*panic);
                tracing::error!(session = self.session.number, "a handler panicked: {text}");
                Err(Failure::from(Status::internal(format!(
                    "the server panicked while it handled this request: {text}"
                ))))
            }
        }
    }
}

/// What a panic says.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "no message"
    }
}
