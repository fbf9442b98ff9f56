//! [`Status`]: the one error type at and below `jaxlib-core`.
//!
//! A status is a canonical [`Code`], a message and optional payloads (byte strings under a URL).
//! It is a cheap clone, because one failure is often handed to many receivers: every completion of
//! one operation, every output that a failed execution poisons.
//!
//! The texts of some errors are matched by clients, so a status is never wrapped in the text of
//! another one. Context is appended with [`Status::annotate`], which keeps the start as it was.

mod code;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

pub use code::Code;

/// The result type of this workspace; the error is a [`Status`] unless said otherwise.
pub type Result<T, E = Status> = std::result::Result<T, E>;

/// Payload key of [`Status::from_wire`] for a code number that no [`Code`] stands for.
pub const UNKNOWN_CODE_PAYLOAD: &str = "ifrt.unknown_code";

/// An error: code, message and payloads.
///
/// `Display` is `CODE_NAME: message`, the form that JAX shows and that its tests match.
///
/// # Examples
/// ```
/// use ifrt::status::{Code, Status};
/// let status = Status::new(Code::NotFound, "Unknown array handle: 7");
/// assert_eq!(status.to_string(), "NOT_FOUND: Unknown array handle: 7");
/// ```
#[derive(Clone)]
pub struct Status(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    code: Code,
    message: Box<str>,
    payloads: BTreeMap<Box<str>, Bytes>,
}

impl Status {
    /// A status without payloads.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            code,
            message: message.into().into_boxed_str(),
            payloads: BTreeMap::new(),
        }))
    }

    /// The status for a code number from outside (wire, plugin); `None` if the number is OK.
    ///
    /// An unknown number becomes [`Code::Unknown`] and is kept as text in a payload.
    pub fn from_wire(code: i32, message: impl Into<String>) -> Option<Self> {
        if code == 0 {
            return None;
        }
        Some(match Code::from_number(code) {
            Some(known) => Self::new(known, message),
            None => Self::new(Code::Unknown, message)
                .with_payload(UNKNOWN_CODE_PAYLOAD, code.to_string().into_bytes()),
        })
    }

    /// The canonical code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The message, without the name of the code.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Payloads in the order of their keys.
    pub fn payloads(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.0.payloads.iter().map(|(key, value)| (&**key, value))
    }

    /// The payload under `key`.
    pub fn payload(&self, key: &str) -> Option<&Bytes> {
        self.0.payloads.get(key)
    }

    /// The same status with a payload set or replaced.
    #[must_use]
    pub fn with_payload(mut self, key: impl Into<String>, value: impl Into<Bytes>) -> Self {
        Arc::make_mut(&mut self.0)
            .payloads
            .insert(key.into().into_boxed_str(), value.into());
        self
    }

    /// The same status without the payload under `key`.
    #[must_use]
    pub fn without_payload(mut self, key: &str) -> Self {
        if self.0.payloads.contains_key(key) {
            Arc::make_mut(&mut self.0).payloads.remove(key);
        }
        self
    }

    /// The same code and payloads with another message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).message = message.into().into_boxed_str();
        self
    }

    /// The same status with `; context` appended to its message.
    #[must_use]
    pub fn annotate(mut self, context: impl fmt::Display) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        inner.message = format!("{}; {context}", inner.message).into_boxed_str();
        self
    }

    /// The same payloads and message under another code.
    #[must_use]
    pub fn with_code(mut self, code: Code) -> Self {
        Arc::make_mut(&mut self.0).code = code;
        self
    }
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $code:ident;)*) => {
        /// One constructor per code, named after it.
        impl Status {
            $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Self {
                Self::new(Code::$code, message)
            })*
        }
    };
}

constructors! {
    /// The operation was cancelled.
    cancelled => Cancelled;
    /// The cause is not known.
    unknown => Unknown;
    /// The caller broke a documented rule.
    invalid_argument => InvalidArgument;
    /// The deadline passed first.
    deadline_exceeded => DeadlineExceeded;
    /// What was asked for does not exist.
    not_found => NotFound;
    /// What was to be made exists.
    already_exists => AlreadyExists;
    /// The caller may not do this.
    permission_denied => PermissionDenied;
    /// A configured or physical limit was reached.
    resource_exhausted => ResourceExhausted;
    /// The object is in the wrong state.
    failed_precondition => FailedPrecondition;
    /// The operation was given up, for example because of a concurrent one.
    aborted => Aborted;
    /// An index or position lies outside its range.
    out_of_range => OutOfRange;
    /// This runtime does not offer the operation.
    unimplemented => Unimplemented;
    /// An invariant of the runtime is broken.
    internal => Internal;
    /// The runtime cannot be reached now.
    unavailable => Unavailable;
    /// Data is lost or damaged.
    data_loss => DataLoss;
    /// The caller is not known.
    unauthenticated => Unauthenticated;
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Status");
        out.field("code", &self.0.code)
            .field("message", &self.0.message);
        if !self.0.payloads.is_empty() {
            out.field("payloads", &self.0.payloads.keys().collect::<Vec<_>>());
        }
        out.finish()
    }
}

impl PartialEq for Status {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.code == other.0.code
                && self.0.message == other.0.message
                && self.0.payloads == other.0.payloads)
    }
}

impl Eq for Status {}

impl std::error::Error for Status {}

/// Bytes that are not the message they should be: the sender made a mistake.
impl From<prost::DecodeError> for Status {
    fn from(error: prost::DecodeError) -> Self {
        Self::invalid_argument(format!("malformed protocol buffer: {error}"))
    }
}

#[cfg(test)]
mod tests;
