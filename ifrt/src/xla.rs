//! Values that XLA brings along and every runtime for JAX has to understand.
//!
//! They stand in the contract, not in a backend, because clients, servers and backends share them.

mod hlo_sharding;
mod hlo_text;

pub use hlo_sharding::{DeviceOrder, HloSharding, SubgroupType, TileAssignment};
pub use hlo_text::hlo_text;
