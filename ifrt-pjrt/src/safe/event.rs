//! [`Event`]: the C API's promise that something will be ready.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ifrt::{Completion, Result, Status};

use super::api::Api;
use super::error;
use super::handle::Handle;
use crate::sys;
use crate::sys::api::{EventDestroy, EventError, EventIsReady, EventOnReady};
use crate::sys::status::{EventDestroyArgs, EventErrorArgs, EventIsReadyArgs, EventOnReadyArgs};

/// An event of a plugin. Destroyed on drop, which forgets no callback.
#[derive(Debug)]
pub(crate) struct Event {
    api: &'static Api,
    raw: Handle<sys::Event>,
}

impl Event {
    /// Takes an event that a call gave; `None` if it gave none.
    pub(super) fn from_raw(api: &'static Api, raw: *mut sys::Event) -> Option<Self> {
        Handle::new_opt(raw).map(|raw| Self { api, raw })
    }

    fn peek(&self) -> Peek {
        let mut args = EventIsReadyArgs {
            event: self.raw.as_ptr(),
            ..EventIsReadyArgs::NEW
        };
        // SAFETY: S3 and S8.
        if let Err(status) = unsafe { self.api.call::<EventIsReady>(&mut args) } {
            return Peek::Unknown(status);
        }
        if !args.is_ready.get() {
            return Peek::Pending;
        }
        let mut args = EventErrorArgs {
            event: self.raw.as_ptr(),
            ..EventErrorArgs::NEW
        };
        // SAFETY: S3 and S8; the event has just said that it is ready, and stays so.
        Peek::Ready(unsafe { self.api.call::<EventError>(&mut args) })
    }

    /// Keeps `kept` until the event is ready and calls `f` once: with `kept`, or with the error of
    /// the event after `kept` was dropped. Calls now if the event is ready, else on a thread of the
    /// plugin.
    ///
    /// If the plugin cannot tell whether the event is ready, `kept` may be memory that it still
    /// uses, so it is leaked (S11).
    ///
    /// `f` must not block, and must not wait for the client to go: the thread belongs to the pool
    /// that would do the work.
    pub(crate) fn on_ready<T, F>(self, kept: T, f: F)
    where
        T: Send + 'static,
        F: FnOnce(Result<T>) + Send + 'static,
    {
        match self.peek() {
            Peek::Ready(result) => return f(result.map(|()| kept)),
            Peek::Unknown(status) => return leak_and_fail(kept, f, status),
            Peek::Pending => {}
        }
        let state = Box::into_raw(Box::new(Callback {
            api: self.api,
            kept,
            f,
        }));
        let mut args = EventOnReadyArgs {
            event: self.raw.as_ptr(),
            callback: Some(Callback::<T, F>::run),
            user_arg: state.cast(),
            ..EventOnReadyArgs::NEW
        };
        // SAFETY: S3, S8 and S10.
        if let Err(status) = unsafe { self.api.call::<EventOnReady>(&mut args) } {
            // SAFETY: S10; the registration failed, so C has not kept the pointer.
            let state = unsafe { Box::from_raw(state) };
            leak_and_fail(state.kept, state.f, status);
        }
    }

    /// A completion of the event.
    pub(crate) fn into_completion(self) -> Completion {
        match self.peek() {
            Peek::Ready(result) => Completion::ready(result),
            Peek::Unknown(status) => Completion::ready(Err(status)),
            Peek::Pending => {
                let (promise, completion) = Completion::pair();
                self.on_ready((), move |result| promise.set(result));
                completion
            }
        }
    }
}

/// What an event says now.
enum Peek {
    Pending,
    Ready(Result<()>),
    /// The plugin failed to answer.
    Unknown(Status),
}

fn leak_and_fail<T: 'static>(kept: T, f: impl FnOnce(Result<T>), status: Status) {
    let _kept: &'static T = Box::leak(Box::new(kept));
    f(Err(status));
}

impl Drop for Event {
    fn drop(&mut self) {
        let mut args = EventDestroyArgs {
            event: self.raw.as_ptr(),
            ..EventDestroyArgs::NEW
        };
        // SAFETY: S3 and S8.
        if let Err(status) = unsafe { self.api.call::<EventDestroy>(&mut args) } {
            tracing::warn!(%status, "an event cannot be destroyed");
        }
    }
}

/// What C keeps until an event is ready.
struct Callback<T, F> {
    api: &'static Api,
    kept: T,
    f: F,
}

impl<T: Send + 'static, F: FnOnce(Result<T>) + Send + 'static> Callback<T, F> {
    unsafe extern "C" fn run(error: *mut sys::Error, state: *mut c_void) {
        // SAFETY: S10; C calls back once, with the pointer that `on_ready` gave it.
        let state = unsafe { Box::from_raw(state.cast::<Self>()) };
        let run = AssertUnwindSafe(move || {
            let Self { api, kept, f } = *state;
            f(error::check(api, error).map(|()| kept));
        });
        // An unwinding panic must not reach C. What `f` owned is dropped by the unwinding, and a
        // promise among it fails its completion.
        if catch_unwind(run).is_err() {
            tracing::error!("a callback of an event panicked");
        }
    }
}

/// A completion of an event that may be missing, which means that there is nothing to wait for.
pub(crate) fn completion_of(event: Option<Event>) -> Completion {
    event.map_or_else(Completion::done, Event::into_completion)
}

/// The error for an output that a plugin should have filled.
pub(super) fn missing(function: &str, what: &str) -> Status {
    Status::internal(format!("{function} succeeded but gave no {what}"))
}
