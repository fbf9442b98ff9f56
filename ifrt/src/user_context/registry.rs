//! The contexts of this process by their ids, as long as somebody holds them.
//!
//! An error that crosses a process or a language carries only the id of its context. Whoever shows
//! the error looks the context up here.
//!
//! # Mirrors
//! `xla/python/ifrt/user_context_registry.h`, `UserContextRegistry`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::UserContextRef;

/// A shared [`TrackedUserContext`].
pub type TrackedUserContextRef = Arc<TrackedUserContext>;

/// A context that can be looked up by its id until the last reference is gone.
pub struct TrackedUserContext {
    context: UserContextRef,
    id: u64,
}

impl TrackedUserContext {
    /// The context.
    pub const fn user_context(&self) -> &UserContextRef {
        &self.context
    }
}

impl fmt::Debug for TrackedUserContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedUserContext")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

static REGISTRY: Mutex<BTreeMap<u64, Weak<TrackedUserContext>>> = Mutex::new(BTreeMap::new());

/// Nothing panics under this lock; no context is dropped or asked under it either, because that
/// may take locks of the user (of the Python interpreter, for example).
fn registry() -> MutexGuard<'static, BTreeMap<u64, Weak<TrackedUserContext>>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a context known until the result and all its clones are dropped.
///
/// A context whose id is known already gives the object that is known.
pub fn register(context: UserContextRef) -> TrackedUserContextRef {
    let id = context.id();
    let tracked = Arc::new(TrackedUserContext { context, id });
    let known = {
        let mut registry = registry();
        let known = registry.get(&id).and_then(Weak::upgrade);
        if known.is_none() {
            registry.insert(id, Arc::downgrade(&tracked));
        }
        known
    };
    known.unwrap_or(tracked)
}

/// The context with this id, if somebody holds it.
pub fn lookup(id: u64) -> Option<TrackedUserContextRef> {
    registry().get(&id).and_then(Weak::upgrade)
}

/// Every context that somebody holds, by id.
pub fn lookup_all() -> Vec<TrackedUserContextRef> {
    registry().values().filter_map(Weak::upgrade).collect()
}

impl Drop for TrackedUserContext {
    fn drop(&mut self) {
        let own: *const Self = self;
        let mut registry = registry();
        // By now the id may belong to a context that was registered after the last reference to
        // this one was gone; or this one was never the known one.
        if registry
            .get(&self.id)
            .is_some_and(|known| std::ptr::eq(known.as_ptr(), own))
        {
            registry.remove(&self.id);
        }
    }
}
