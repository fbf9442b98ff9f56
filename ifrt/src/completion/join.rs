//! Joining completions.

use std::sync::PoisonError;

use super::sync::atomic::{AtomicUsize, Ordering};
use super::sync::{Arc, Mutex};
use super::{Completion, Promise};
use crate::status::Status;

/// A completion that is ready once **all** of `completions` are, with the first error that arrived.
///
/// An empty list is ready and successful.
///
/// # Mirrors
/// `xla/tsl/concurrency/future.h`, `tsl::JoinFutures`.
pub fn join_all(completions: impl IntoIterator<Item = Completion>) -> Completion {
    let mut completions: Vec<Completion> = completions.into_iter().collect();
    completions.retain(|one| one.peek() != Some(Ok(())));
    match completions.len() {
        0 => return Completion::done(),
        1 => return completions.swap_remove(0),
        _ => {}
    }
    let (promise, joined) = Completion::pair();
    let join = Arc::new(Join {
        left: AtomicUsize::new(completions.len()),
        outcome: Mutex::new((Some(promise), None)),
    });
    for completion in &completions {
        let join = Arc::clone(&join);
        completion.on_ready(move |result| join.arrived(result.as_ref().err()));
    }
    joined
}

struct Join {
    left: AtomicUsize,
    outcome: Mutex<(Option<Promise>, Option<Status>)>,
}

impl Join {
    fn arrived(&self, error: Option<&Status>) {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(error)) = (&outcome.1, error) {
            outcome.1 = Some(error.clone());
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let (promise, error) = (outcome.0.take(), outcome.1.take());
        drop(outcome);
        if let Some(promise) = promise {
            promise.set(error.map_or(Ok(()), Err));
        }
    }
}
