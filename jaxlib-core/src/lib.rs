//! What jaxlib does below JAX, over any IFRT runtime.

pub mod array;
pub mod aval;
pub mod client;
pub mod compile_options;
pub mod deletion;
pub mod device_put;
pub mod executable;
pub mod host;
pub mod mesh;
pub mod messages;
mod module_text;
pub mod named_sharding;
pub mod partition_spec;
pub mod sharding;
mod sync;

pub use array::{Array, HostRead, Shard};
pub use aval::Aval;
pub use client::Client;
pub use compile_options::{CompilerOptions, OptionValue};
pub use deletion::{DeadReason, DeletionStats};
pub use device_put::{Source, Target, device_put, device_put_array};
pub use executable::{Arg, CompileRequest, LoadedExecutable};
pub use host::HostArray;
pub use mesh::Mesh;
pub use messages::Kind;
pub use named_sharding::NamedSharding;
pub use partition_spec::{PartitionDim, PartitionSpec};
pub use sharding::{GspmdSharding, Index, Sharding, SingleDeviceSharding};
