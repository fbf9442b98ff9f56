//! The messages and the gRPC service of the proxy, as generated from `ifrt-proxy/protos`.
//!
//! The modules are the protocol buffer packages: [`xla::ifrt::proxy`] for requests, responses and
//! the service, [`xla::ifrt::proto`] for small types that several requests share. Everything that
//! they carry from other packages is in `ifrt::proto`.
//!
//! Nothing here validates: a decoded message is still a peer's claim.
//!
//! To change a definition, edit it, describe the change in `VERSION.md` and run
//! `cargo xtask codegen`.
//!
//! # Mirrors
//!
//! `xla/python/ifrt_proxy/common/*.proto`.

#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::restriction,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    rustdoc::all,
    reason = "generated code; the generator decides its style"
)]

include!("proto/gen/mod.rs");

#[cfg(test)]
mod tests;
