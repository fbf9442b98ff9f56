//! The user contexts that the server may still name in an error.
//!
//! A request carries the id of the context that it was made in, and the server says once per
//! request when it is done with it. Until then the context is kept, so that an error that names it
//! can be shown with it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ifrt::UserContextRef;
use ifrt::user_context::{TrackedUserContextRef, register};

/// The contexts by id, with the number of requests that carried it.
#[derive(Debug, Default)]
pub(super) struct Contexts(Mutex<HashMap<u64, (u64, TrackedUserContextRef)>>);

impl Contexts {
    /// Notes that a request carries this context. Returns the id to send; 0 stands for none.
    pub(super) fn sent(&self, context: Option<UserContextRef>) -> u64 {
        let Some(context) = context else { return 0 };
        let id = context.id();
        if id == 0 {
            return 0;
        }
        if let Some((count, _)) = self.lock().get_mut(&id) {
            *count = count.saturating_add(1);
            return id;
        }
        let tracked = register(context);
        let mut contexts = self.lock();
        let entry = contexts.entry(id);
        let (count, _) = entry.or_insert_with(|| (0, tracked));
        *count = count.saturating_add(1);
        id
    }

    /// The server is done with these, each for one request. Ids that were never sent are ignored.
    pub(super) fn destroyed(&self, ids: &[u64]) {
        for id in ids {
            let mut contexts = self.lock();
            let gone = match contexts.get_mut(id) {
                Some((count, _)) if *count > 1 => {
                    *count -= 1;
                    None
                }
                Some(_) => contexts.remove(id),
                None => None,
            };
            drop(contexts);
            // The drop of a context is code of the user.
            drop(gone);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (u64, TrackedUserContextRef)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
