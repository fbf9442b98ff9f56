//! One module per command.

pub(crate) mod ci;
pub(crate) mod codegen;
pub(crate) mod conformance;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod jax_tests;
pub(crate) mod mutants;
pub(crate) mod serve;
pub(crate) mod setup;
pub(crate) mod test;
pub(crate) mod tidy;
