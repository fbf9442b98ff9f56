//! Tests of the public surface, over the runtime in host memory of `ifrt::fake`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stop the test when something is not as it must be"
)]

mod call;
mod deletion;
mod export;
mod golden;
mod logs;
mod model;
mod put;
mod support;
mod witness;
