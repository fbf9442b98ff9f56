//! Tests of the public surface: over the runtime in host memory, and over the CPU plugin.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stop the test when something is not as it must be"
)]

mod api;
mod arrays;
mod bad_exports;
#[cfg(feature = "fuzzing")]
mod corpus;
mod executors;
mod plugin;
