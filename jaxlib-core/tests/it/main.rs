//! Tests of the public surface, over the runtime in host memory of `ifrt::fake` and over the CPU
//! plugin.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stop the test when something is not as it must be"
)]

mod call;
mod deletion;
mod export;
mod golden;
mod laws;
mod logs;
mod model;
mod put;
mod races;
mod support;
mod witness;
