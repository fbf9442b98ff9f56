//! [`LayeredClient`]: a client that observes another one.

mod contract;
mod wrap;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::{Call, Observer, Op};
use crate::array::ArrayRef;
use crate::client::Client;
use crate::completion::Completion;
use crate::status::{Result, Status};

/// A client that hands every operation to another one and shows it to an [`Observer`].
pub struct LayeredClient<O: Observer> {
    this: Weak<Self>,
    inner: Arc<dyn Client>,
    observer: Arc<O>,
    client_id: u64,
    last_id: AtomicU64,
}

impl<O: Observer> LayeredClient<O> {
    /// A layer around `inner`.
    pub fn new(inner: Arc<dyn Client>, observer: O) -> Arc<Self> {
        static LAST_CLIENT_ID: AtomicU64 = AtomicU64::new(0);
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            inner,
            observer: Arc::new(observer),
            client_id: LAST_CLIENT_ID.fetch_add(1, Ordering::Relaxed) + 1,
            last_id: AtomicU64::new(0),
        })
    }

    /// The client below.
    pub const fn inner(&self) -> &Arc<dyn Client> {
        &self.inner
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    pub(super) fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The layer as its values hold it.
    ///
    /// # Errors
    /// INTERNAL if the last reference is just being dropped.
    pub(super) fn arc(&self) -> Result<Arc<Self>> {
        let this = self.this.upgrade();
        this.ok_or_else(|| Status::internal("the layered client is being dropped"))
    }

    pub(super) const fn call<'a>(&self, op: Op, inputs: &'a [u64]) -> Call<'a> {
        Call {
            op,
            client_id: self.client_id,
            inputs,
            executable: None,
            dtype: None,
            shape: None,
            devices: None,
            bytes: None,
        }
    }

    /// An operation that is over when it returns. `wrap` says what came out.
    pub(super) fn observe<T, U>(
        &self,
        call: &Call<'_>,
        run: impl FnOnce() -> Result<T>,
        wrap: impl FnOnce(T) -> Result<(U, Vec<u64>)>,
    ) -> Result<U> {
        let pending = self.observer.begin(call);
        match self.observer.within(&pending, run).and_then(wrap) {
            Ok((made, ids)) => {
                self.observer.end(pending, Ok(&ids));
                Ok(made)
            }
            Err(status) => {
                self.observer.end(pending, Err(&status));
                Err(status)
            }
        }
    }

    /// An operation that gives nothing to wrap.
    pub(super) fn observe_plain<T>(
        &self,
        call: &Call<'_>,
        run: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.observe(call, run, |made| Ok((made, Vec::new())))
    }

    /// An operation that makes arrays.
    pub(super) fn observe_arrays(
        &self,
        call: &Call<'_>,
        run: impl FnOnce() -> Result<Vec<ArrayRef>>,
    ) -> Result<Vec<ArrayRef>> {
        self.observe(call, run, |arrays| self.wrap_arrays(arrays))
    }

    /// An operation that goes on after it has returned.
    pub(super) fn observe_completion<T: 'static>(
        &self,
        call: &Call<'_>,
        run: impl FnOnce() -> Completion<T>,
    ) -> Completion<T> {
        let pending = self.observer.begin(call);
        let completion = self.observer.within(&pending, run);
        let observer = Arc::clone(&self.observer);
        completion.on_ready(move |result| match result {
            Ok(_) => observer.end(pending, Ok(&[])),
            Err(status) => observer.end(pending, Err(status)),
        });
        completion
    }
}

impl<O: Observer> fmt::Debug for LayeredClient<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredClient")
            .field("observer", &self.observer)
            .field("inner", &self.inner)
            .finish()
    }
}
