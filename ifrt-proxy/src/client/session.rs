//! [`Session`]: what is under way between the client and the server.
//!
//! Requests leave in the order in which they are given here, and nobody waits for that. Whoever
//! wants the response leaves a callback, which runs on the control thread.
//!
//! # Deletions
//! What is to be deleted or forgotten is only noted. The next request takes all that is noted along;
//! if there is none, a task does it after [`LINGER`]. So a deletion costs no message of its own while
//! something else is being sent, thousands of deletions are two messages, and an idle client wakes
//! for nothing.
//!
//! # The end
//! A session ends once, for one reason. Then every callback is called with that reason, and everything
//! that is sent later fails with it at once.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client/rpc_helper.cc`, `grpc_client_session.cc`. The reference wakes every
//! 50 µs to look for deletions.

mod doomed;
mod outgoing;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::{self, ThreadId};
use std::time::Duration;

use ifrt::serdes::{SerDesVersion, status_from_proto};
use ifrt::user_context::{self, UserContextRef};
use ifrt::{Completion, Promise, Result, Status};
use tokio::sync::Notify;

use super::contexts::Contexts;
use super::options::DisconnectHook;
use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use crate::proto::xla::ifrt::proxy::ifrt_response::Response;
use crate::proto::xla::ifrt::proxy::{IfrtRequest, IfrtResponse, RequestMetadata};
use crate::version::Version;
use doomed::Doomed;
pub(super) use outgoing::Outgoing;

/// How long a deletion waits for a request that takes it along.
const LINGER: Duration = Duration::from_millis(1);

/// What becomes of a response.
type Callback = Box<dyn FnOnce(Result<Response>) + Send>;

enum Waiter {
    Callback(Callback),
    /// Nobody waits: whatever uses the results fails if the request did.
    Nobody(&'static str),
}

impl Waiter {
    fn call(self, answer: Result<Response>) {
        match (self, answer) {
            (Self::Callback(callback), answer) => callback(answer),
            (Self::Nobody(_), Ok(_)) => {}
            (Self::Nobody(what), Err(status)) => tracing::debug!(%status, "{what} failed"),
        }
    }
}

struct State {
    /// Why the session is over.
    ended: Option<Status>,
    queue: VecDeque<IfrtRequest>,
    /// Of the task that writes the queue, while it sleeps.
    writer: Option<Waker>,
    last_op_id: u64,
    waiters: HashMap<u64, Waiter>,
    doomed: Doomed,
    on_disconnect: Option<DisconnectHook>,
}

/// What is under way between the client and the server.
pub(super) struct Session {
    version: Version,
    serdes: SerDesVersion,
    control_thread: ThreadId,
    id: OnceLock<u64>,
    last_handle: AtomicU64,
    contexts: Contexts,
    state: Mutex<State>,
    /// Something is doomed.
    doom: Notify,
}

impl Session {
    pub(super) fn new(version: Version, serdes: SerDesVersion, control_thread: ThreadId) -> Self {
        Self {
            version,
            serdes,
            control_thread,
            id: OnceLock::new(),
            last_handle: AtomicU64::new(0),
            contexts: Contexts::default(),
            state: Mutex::new(State {
                ended: None,
                queue: VecDeque::new(),
                writer: None,
                last_op_id: 0,
                waiters: HashMap::new(),
                doomed: Doomed::default(),
                on_disconnect: None,
            }),
            doom: Notify::new(),
        }
    }

    pub(super) const fn protocol(&self) -> i32 {
        self.version.protocol
    }

    pub(super) const fn version(&self) -> Version {
        self.version
    }

    pub(super) const fn serdes(&self) -> SerDesVersion {
        self.serdes
    }

    /// The number that the server gave the session; 0 before it did.
    pub(super) fn id(&self) -> u64 {
        self.id.get().copied().unwrap_or_default()
    }

    pub(super) fn set_id(&self, id: u64) {
        self.id.get_or_init(|| id);
    }

    /// A handle that was not used before. Handles of the client are below 2^48, which no client
    /// comes to the end of.
    pub(super) fn new_handle(&self) -> u64 {
        self.last_handle.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sends a request; `callback` gets the response. It runs on the control thread, or here if the
    /// session is over.
    pub(super) fn send(
        &self,
        request: Request,
        callback: impl FnOnce(Result<Response>) + Send + 'static,
    ) {
        let context = user_context::current();
        self.enqueue(request, context, Waiter::Callback(Box::new(callback)));
    }

    /// Sends a request whose response matters to nobody.
    pub(super) fn send_ignored(&self, what: &'static str, request: Request) {
        self.enqueue(request, user_context::current(), Waiter::Nobody(what));
    }

    /// Sends a request. The completion brings what `read` makes of the response.
    pub(super) fn request<T: Send + Sync + 'static>(
        &self,
        request: Request,
        read: impl FnOnce(Response) -> Result<T> + Send + 'static,
    ) -> Completion<T> {
        let (promise, completion): (Promise<T>, _) = Completion::pair();
        self.send(request, move |answer| promise.set(answer.and_then(read)));
        completion
    }

    /// Waits for the response to a request.
    ///
    /// # Errors
    /// Those of the request; FAILED_PRECONDITION on the thread that would have to bring the response.
    pub(super) fn round_trip<T: Clone + Send + Sync + 'static>(
        &self,
        request: Request,
        read: impl FnOnce(Response) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.may_wait()?;
        self.request(request, read).wait()
    }

    /// # Errors
    /// FAILED_PRECONDITION on the thread that brings responses.
    pub(super) fn may_wait(&self) -> Result<()> {
        if thread::current().id() == self.control_thread {
            return Err(Status::failed_precondition(
                "this call waits for the server, so it cannot be made in a callback of a \
                 completion, which runs on the thread that hears the server; make it on another \
                 thread",
            ));
        }
        Ok(())
    }

