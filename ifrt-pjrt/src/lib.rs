//! IFRT over any PJRT plugin.
//!
//! A *plugin* is a shared library with the PJRT C API: the CPU, GPU or TPU runtime of XLA, or that
//! of a hardware vendor. This crate loads one and makes an [`ifrt::Client`] of it:
//!
//! ```no_run
//! use std::path::Path;
//! use ifrt::Client;
//! use ifrt_pjrt::{CreateOptions, PjrtClient};
//!
//! # fn main() -> ifrt::Result<()> {
//! let options = CreateOptions::parse(["cpu_device_count=8"])?;
//! let client = PjrtClient::create(Path::new("pjrt_c_api_cpu_plugin.so"), &options)?;
//! assert_eq!(client.devices().len(), 8);
//! # Ok(())
//! # }
//! ```
//!
//! # Layers
//! - `sys` declares the C ABI.
//! - `safe` owns C objects, checks what plugins would crash on, and is the only place with `unsafe`
//!   code. Its safety arguments are numbered and written down in one place.
//! - The modules above implement the traits of [`ifrt`].
//!
//! # Deletion and threads
//! Every method may be called from every thread. Deleting an array takes a fraction of a
//! microsecond and never waits: buffers in use are freed by their last user, large ones by a thread
//! of the client. An execution may wait for room in the plugin's queue.
//!
//! # What is not here
//! Sending arrays to other processes, host callbacks, topologies without devices. Custom calls are
//! served with the feature `lapack` only, and only those that `ffi` names.
//!
//! # Mirrors
//! `xla/python/pjrt_ifrt`, `xla/pjrt/c_api_client`.

#![allow(
    unsafe_code,
    reason = "the C ABI of plugins; confined to the modules sys and safe"
)]

mod array;
mod client;
mod compiler;
mod custom_calls;
mod device;
mod executable;
#[cfg(feature = "lapack")]
pub mod ffi;
mod host_buffer;
mod messages;
mod options;
mod plugin;
mod safe;
mod sys;
mod workers;

pub use array::PjrtArray;
pub use client::{BufferCounts, PjrtClient};
pub use compiler::PjrtCompiler;
pub use device::{PjrtDevice, PjrtMemory};
pub use executable::PjrtLoadedExecutable;
pub use options::CreateOptions;
pub use plugin::{PLUGIN_PATH_VARIABLE, Plugin, PluginError};
