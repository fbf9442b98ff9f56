//! Cancellation of runs that the fault plan holds back.

use std::sync::{Arc, Mutex, PoisonError};

use crate::completion::{Completion, Promise};
use crate::executable::CancellationHandle;
use crate::status::{Result, Status};

/// The promise to begin a run, until it is kept by the fault plan or by a cancellation.
struct Pending(Mutex<Option<Promise>>);

impl Pending {
    fn settle(&self, result: Result<()>) {
        let promise = {
            let mut promise = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            promise.take()
        };
        if let Some(promise) = promise {
            promise.set(result);
        }
    }
}

/// The permit, and the handle to cancel it with; none if the run begins at once.
pub(super) fn cancellable(permit: &Completion) -> (Completion, Option<CancellationHandle>) {
    if permit.is_ready() {
        return (permit.clone(), None);
    }
    let (promise, either) = Completion::pair();
    let pending = Arc::new(Pending(Mutex::new(Some(promise))));
    let granted = Arc::clone(&pending);
    permit.on_ready(move |result| granted.settle(result.clone()));
    (either, Some(CancellationHandle::new(pending)))
}

/// Fails a run that has not begun; the outputs become ready with `error`. Otherwise does nothing.
pub(in crate::fake) fn cancel(handle: &CancellationHandle, error: Status) {
    if let Some(pending) = handle.downcast::<Pending>() {
        pending.settle(Err(error));
    }
}
