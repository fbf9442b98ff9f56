//! The contexts that programs make of texts and of other contexts.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use super::{UserContext, UserContextRef};

/// A number that no other context has, in this process or elsewhere, as far as chance allows.
fn random_id() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The text of a member, or of its absence.
fn text_of(context: Option<&UserContextRef>) -> String {
    context.map_or_else(
        || "(nullptr user context)".to_owned(),
        |context| context.debug_string(),
    )
}

fn join(contexts: &[Option<UserContextRef>], separator: &str) -> String {
    let texts: Vec<String> = contexts.iter().map(|c| text_of(c.as_ref())).collect();
    texts.join(separator)
}

/// Contexts with a random id that show themselves by that id: their text may be expensive.
macro_rules! context {
    ($name:ident, $self:ident => $text:expr) => {
        impl UserContext for $name {
            fn id(&self) -> u64 {
                self.id
            }

            fn debug_string(&$self) -> String {
                $text
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("id", &self.id)
                    .finish_non_exhaustive()
            }
        }
    };
}

/// A context that is a text.
pub struct BasicUserContext {
    id: u64,
    message: String,
}

impl BasicUserContext {
    /// A context with this text.
    pub fn create(message: impl Into<String>) -> UserContextRef {
        Arc::new(Self {
            id: random_id(),
            message: message.into(),
        })
    }
}

context!(BasicUserContext, self => self.message.clone());

/// A context with a text before or after it.
pub struct AnnotatedUserContext {
    id: u64,
    before: String,
    context: Option<UserContextRef>,
    after: String,
}

impl AnnotatedUserContext {
    /// The context, then the text.
    pub fn after(context: Option<UserContextRef>, message: impl Into<String>) -> UserContextRef {
        Arc::new(Self {
            id: random_id(),
            before: String::new(),
            context,
            after: message.into(),
        })
    }

    /// The text, then the context.
    pub fn before(message: impl Into<String>, context: Option<UserContextRef>) -> UserContextRef {
        Arc::new(Self {
            id: random_id(),
            before: message.into(),
            context,
            after: String::new(),
        })
    }
}

context!(AnnotatedUserContext, self => {
    format!("{}{}{}", self.before, text_of(self.context.as_ref()), self.after)
});

/// Contexts that followed one another, oldest first.
pub struct ChainedUserContext {
    id: u64,
    contexts: Vec<Option<UserContextRef>>,
}

impl ChainedUserContext {
    /// The chain of these contexts, oldest first.
    pub fn create(contexts: impl Into<Vec<Option<UserContextRef>>>) -> UserContextRef {
        Arc::new(Self {
            id: random_id(),
            contexts: contexts.into(),
        })
    }
}

context!(ChainedUserContext, self => join(&self.contexts, "\n\n ->\n\n"));

/// Contexts of things that were made into one.
pub struct FusedUserContext {
    id: u64,
    contexts: Vec<Option<UserContextRef>>,
}

impl FusedUserContext {
    /// The context of something made of things with these contexts.
    pub fn create(contexts: impl Into<Vec<Option<UserContextRef>>>) -> UserContextRef {
        Arc::new(Self {
            id: random_id(),
            contexts: contexts.into(),
        })
    }
}

context!(FusedUserContext, self => {
    format!("Fused user context: {{\n\n{}\n\n}}", join(&self.contexts, "\n\n"))
});
