//! The server over the fake runtime, spoken to with the generated client.
//!
//! Every wait has a deadline, so a hang is a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests fail as tests do"
)]

mod support;

mod admission;
mod arrays;
#[cfg(feature = "bin")]
mod binary;
mod bursts;
mod chaos;
mod contexts;
mod corpus;
mod deletion;
mod errors;
mod executables;
mod far;
mod handshake;
mod host_buffers;
mod init;
mod isolation;
mod noise;
mod rearrange;
mod refusals;
mod sessions;
mod shared_directory;
mod shutdown;
mod tls;
mod unix_socket;
