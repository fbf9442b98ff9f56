//! The crate on a real plugin: the CPU plugin of `cargo xtask setup`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests fail like tests"
)]

mod bad_input;
mod create;
mod deletion;
mod donation;
mod faults;
#[cfg(feature = "lapack")]
mod ffi;
mod host;
mod plugin;
mod rearrange;
mod reshard;
mod run;
mod serialized;
mod spmd;
mod support;
