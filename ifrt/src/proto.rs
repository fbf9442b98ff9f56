//! The messages of the wire, as generated from the definitions in `ifrt/protos`.
//!
//! The modules are the protocol buffer packages: [`xla`] for what XLA defines (layouts, HLO
//! shardings, compile options), [`xla::ifrt`] for what IFRT defines (the payloads of
//! [`xla::ifrt::Serialized`]), and [`tensorflow`] for the status. The messages of the proxy itself
//! are in the crate `ifrt-proxy`.
//!
//! Nothing here validates: a decoded message is still a peer's claim. What the runtime only passes
//! on is declared as bytes, because a decoder drops the fields that it does not know. Maps are
//! ordered, so that equal messages have equal bytes.
//!
//! To change a definition, edit it and run `cargo xtask codegen`.
//!
//! # Mirrors
//!
//! `xla/python/ifrt/*.proto`, `xla/python/pjrt_ifrt/*.proto`, `xla/xla_data.proto`,
//! `xla/pjrt/proto/*.proto`, `xla/service/hlo.proto`, `xla/tsl/protobuf/*.proto`.

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
