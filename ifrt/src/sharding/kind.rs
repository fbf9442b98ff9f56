//! [`ShardingKind`]: the partitioning, without the number of shards and without devices.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ShardingParam;
use crate::index::IndexDomain;
use crate::shape::{DynamicShape, Shape};
use crate::xla::HloSharding;

/// The partitioning of a [`Sharding`](super::Sharding) or a [`ShardingSpec`](super::ShardingSpec).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "closed by the serialized forms")]
pub enum ShardingKind {
    /// The whole array on one device.
    SingleDevice,
    /// Nobody but the runtime knows; equal only to itself.
    Opaque(OpaqueId),
    /// Each shard has a shape of its own.
    Concrete {
        /// The shape of the whole array.
        shape: Shape,
        /// The shapes of the addressable shards.
        shard_shapes: Vec<Shape>,
        /// The parts that the addressable shards hold, if that is known. Not on the wire.
        index_domains: Option<Vec<IndexDomain>>,
    },
    /// Each shard has a shape of its own, and some dimensions are only bounded.
    ConcreteDynamic {
        /// The shape of the whole array.
        shape: DynamicShape,
        /// The shapes of the addressable shards.
        shard_shapes: Vec<DynamicShape>,
    },
    /// All shards have one shape; which part each holds is not said.
    ConcreteEven {
        /// The shape of the whole array.
        shape: Shape,
        /// The shape of each shard.
        shard_shape: Shape,
        /// Whether each shard is the whole array. The claim of whoever made the sharding: data
        /// must not move on its strength alone.
        is_fully_replicated: bool,
    },
    /// Tiles by IFRT's own parameters.
    Param(ShardingParam),
    /// XLA's sharding.
    Hlo(HloSharding),
}

/// What tells one opaque sharding from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpaqueId(u64);

impl ShardingKind {
    /// A new opaque partitioning, different from every other.
    pub fn opaque() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self::Opaque(OpaqueId(NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Shards with shapes of their own, of which nobody said what part each holds.
    ///
    /// # Shapes
    /// `shape` is that of the whole array; `shard_shapes` has one per addressable shard.
    pub const fn concrete(shape: Shape, shard_shapes: Vec<Shape>) -> Self {
        Self::Concrete {
            shape,
            shard_shapes,
            index_domains: None,
        }
    }

    /// The name of the sharding that has this partitioning.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SingleDevice => "SingleDeviceSharding",
            Self::Opaque(_) => "OpaqueSharding",
            Self::Concrete { .. } | Self::ConcreteDynamic { .. } => "ConcreteSharding",
            Self::ConcreteEven { .. } => "ConcreteEvenSharding",
            Self::Param(_) => "ShardingParamSharding",
            Self::Hlo(_) => "HloSharding",
        }
    }

    /// The number of shards that the partitioning itself lists.
    pub(super) const fn listed_shards(&self) -> Option<usize> {
        match self {
            Self::Concrete { shard_shapes, .. } => Some(shard_shapes.len()),
            Self::ConcreteDynamic { shard_shapes, .. } => Some(shard_shapes.len()),
            _ => None,
        }
    }

    /// What the text of a concrete partitioning says about shapes; empty for other kinds.
    pub(super) fn text_of_shapes(&self) -> String {
        fn join<T: ToString>(values: &[T]) -> String {
            let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
            texts.join(",")
        }
        match self {
            Self::Concrete {
                shape,
                shard_shapes,
                index_domains,
            } => {
                let domains = index_domains
                    .as_ref()
                    .map_or_else(|| "<nullopt>".into(), |d| format!("[{}]", join(d)));
                let shapes = join(shard_shapes);
                format!("shape: {shape}, shard_shapes: [{shapes}], index_domains: {domains}")
            }
            Self::ConcreteDynamic {
                shape,
                shard_shapes,
            } => {
                let shapes = join(shard_shapes);
                format!("shape: {shape}, shard_shapes: [{shapes}], index_domains: <nullopt>")
            }
            Self::ConcreteEven {
                shape,
                shard_shape,
                is_fully_replicated,
            } => format!(
                "shape: {shape}, shard_shape: {shard_shape}, \
                 is_fully_replicated: {is_fully_replicated}"
            ),
            _ => String::new(),
        }
    }
}
