//! Owned, thread-safe handles over the C ABI: everything above this module is safe Rust.
//!
//! The module checks **before** every call what a plugin would answer with an abort or a crash:
//! element types, ranks, products of dimensions, devices of another client, options without
//! replicas, buffers that are gone. What is checked where stands in `COVERAGE.md`.
//!
//! What is not here: shardings, arrays of several shards and the traits of [`ifrt`]. A
//! [`Buffer`](buffer::Buffer) is one shard on one device.
//!
//! # Safety arguments
//!
//! Each `unsafe` block holds one operation and cites the arguments that make it sound.
//!
//! - **S1 (table)** A plugin is never unloaded, and an [`Api`](api::Api) lives in a leaked
//!   allocation. Its table, functions and extensions are valid for the life of the process.
//! - **S2 (slot)** A slot is read only if it lies inside the size that its table states, and called
//!   only if it is not NULL. The major version is 0 and the minor at least 57, so the slot holds
//!   the function that [`sys`](crate::sys) declares for it; the slots of extensions are fixed by
//!   the type of the extension.
//! - **S3 (arguments)** An argument struct and everything it points to are locals or borrows of the
//!   caller and outlive the call. Output fields start as NULL or zero.
//! - **S4 (client)** The C client is destroyed on the reaper thread when the last
//!   [`Client`](client::Client) is gone; whoever passes a client, device, memory or executable
//!   handle to C holds one.
//! - **S5 (client-life data)** Devices, memories, their strings and lists belong to the client and
//!   never change. They are copied into owned values while the client is being made.
//! - **S6 (buffer)** A C buffer is used only under a [`Pin`](pin::PinState), and destroyed exactly
//!   once, when it is marked deleted (or its last reference is gone) and no pin is left.
//! - **S7 (executable)** The shell that `GetExecutable` gives borrows from its loaded executable.
//!   Both are in one value, which destroys the shell first; queries run under a reference to it.
//! - **S8 (event)** An event is owned and destroyed once. Its error is asked for only after it said
//!   that it is ready.
//! - **S9 (lent bytes)** A pointer and a length from a plugin are read only if the pointer is not
//!   NULL, within the life that the header states for them, and copied at once. A plugin that lies
//!   about them cannot be defended against.
//! - **S10 (callback state)** The state of a callback is boxed and given to C as a pointer. C calls
//!   back exactly once, also if the event fails or is destroyed early; the callback takes the box
//!   back. If the registration fails, the caller takes it back.
//! - **S11 (host memory)** Host memory that C may use after a call is owned by the callback state
//!   of the event that ends the use.
//! - **S12 (threads)** The C API allows calls from every thread on every object, with the one
//!   exception of external references, of which a buffer has one at a time.
//! - **S13 (exit)** What the process calls when it ends takes nothing, is never unloaded and does not
//!   unwind.

pub(crate) mod api;
pub(crate) mod buffer;
pub(crate) mod bytes;
pub(crate) mod client;
pub(crate) mod dtype;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod executable;
mod exit;
#[cfg(feature = "lapack")]
pub(crate) mod ffi;
pub(crate) mod handle;
pub(crate) mod layout;
pub(crate) mod library;
pub(crate) mod named_value;
pub(crate) mod pin;
pub(crate) mod reaper;
