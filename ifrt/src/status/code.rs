//! The canonical status codes.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal;)*) => {
        /// A canonical error code. There is no `Ok`: success is `Result::Ok`.
        ///
        /// The numbers are those of absl, gRPC, PJRT and `tensorflow.error.Code` alike. The list
        /// is closed by those standards, so the enum is exhaustive.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i32)]
        #[allow(clippy::exhaustive_enums, reason = "closed by an outside standard")]
        pub enum Code {
            $($(#[$doc])* $variant = $number,)*
        }

        impl Code {
            /// Every code, in the order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code with this number; `None` for 0 (OK) and for unknown numbers.
            pub const fn from_number(number: i32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The name in capitals, for example `INVALID_ARGUMENT`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

codes! {
    /// The operation was cancelled.
    Cancelled = 1, "CANCELLED";
    /// The cause is not known.
    Unknown = 2, "UNKNOWN";
    /// The caller broke a documented rule.
    InvalidArgument = 3, "INVALID_ARGUMENT";
    /// The deadline passed first.
    DeadlineExceeded = 4, "DEADLINE_EXCEEDED";
    /// What was asked for does not exist.
    NotFound = 5, "NOT_FOUND";
    /// What was to be made exists.
    AlreadyExists = 6, "ALREADY_EXISTS";
    /// The caller may not do this.
    PermissionDenied = 7, "PERMISSION_DENIED";
    /// A configured or physical limit was reached.
    ResourceExhausted = 8, "RESOURCE_EXHAUSTED";
    /// The object is in the wrong state.
    FailedPrecondition = 9, "FAILED_PRECONDITION";
    /// The operation was given up.
    Aborted = 10, "ABORTED";
    /// An index or position lies outside its range.
    OutOfRange = 11, "OUT_OF_RANGE";
    /// The runtime does not offer the operation.
    Unimplemented = 12, "UNIMPLEMENTED";
    /// An invariant of the runtime is broken.
    Internal = 13, "INTERNAL";
    /// The runtime cannot be reached now.
    Unavailable = 14, "UNAVAILABLE";
    /// Data is lost or damaged.
    DataLoss = 15, "DATA_LOSS";
    /// The caller is not known.
    Unauthenticated = 16, "UNAUTHENTICATED";
}

impl Code {
    /// The number of the code, 1 to 16.
    pub const fn number(self) -> i32 {
        self as i32
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
