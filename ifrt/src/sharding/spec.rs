//! [`ShardingSpec`]: how an array is split, without saying where the shards live.
//!
//! # Mirrors
//! `xla/python/ifrt/sharding_spec.h`, `xla/python/pjrt_ifrt/xla_sharding_spec.h`.

use std::fmt;
use std::sync::Arc;

use super::partition::{Form, Partition, invalid};
use super::{Sharding, ShardingKind, ShardingParam, ShardingRef};
use crate::device_list::DeviceList;
use crate::index::IndexDomain;
use crate::memory::MemoryKind;
use crate::shape::{DynamicShape, Shape};
use crate::status::{Result, Status};
use crate::xla::HloSharding;

/// How an array is split into an ordered list of shards.
///
/// It is the part of a [`Sharding`] that does not depend on devices, so one program can be
/// described before it is known where it will run.
///
/// # Examples
/// ```
/// # fn main() -> ifrt::Result<()> {
/// use ifrt::{Shape, sharding::ShardingSpec, xla::HloSharding};
/// let rows = ShardingSpec::hlo(HloSharding::tile([2, 1])?, 2)?;
/// assert_eq!(rows.shard_shape(&Shape::try_from([4, 3])?)?, Shape::try_from([2, 3])?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ShardingSpec {
    kind: ShardingKind,
    num_shards: usize,
}

impl ShardingSpec {
    /// A spec of so many shards.
    ///
    /// # Errors
    /// INVALID_ARGUMENT without shards, or if the partitioning is for another number of them.
    pub fn new(kind: ShardingKind, num_shards: usize) -> Result<Self> {
        let spec = Self { kind, num_shards };
        spec.partition().check()?;
        if let Some(listed) = spec.kind.listed_shards()
            && listed != num_shards
        {
            return Err(invalid(format!(
                "{} lists {listed} shards, but was asked to have {num_shards}",
                spec.partition()
            )));
        }
        Ok(spec)
    }

    /// The whole array as one shard.
    pub const fn single_device() -> Self {
        Self {
            kind: ShardingKind::SingleDevice,
            num_shards: 1,
        }
    }

    /// Shards of which only the number is known; equal only to itself.
    ///
    /// # Errors
    /// INVALID_ARGUMENT without shards.
    pub fn opaque(num_shards: usize) -> Result<Self> {
        Self::new(ShardingKind::opaque(), num_shards)
    }

    /// IFRT's own tiles; the parameters say how many shards there are.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if they are too many.
    pub fn param(param: ShardingParam) -> Result<Self> {
        let num_shards = usize::try_from(param.num_devices()).unwrap_or(usize::MAX);
        Self::new(ShardingKind::Param(param), num_shards)
    }

    /// XLA's sharding.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if its tiles are for another number of shards.
    pub fn hlo(sharding: HloSharding, num_shards: usize) -> Result<Self> {
        Self::new(ShardingKind::Hlo(sharding), num_shards)
    }

    /// The partitioning, checked already by whoever made the sharding.
    pub(super) const fn of_sharding(kind: ShardingKind, num_shards: usize) -> Self {
        Self { kind, num_shards }
    }

    const fn partition(&self) -> Partition<'_> {
        Partition {
            kind: &self.kind,
            num_shards: self.num_shards,
            form: Form::Spec,
        }
    }

    /// The partitioning.
    pub const fn kind(&self) -> &ShardingKind {
        &self.kind
    }

    /// The number of shards.
    pub const fn num_shards(&self) -> usize {
        self.num_shards
    }

    /// True if each shard is the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        self.partition().is_fully_replicated()
    }

    /// The one shape that all shards have.
    ///
    /// # Shapes
    /// `shape` is that of the whole array.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if they differ or are not known, or the array has another shape than the
    /// spec is for.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape> {
        self.partition().shard_shape(shape)
    }

    /// The shape of each shard.
    ///
    /// # Shapes
    /// `shape` is that of the whole array.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if they are not known.
    pub fn shard_shapes(&self, shape: &Shape) -> Result<Vec<Shape>> {
        self.partition().shard_shapes(shape)
    }

    /// Each shard as a shape with a spec of one shard.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the shapes are not known.
    pub fn disassemble(&self, shape: &Shape) -> Result<Vec<(Shape, Self)>> {
        let shapes = self.shard_shapes(shape)?;
        let single = |shape| (shape, Self::single_device());
        Ok(shapes.into_iter().map(single).collect())
    }

    /// Each shard of an array with dimensions that are only bounded.
    ///
    /// # Errors
    /// INVALID_ARGUMENT unless the spec is of one device or was made from shapes of that kind.
    pub fn disassemble_dynamic(&self, shape: &DynamicShape) -> Result<Vec<(DynamicShape, Self)>> {
        let shapes = self.partition().dynamic_shard_shapes(shape)?;
        let single = |shape| (shape, Self::single_device());
        Ok(shapes.into_iter().map(single).collect())
    }

    /// The part of the array that each shard holds; equal parts for copies.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the spec does not say.
    pub fn index_domains(&self, shape: &Shape) -> Result<Vec<IndexDomain>> {
        self.partition().index_domains(shape)
    }

    /// True if both split arrays alike.
    pub fn has_same_partitioning(&self, other: &Self) -> bool {
        self == other
    }

    /// The sharding that puts shard number *i* on device number *i*.
    ///
    /// # Shapes
    /// One device per shard.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another number of devices.
    pub fn to_sharding(&self, devices: DeviceList, memory_kind: MemoryKind) -> Result<ShardingRef> {
        if devices.len() != self.num_shards {
            let noun = if self.num_shards == 1 {
                "device"
            } else {
                "devices"
            };
            return Err(Status::invalid_argument(format!(
                "{} requires {} {noun}, but received {} devices",
                self.partition(),
                self.num_shards,
                devices.len()
            )));
        }
        Sharding::new(self.kind.clone(), devices, memory_kind).map(Arc::new)
    }
}

/// The form of the reference, for example `OpaqueShardingSpec(num_shards: 2)`.
impl fmt::Display for ShardingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.num_shards;
        write!(f, "{}(", self.partition())?;
        match &self.kind {
            ShardingKind::SingleDevice => {}
            ShardingKind::Opaque(_) => write!(f, "num_shards: {count}")?,
            ShardingKind::Param(param) => write!(f, "num_shards: {count}, {param}")?,
            ShardingKind::Hlo(hlo) => write!(f, "num_shards: {count}, hlo_sharding: {hlo}")?,
            shapes => write!(f, "num_shards: {count}, {}", shapes.text_of_shapes())?,
        }
        f.write_str(")")
    }
}

impl fmt::Debug for ShardingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardingSpec")
            .field("kind", &self.kind)
            .field("num_shards", &self.num_shards)
            .finish()
    }
}
