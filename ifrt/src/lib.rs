//! The IFRT contract.

pub mod completion;
pub mod status;

pub use completion::{Completion, Promise};
pub use status::{Code, Result, Status};
