//! What jaxlib does below JAX, over any IFRT runtime.
//!
//! JAX's promises about arrays are kept here, for every runtime alike: what deletion and donation
//! mean, where data is, what a call may do with its arguments. `jax-api` is the same for users, with
//! Rust's types and its own errors.
//!
//! # What to read
//! - [`deletion`]: the heart. How an array dies, whatever the runtime does.
//! - [`mod@array`]: arrays, their shards, reading them.
//! - [`mod@sharding`], [`named_sharding`], [`mesh`], [`partition_spec`]: where the parts of an array are.
//! - [`mod@device_put`], [`host`]: data onto devices and back.
//! - [`executable`], [`compile_options`]: compiling programs and calling them.
//! - [`export`]: functions that `jax.export` has written.
//! - [`transfer_guard`]: errors or log lines for transfers that nobody meant.
//! - [`messages`]: the errors whose words JAX users know.
//!
//! # What is assumed of a runtime
//! That its answers are those of the contract in `ifrt`. That it deletes quickly, silently or at all
//! is not assumed. It may call back into this crate from any of its methods.
//!
//! # Threads
//! Everything may be used from every thread. No lock is held while a runtime is called. Each client
//! has two threads of its own for deletions, which sleep when there is nothing to do; no executor is
//! needed.
//!
//! # What is not here
//! Tracing, automatic differentiation, caches of compiled programs, arrays over several processes.

pub mod array;
pub mod aval;
pub mod client;
pub mod compile_options;
pub mod deletion;
pub mod device_put;
pub mod executable;
pub mod export;
pub mod host;
mod live;
pub mod mesh;
pub mod messages;
mod module_text;
pub mod named_sharding;
pub mod partition_spec;
pub mod sharding;
mod sync;
pub mod transfer_guard;

pub use array::{Array, HostRead, Shard};
pub use aval::Aval;
pub use client::Client;
pub use compile_options::{CompilerOptions, OptionValue};
pub use deletion::{DeadReason, DeletionStats};
pub use device_put::{Source, Target, device_put, device_put_array};
pub use executable::{Arg, CompileRequest, LoadedExecutable};
pub use export::{Exported, ExportedCall};
pub use host::HostArray;
pub use mesh::Mesh;
pub use messages::Kind;
pub use named_sharding::NamedSharding;
pub use partition_spec::{PartitionDim, PartitionSpec};
pub use sharding::{GspmdSharding, Index, Sharding, SingleDeviceSharding};
