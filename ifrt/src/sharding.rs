//! [`Sharding`]: how an array is spread over devices.
//!
//! A sharding is a partitioning ([`ShardingKind`]), an ordered list of devices and a memory kind.
//! Shard number *i* lives on device number *i* of the list.
//!
//! # Mirrors
//! `xla/python/ifrt/sharding.h`, `xla/python/pjrt_ifrt/xla_sharding.h`.

mod param;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use param::ShardingParam;

use crate::array::ShardSemantics;
use crate::device::DeviceRef;
use crate::device_list::DeviceList;
use crate::index::IndexDomain;
use crate::memory::MemoryKind;
use crate::shape::Shape;
use crate::status::{Result, Status};
use crate::xla::HloSharding;

/// A shared [`Sharding`].
pub type ShardingRef = Arc<Sharding>;

/// How an array is spread over devices.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Sharding {
    kind: ShardingKind,
    devices: DeviceList,
    memory_kind: MemoryKind,
}

/// The partitioning of a [`Sharding`].
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
    },
    /// All shards have one shape; which part each holds is not said.
    ConcreteEven {
        /// The shape of the whole array.
        shape: Shape,
        /// The shape of each shard.
        shard_shape: Shape,
        /// Whether each shard is the whole array.
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

    /// The name of the sharding that has this partitioning.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SingleDevice => "SingleDeviceSharding",
            Self::Opaque(_) => "OpaqueSharding",
            Self::Concrete { .. } => "ConcreteSharding",
            Self::ConcreteEven { .. } => "ConcreteEvenSharding",
            Self::Param(_) => "ShardingParamSharding",
            Self::Hlo(_) => "HloSharding",
        }
    }
}

impl Sharding {
    /// A sharding over these devices.
    ///
    /// # Errors
    /// INVALID_ARGUMENT without devices, or if the partitioning is for another number of them.
    pub fn new(kind: ShardingKind, devices: DeviceList, memory_kind: MemoryKind) -> Result<Self> {
        let sharding = Self {
            kind,
            devices,
            memory_kind,
        };
        let count = sharding.devices.len();
        if count == 0 {
            return Err(invalid(format!(
                "{} needs at least one device",
                sharding.name()
            )));
        }
        let fits = match &sharding.kind {
            ShardingKind::SingleDevice => count == 1,
            ShardingKind::Hlo(HloSharding::Tiled(tiles)) => {
                i64::try_from(count) == Ok(tiles.num_devices())
            }
            ShardingKind::Param(param) => return param.check_devices(count).map(|()| sharding),
            _ => true,
        };
        if fits {
            return Ok(sharding);
        }
        Err(invalid(match &sharding.kind {
            ShardingKind::Hlo(HloSharding::Tiled(tiles)) => format!(
                "sharding's tile count and device count does not match: {} vs. {count}",
                tiles.num_devices()
            ),
            _ => format!(
                "SingleDeviceSharding can only have one device, but was asked to have {count} \
                 devices"
            ),
        }))
    }

    /// The whole array on one device.
    pub fn single_device(device: DeviceRef, memory_kind: MemoryKind) -> ShardingRef {
        let devices = DeviceList::new([device]);
        Arc::new(Self {
            kind: ShardingKind::SingleDevice,
            devices,
            memory_kind,
        })
    }

    /// XLA's sharding.
    ///
    /// # Errors
    /// INVALID_ARGUMENT as [`Sharding::new`].
    pub fn hlo(
        sharding: HloSharding,
        devices: DeviceList,
        memory_kind: MemoryKind,
    ) -> Result<ShardingRef> {
        Self::new(ShardingKind::Hlo(sharding), devices, memory_kind).map(Arc::new)
    }

    /// The partitioning.
    pub const fn kind(&self) -> &ShardingKind {
        &self.kind
    }

    /// The devices, in the order of the shards.
    pub const fn devices(&self) -> &DeviceList {
        &self.devices
    }

    /// The kind of memory on each device.
    pub const fn memory_kind(&self) -> &MemoryKind {
        &self.memory_kind
    }

    fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// True if each shard is the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        match &self.kind {
            ShardingKind::SingleDevice => true,
            ShardingKind::Opaque(_) | ShardingKind::Concrete { .. } => false,
            ShardingKind::ConcreteEven {
                is_fully_replicated,
                ..
            } => *is_fully_replicated,
            ShardingKind::Param(param) => param.is_fully_replicated(),
            ShardingKind::Hlo(hlo) => hlo.is_fully_replicated(self.devices.len()),
        }
    }

    /// The one shape that all shards have.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if they differ or are not known, or the array has another shape than the
    /// sharding is for.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape> {
        match &self.kind {
            ShardingKind::SingleDevice => Ok(shape.clone()),
            ShardingKind::Opaque(_) => Err(invalid("OpaqueSharding does not have shard shape")),
            ShardingKind::Concrete { shard_shapes, .. } => match shard_shapes.split_first() {
                Some((first, rest)) if rest.iter().all(|other| other == first) => Ok(first.clone()),
                _ => Err(invalid(
                    "ConcreteSharding does not have a fixed shard shape",
                )),
            },
            ShardingKind::ConcreteEven {
                shape: own,
                shard_shape,
                ..
            } if own == shape => Ok(shard_shape.clone()),
            ShardingKind::ConcreteEven { shape: own, .. } => Err(invalid(format!(
                "ConcreteEvenSharding has a shard shape for shape {own}, but was asked to get a \
                 shard shape for shape {shape}"
            ))),
            ShardingKind::Param(param) => param.shard_shape(shape),
            ShardingKind::Hlo(hlo) => hlo.shard_shape(shape),
        }
    }

    /// The shape of each shard.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if they are not known.
    pub fn shard_shapes(&self, shape: &Shape, shards: ShardSemantics) -> Result<Vec<Shape>> {
        let all = match &self.kind {
            ShardingKind::Concrete { .. } => return self.concrete_shapes(shape, shards),
            ShardingKind::Opaque(_) => {
                return Err(invalid(
                    "OpaqueSharding does not have shard shape information",
                ));
            }
            ShardingKind::ConcreteEven { shape: own, .. } if own != shape => {
                return Err(invalid(format!(
                    "ConcreteEvenSharding can only disassemble shape {own}, but was asked to \
                     disassemble shape {shape}"
                )));
            }
            ShardingKind::Hlo(hlo @ HloSharding::Tiled(_)) => hlo
                .index_domains(shape, self.devices.len())?
                .into_iter()
                .map(|domain| domain.shape().clone())
                .collect(),
            _ => vec![self.shard_shape(shape)?; self.devices.len()],
        };
        Ok(self.select(all, shards))
    }

    fn concrete_shapes(&self, asked: &Shape, shards: ShardSemantics) -> Result<Vec<Shape>> {
        let ShardingKind::Concrete {
            shape,
            shard_shapes,
        } = &self.kind
        else {
            return Err(Status::internal("not a concrete sharding"));
        };
        let addressable = self.devices.addressable().len();
        if shape != asked {
            return Err(invalid(format!(
                "ConcreteSharding can only disassemble shape {shape}, but was asked to disassemble \
                 shape {asked}"
            )));
        }
        if shards == ShardSemantics::All && addressable != self.devices.len() {
            return Err(invalid(format!(
                "SingleDeviceShardSemantics::kAllShards was requested, but the ConcreteSharding \
                 contains non-addressable devices. Saw {} devices, with {addressable} addressable \
                 devices",
                self.devices.len()
            )));
        }
        if shard_shapes.len() != addressable {
            return Err(invalid(format!(
                "ConcreteSharding must have the same number of shard shapes and addressable \
                 devices, but has {} and {addressable}",
                shard_shapes.len()
            )));
        }
        Ok(shard_shapes.clone())
    }

    /// Each shard as a shape on one device.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the shapes are not known.
    pub fn disassemble(
        &self,
        shape: &Shape,
        shards: ShardSemantics,
    ) -> Result<Vec<(Shape, ShardingRef)>> {
        let shapes = self.shard_shapes(shape, shards)?;
        let devices = match shards {
            ShardSemantics::All => self.devices.clone(),
            ShardSemantics::Addressable => self.devices.addressable(),
        };
        let single =
            |device: &DeviceRef| Self::single_device(Arc::clone(device), self.memory_kind.clone());
        Ok(shapes.into_iter().zip(devices.iter().map(single)).collect())
    }

    /// The part of the array that each shard holds; equal parts for copies.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the sharding does not say.
    pub fn index_domains(&self, shape: &Shape, shards: ShardSemantics) -> Result<Vec<IndexDomain>> {
        let all = match &self.kind {
            ShardingKind::SingleDevice => vec![IndexDomain::whole(shape.clone())],
            ShardingKind::ConcreteEven {
                shape: own,
                shard_shape,
                is_fully_replicated: true,
            } if own == shape && shard_shape == shape => {
                vec![IndexDomain::whole(shape.clone()); self.devices.len()]
            }
            ShardingKind::Param(param) => param.index_domains(shape)?,
            ShardingKind::Hlo(hlo) => hlo.index_domains(shape, self.devices.len())?,
            _ => {
                return Err(invalid(format!(
                    "{} does not have index domain information",
                    self.name()
                )));
            }
        };
        Ok(self.select(all, shards))
    }

    /// True if both split arrays alike, on whatever devices.
    pub fn has_same_partitioning(&self, other: &Self) -> bool {
        self.devices.len() == other.devices.len() && self.kind == other.kind
    }

    /// The same partitioning on other devices or in another memory. `None` keeps what it has.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another number of devices.
    pub fn with_device_assignment(
        &self,
        devices: Option<DeviceList>,
        memory_kind: Option<MemoryKind>,
    ) -> Result<ShardingRef> {
        let devices = devices.unwrap_or_else(|| self.devices.clone());
        let memory_kind = memory_kind.unwrap_or_else(|| self.memory_kind.clone());
        if devices.len() != self.devices.len() {
            return Err(invalid(match &self.kind {
                ShardingKind::SingleDevice => format!(
                    "SingleDeviceSharding can only have one device, but was asked to have {} \
                     devices",
                    devices.len()
                ),
                _ => format!(
                    "{} should have the same number of devices as the current sharding, but was \
                     asked to have {} devices",
                    self.name(),
                    devices.len()
                ),
            }));
        }
        Ok(Arc::new(Self {
            kind: self.kind.clone(),
            devices,
            memory_kind,
        }))
    }

    fn select<T>(&self, all: Vec<T>, shards: ShardSemantics) -> Vec<T> {
        if shards == ShardSemantics::All || self.devices.is_fully_addressable() {
            return all;
        }
        let mut devices = self.devices.iter();
        all.into_iter()
            .filter(|_| devices.next().is_some_and(|d| d.is_addressable()))
            .collect()
    }
}

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

impl fmt::Debug for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharding")
            .field("kind", &self.kind)
            .field("devices", &self.devices)
            .field("memory_kind", &self.memory_kind)
            .finish()
    }
}

#[cfg(test)]
mod tests;