    fn enqueue(&self, request: Request, context: Option<UserContextRef>, waiter: Waiter) {
        let context = self.contexts.sent(context);
        let mut state = self.lock();
        if let Some(status) = state.ended.clone() {
            drop(state);
            waiter.call(Err(status));
            return;
        }
        state.flush();
        state.push(request, context, waiter);
        let writer = state.writer.take();
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
    }

    /// Deletes an array soon.
    pub(super) fn delete(&self, handle: u64) {
        self.doom(|doomed| doomed.delete(handle));
    }

    /// Forgets an array soon. If its buffers belong to no other array, that deletes it as well.
    pub(super) fn destruct(&self, handle: u64, owns_buffers: bool) {
        self.doom(|doomed| doomed.destruct(handle, owns_buffers));
    }

    fn doom(&self, note: impl FnOnce(&mut Doomed)) {
        let mut state = self.lock();
        if state.ended.is_some() {
            return;
        }
        let is_first = state.doomed.is_empty();
        note(&mut state.doomed);
        drop(state);
        if is_first {
            self.doom.notify_one();
        }
    }

    /// Sends what is doomed if no request takes it along. Runs as long as the session.
    pub(super) async fn flush_by_itself(&self) {
        loop {
            self.doom.notified().await;
            tokio::time::sleep(LINGER).await;
            let mut state = self.lock();
            state.flush();
            let writer = match state.queue.is_empty() {
                true => None,
                false => state.writer.take(),
            };
            drop(state);
            if let Some(writer) = writer {
                writer.wake();
            }
        }
    }

    /// Takes a response to its callback.
    ///
    /// # Errors
    /// INTERNAL if nobody can tell what it is a response to. The session cannot go on then, because
    /// somebody waits for it.
    pub(super) fn receive(&self, response: IfrtResponse) -> Result<()> {
        let metadata = response
            .response_metadata
            .ok_or_else(|| Status::internal("IFRT server sent a message without metadata"))?;
        let status = metadata.status.as_ref().and_then(status_from_proto);
        let answer = match (response.response, status) {
            (Some(response), _) => Ok(response),
            // Before the contexts are let go.
            (None, Some(status)) => Err(user_context::reattach_refs(status)),
            (None, None) => Err(Status::internal(
                "IFRT server sent an OK response with no actual response set",
            )),
        };
        let waiter = self.lock().waiters.remove(&metadata.op_id);
        match waiter {
            Some(waiter) => waiter.call(answer),
            None => tracing::warn!(
                op_id = metadata.op_id,
                "the server answered a request that is not under way"
            ),
        }
        self.contexts
            .destroyed(&metadata.destroyed_user_context_ids);
        Ok(())
    }

    /// Ends the session, unless it is over.
    pub(super) fn lose(&self, cause: &Status) {
        if self.ended().is_some() {
            return;
        }
        let status = Status::unavailable(format!(
            "Connection to IFRT proxy server was terminated: {cause}"
        ));
        let hook = self.end(&status);
        tracing::info!(%cause, "the connection to the server is over");
        let Some(hook) = hook else { return };
        let spawned = thread::Builder::new()
            .name("ifrt-proxy-disconnected".to_owned())
            .spawn(move || hook(status));
        if let Err(error) = spawned {
            tracing::warn!("no thread to call the disconnect hook on: {error}");
        }
    }

    /// Says what to call if the session is lost from now on. Until then nobody has the client.
    ///
    /// # Errors
    /// Why the session is over, if it is.
    pub(super) fn watch(&self, hook: Option<DisconnectHook>) -> Result<()> {
        let mut state = self.lock();
        match &state.ended {
            Some(status) => Err(status.clone()),
            None => {
                state.on_disconnect = hook;
                Ok(())
            }
        }
    }

    /// Ends the session because nobody needs it any more.
    pub(super) fn close(&self) {
        drop(self.end(&Status::unavailable("the client was closed")));
    }

    /// Returns the hook to call, if there is one and the session was not over.
    fn end(&self, status: &Status) -> Option<DisconnectHook> {
        let mut state = self.lock();
        if state.ended.is_some() {
            return None;
        }
        state.ended = Some(status.clone());
        let waiters = std::mem::take(&mut state.waiters);
        let queue = std::mem::take(&mut state.queue);
        state.doomed = Doomed::default();
        let (writer, hook) = (state.writer.take(), state.on_disconnect.take());
        drop(state);
        drop(queue);
        if let Some(writer) = writer {
            writer.wake();
        }
        for waiter in waiters.into_values() {
            waiter.call(Err(status.clone()));
        }
        hook
    }

    /// Why the session is over, if it is.
    pub(super) fn ended(&self) -> Option<Status> {
        self.lock().ended.clone()
    }

    /// No foreign code runs under this lock, so a poisoned one still holds a consistent state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, request: Request, user_context_id: u64, waiter: Waiter) {
        self.last_op_id += 1;
        let op_id = self.last_op_id;
        self.waiters.insert(op_id, waiter);
        self.queue.push_back(IfrtRequest {
            request_metadata: Some(RequestMetadata {
                op_id,
                payloads: Vec::new(),
                user_context_id,
            }),
            request: Some(request),
        });
    }

    fn flush(&mut self) {
        for (what, request) in std::mem::take(&mut self.doomed).into_requests() {
            self.push(request, 0, Waiter::Nobody(what));
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Session")
            .field("id", &self.id())
            .field("version", &self.version)
            .field("ended", &state.ended)
            .field("under_way", &state.waiters.len())
            .finish_non_exhaustive()
    }
}
