//! Tests of the contract on the fake runtime.
//!
//! The names of tests begin with the ids of the conformance list that they stand for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that panics fails its test"
)]

mod arrays;
mod bundle;
mod deletion;
mod domains;
mod execute;
mod ids;
mod layers;
mod mock;
mod plans;
mod serdes;
mod support;
mod tuple;
mod values;
