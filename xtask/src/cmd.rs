//! One module per command.

pub(crate) mod codegen;
pub(crate) mod demo;
pub(crate) mod serve;
pub(crate) mod setup;
pub(crate) mod tidy;
