//! [`UserContext`]: where in the user's program an operation came from.
//!
//! A context is captured when a value is made, so that an error which shows up much later can name
//! the line that caused it. The context of the running operation stands in a thread-local stack.
//!
//! Errors carry the id of a context ([`attach_ref`]). Whoever shows an error to people lets
//! [`expand`] put the text of the context in its place.
//!
//! # Mirrors
//! `xla/python/ifrt/user_context.h`.

mod kinds;
mod on_status;
mod registry;

use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::Arc;

pub use kinds::{AnnotatedUserContext, BasicUserContext, ChainedUserContext, FusedUserContext};
pub use on_status::{
    StatusExpander, attach_id, attach_ref, expand, reattach_refs, register_expander,
};
pub use registry::{TrackedUserContext, TrackedUserContextRef, lookup, lookup_all, register};

/// Payload key under which a status names the context that caused it, as decimal text.
pub const USER_CONTEXT_PAYLOAD: &str = "type.googleapis.com/ifrt.UserContext";

/// A shared [`UserContext`].
pub type UserContextRef = Arc<dyn UserContext>;

/// A place in the user's program.
pub trait UserContext: Send + Sync + Debug {
    /// The number of the context, unique in the whole system.
    fn id(&self) -> u64;

    /// The place in words, for example a traceback; may be expensive.
    fn debug_string(&self) -> String;
}

thread_local! {
    static CURRENT: RefCell<Vec<Option<UserContextRef>>> = const { RefCell::new(Vec::new()) };
}

/// The context of the running operation.
pub fn current() -> Option<UserContextRef> {
    // A thread that ends drops what it holds, and some of that makes calls. There is no context then.
    let current = CURRENT.try_with(|stack| stack.borrow().last().cloned().flatten());
    current.ok().flatten()
}

/// Makes `context` the current one until the guard is dropped.
pub fn scope(context: Option<UserContextRef>) -> UserContextScope {
    // On a thread that ends there is nobody to see the context.
    CURRENT
        .try_with(|stack| stack.borrow_mut().push(context))
        .unwrap_or_default();
    UserContextScope {
        _not_send: std::marker::PhantomData,
    }
}

/// Restores the context that was current before [`scope`].
#[derive(Debug)]
#[must_use = "the scope ends when the guard is dropped"]
pub struct UserContextScope {
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Drop for UserContextScope {
    fn drop(&mut self) {
        // The context is dropped outside of the borrow, because its drop is code of the user.
        let context = CURRENT.try_with(|stack| stack.borrow_mut().pop());
        drop(context);
    }
}

/// `f` made to run under `context` wherever and whenever it is called, for example as a callback.
///
/// # Mirrors
/// `WithUserContext`.
pub fn with_user_context<A, R>(
    context: Option<UserContextRef>,
    f: impl Fn(A) -> R + Clone,
) -> impl Fn(A) -> R + Clone {
    move |argument| {
        let _scope = scope(context.clone());
        f(argument)
    }
}

/// As [`with_user_context`], for a callback that runs once.
pub fn with_user_context_once<A, R>(
    context: Option<UserContextRef>,
    f: impl FnOnce(A) -> R,
) -> impl FnOnce(A) -> R {
    move |argument| {
        let _scope = scope(context);
        f(argument)
    }
}

/// `f` made to run under the context that is current now.
///
/// # Mirrors
/// `WithCurrentUserContext`.
pub fn with_current_user_context<A, R>(f: impl Fn(A) -> R + Clone) -> impl Fn(A) -> R + Clone {
    with_user_context(current(), f)
}

/// As [`with_current_user_context`], for a callback that runs once.
pub fn with_current_user_context_once<A, R>(f: impl FnOnce(A) -> R) -> impl FnOnce(A) -> R {
    with_user_context_once(current(), f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Numbered(u64);

    impl UserContext for Numbered {
        fn id(&self) -> u64 {
            self.0
        }
        fn debug_string(&self) -> String {
            format!("Numbered({})", self.0)
        }
    }

    #[test]
    fn scopes_nest_and_restore() {
        let id = || current().map(|context| context.id());
        assert_eq!(id(), None);
        let outer = scope(Some(Arc::new(Numbered(1))));
        {
            let _inner = scope(Some(Arc::new(Numbered(2))));
            assert_eq!(id(), Some(2));
            let _none = scope(None);
            assert_eq!(id(), None);
        }
        assert_eq!(id(), Some(1));
        assert_eq!(
            std::thread::spawn(|| current().is_none()).join().ok(),
            Some(true)
        );
        drop(outer);
        assert_eq!(id(), None);
    }
}
