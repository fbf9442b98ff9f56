//! [`Error`]: what can go wrong.

use ifrt::{Code, DType, Status};
use jaxlib_core::{DeadReason, Kind};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong. The texts contain the words that JAX uses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A deleted or donated array was used.
    #[error("{message}")]
    ArrayDeleted {
        /// Its dimensions.
        shape: Vec<usize>,
        /// Its element type.
        dtype: DType,
        /// How it was lost.
        reason: DeadReason,
        /// The words of JAX for the operation.
        message: String,
    },
    /// A dimension cannot be split into equal parts as a sharding asks.
    #[error("{0}")]
    Indivisible(String),
    /// Arguments are on other devices than the program.
    #[error("{0}")]
    IncompatibleDevices(String),
    /// Arguments are not what the program was compiled for.
    #[error("{0}")]
    ArgumentMismatch(String),
    /// An exported function is for other platforms than the one that it is called on.
    #[error("{0}")]
    PlatformMismatch(String),
    /// An exported function is for another number of devices than it is called on.
    #[error("{0}")]
    DeviceCountMismatch(String),
    /// An exported function is called in a way that is not known.
    #[error("{0}")]
    UnsupportedCallingConvention(String),
    /// An exported function has symbolic dimensions, which cannot be given sizes yet.
    #[error("{0}")]
    NeedsShapeRefinement(String),
    /// A guard does not allow a transfer; see [`crate::transfer_guard`].
    #[error("{0}")]
    TransferGuard(String),
    /// A file could not be read.
    #[error("{path}: {message}")]
    File {
        /// The file.
        path: String,
        /// Why.
        message: String,
    },
    /// Data was read as another type than it has.
    #[error("an array of dtype {} cannot be read as {}", found.numpy_name(), asked.numpy_name())]
    DtypeMismatch {
        /// The element type that was asked for.
        asked: DType,
        /// The element type of the array.
        found: DType,
    },
    /// Anything else that a runtime, a compiler or a plugin reports.
    #[error("{0}")]
    Runtime(Status),
}

impl Error {
    /// The canonical code of the error.
    pub fn code(&self) -> Code {
        match self {
            Self::Runtime(status) => status.code(),
            Self::NeedsShapeRefinement(_) => Code::Unimplemented,
            Self::File { .. } => Code::NotFound,
            _ => Code::InvalidArgument,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Runtime(Status::invalid_argument(message))
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let message = || status.message().to_owned();
        match Kind::of(&status) {
            Some(Kind::ArrayDeleted { aval, reason }) => Self::ArrayDeleted {
                shape: aval
                    .shape
                    .dims()
                    .iter()
                    .map(|dim| usize::try_from(*dim).unwrap_or(usize::MAX))
                    .collect(),
                dtype: aval.dtype,
                reason,
                message: message(),
            },
            Some(Kind::Indivisible) => Self::Indivisible(message()),
            Some(Kind::IncompatibleDevices) => Self::IncompatibleDevices(message()),
            Some(Kind::ArgumentMismatch) => Self::ArgumentMismatch(message()),
            Some(Kind::TransferGuard) => Self::TransferGuard(message()),
            Some(Kind::PlatformMismatch) => Self::PlatformMismatch(message()),
            Some(Kind::DeviceCountMismatch) => Self::DeviceCountMismatch(message()),
            Some(Kind::UnsupportedCallingConvention) => {
                Self::UnsupportedCallingConvention(message())
            }
            Some(Kind::NeedsShapeRefinement) => Self::NeedsShapeRefinement(message()),
            _ => Self::Runtime(status),
        }
    }
}
