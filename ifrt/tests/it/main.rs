//! Tests of the contract on the fake runtime.
//!
//! The names of tests begin with the ids of the conformance list that they stand for.

mod deletion;
mod execute;
mod support;
