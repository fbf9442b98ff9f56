//! The array semantics of JAX for Rust programs.
//!
//! ```
//! use jax_api::prelude::*;
//!
//! # fn main() -> jax_api::Result<()> {
//! # let client = Client::from_ifrt(ifrt::fake::FakeClient::new(Default::default()));
//! # let module = "fake:add(f32[3], f32[3]) -> (f32[3])";
//! let f = jit::from_stablehlo(module).compile(&client)?;
//! let x = device_put(&[1.0_f32, 2.0, 3.0], &client)?;
//! let y = f.call(args![&x, &x])?.remove(0);
//! x.delete();
//! assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
//! assert!(x.is_deleted() && !y.is_deleted());
//! let error = x.to_vec::<f32>().unwrap_err();
//! assert_eq!(error.to_string(), "Array has been deleted with shape=float32[3].");
//! # Ok(())
//! # }
//! ```
//!
//! A client of a real device comes from a PJRT plugin, and a module from JAX or any other producer
//! of StableHLO:
//!
//! ```no_run
//! # #[cfg(feature = "pjrt")]
//! # fn main() -> jax_api::Result<()> {
//! use jax_api::prelude::*;
//!
//! let client = Client::pjrt("pjrt_c_api_cpu_plugin.so", ClientOptions::new().cpu_device_count(8))?;
//! let module = "module @double {
//!   func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
//!     %y = stablehlo.add %x, %x : tensor<3xf32>
//!     return %y : tensor<3xf32>
//!   }
//! }";
//! # let _f = jit::from_stablehlo(module).compile(&client)?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "pjrt"))]
//! # fn main() {}
//! ```
//!
//! The device may be far away. Only this line is another one:
//!
//! ```no_run
//! # #[cfg(feature = "proxy")]
//! # fn main() -> jax_api::Result<()> {
//! # use jax_api::prelude::*;
//! let client = Client::proxy("grpc://127.0.0.1:8470")?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "proxy"))]
//! # fn main() {}
//! ```
//!
//! # Where to go on
//! - [`Client`] and [`Device`]: what there is.
//! - [`device_put`], [`Placement`], [`Mesh`], [`NamedSharding`]: how data gets there.
//! - [`Array`]: what can be done with it, and what deletion means.
//! - [`jit`] and [`args!`]: calling compiled programs, and donating arguments to them.
//! - [`Exported`]: functions that `jax.export` has written.
//! - [`Error`]: what can go wrong.
//!
//! # Blocking
//! Methods only enqueue and return, unless their documentation says otherwise. Nothing here needs an
//! async executor, and nothing minds one.
//!
//! # What is not here
//! - Tracing of Rust functions into programs, automatic differentiation.
//! - Symbolic dimensions of exported functions.
//! - DLPack. Its protocol hands raw pointers and callbacks to strangers, in both directions, so it
//!   cannot be had without `unsafe`, which this project allows only at the plugin's C interface. [`Array::host_view`],
//!   [`HostArray`] and owned `Vec`s in [`device_put`] move data without it.

mod array;
mod client;
mod device;
mod device_put;
mod element;
mod error;
mod exported;
mod files;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod host_view;
pub mod jit;
mod mesh;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "npz")]
pub mod npz;
mod placement;
pub mod prelude;
#[cfg(feature = "safetensors")]
pub mod safetensors;
mod tree;

pub use array::{Array, Shard, delete_all};
pub use client::Client;
#[cfg(feature = "pjrt")]
pub use client::ClientOptions;
pub use device::Device;
pub use device_put::{Input, PutOptions, device_put, device_put_with};
pub use element::{Complex, Element};
pub use error::{Error, Result};
pub use exported::{Exported, ExportedFn};
pub use host_view::HostView;
pub use ifrt::{DType, Status};
#[cfg(feature = "proxy")]
pub use ifrt_proxy::client::ClientOptions as ProxyOptions;
pub use jaxlib_core::export::{Dim, ElementType, ExportedAval, TreeDef};
pub use jaxlib_core::transfer_guard;
pub use jaxlib_core::{
    DeadReason, DeletionStats, HostArray, PartitionDim, PartitionSpec, Sharding,
};
pub use mesh::{Mesh, NamedSharding};
pub use placement::Placement;
pub use tree::Tree;
