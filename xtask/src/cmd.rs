//! One module per command.

pub(crate) mod codegen;
pub(crate) mod setup;
