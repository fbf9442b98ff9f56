//! [`Sharding`]: how an array is spread over devices.
//!
//! A sharding is a partitioning ([`ShardingKind`]), an ordered list of devices and a memory kind.
//! Shard number *i* lives on device number *i* of the list. A [`ShardingSpec`] is the partitioning
//! and the number of shards alone.
//!
//! # Mirrors
//! `xla/python/ifrt/sharding.h`, `xla/python/pjrt_ifrt/xla_sharding.h`.

mod kind;
mod param;
mod partition;
mod spec;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use kind::{OpaqueId, ShardingKind};
pub use param::ShardingParam;
use partition::{Form, Partition, invalid};
pub use spec::ShardingSpec;

use crate::array::ShardSemantics;
use crate::device::DeviceRef;
use crate::device_list::DeviceList;
use crate::index::IndexDomain;
use crate::memory::MemoryKind;
use crate::shape::{DynamicShape, Shape};
use crate::status::Result;
use crate::xla::HloSharding;

/// A shared [`Sharding`].
pub type ShardingRef = Arc<Sharding>;

/// How an array is spread over devices.
#[derive(Clone)]
pub struct Sharding {
    spec: ShardingSpec,
    devices: DeviceList,
    memory_kind: MemoryKind,
}

impl Sharding {
    /// A sharding over these devices.
    ///
    /// # Errors
    /// INVALID_ARGUMENT without devices, or if the partitioning is for another number of them.
    pub fn new(kind: ShardingKind, devices: DeviceList, memory_kind: MemoryKind) -> Result<Self> {
        let partition = Partition {
            kind: &kind,
            num_shards: devices.len(),
            form: Form::Sharding,
        };
        partition.check()?;
        Ok(Self::of_checked(kind, devices, memory_kind))
    }

    /// The partitioning is known to be for this number of devices.
    fn of_checked(kind: ShardingKind, devices: DeviceList, memory_kind: MemoryKind) -> Self {
        let num_shards = kind.listed_shards().unwrap_or(devices.len());
        Self {
            spec: ShardingSpec::of_sharding(kind, num_shards),
            devices,
            memory_kind,
        }
    }

    /// The whole array on one device.
    pub fn single_device(device: DeviceRef, memory_kind: MemoryKind) -> ShardingRef {
        let devices = DeviceList::new([device]);
        Arc::new(Self {
            spec: ShardingSpec::single_device(),
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

    fn partition(&self) -> Partition<'_> {
        Partition {
            kind: self.spec.kind(),
            num_shards: self.devices.len(),
            form: Form::Sharding,
        }
    }

    /// The partitioning.
    pub const fn kind(&self) -> &ShardingKind {
        self.spec.kind()
    }

    /// The partitioning with the number of shards, without devices.
    ///
    /// A concrete sharding lists addressable shards only, so its spec has only those.
    pub const fn sharding_spec(&self) -> &ShardingSpec {
        &self.spec
    }

    /// The devices, in the order of the shards.
    pub const fn devices(&self) -> &DeviceList {
        &self.devices
    }

    /// The kind of memory on each device.
    pub const fn memory_kind(&self) -> &MemoryKind {
        &self.memory_kind
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
    /// sharding is for.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape> {
        self.partition().shard_shape(shape)
    }

    /// The shape of each shard.
    ///
    /// # Shapes
    /// `shape` is that of the whole array; the result is in the order of the devices.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if they are not known.
    pub fn shard_shapes(&self, shape: &Shape, shards: ShardSemantics) -> Result<Vec<Shape>> {
        let shapes = self.partition().shard_shapes(shape)?;
        self.select(shapes, shards)
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
        Ok(self.on_devices(shapes, shards))
    }

    /// Each shard of an array with dimensions that are only bounded, as a shape on one device.
    ///
    /// # Errors
    /// INVALID_ARGUMENT unless the sharding is of one device or was made from shapes of that kind.
    pub fn disassemble_dynamic(
        &self,
        shape: &DynamicShape,
        shards: ShardSemantics,
    ) -> Result<Vec<(DynamicShape, ShardingRef)>> {
        let shapes = self.partition().dynamic_shard_shapes(shape)?;
        Ok(self.on_devices(self.select(shapes, shards)?, shards))
    }

    fn on_devices<S>(&self, shapes: Vec<S>, shards: ShardSemantics) -> Vec<(S, ShardingRef)> {
        let devices = match shards {
            ShardSemantics::All => self.devices.clone(),
            ShardSemantics::Addressable => self.devices.addressable(),
        };
        let single =
            |device: &DeviceRef| Self::single_device(Arc::clone(device), self.memory_kind.clone());
        shapes.into_iter().zip(devices.iter().map(single)).collect()
    }

    /// The part of the array that each shard holds; equal parts for copies.
    ///
    /// # Shapes
    /// `shape` is that of the whole array; the result is in the order of the devices.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the sharding does not say.
    pub fn index_domains(&self, shape: &Shape, shards: ShardSemantics) -> Result<Vec<IndexDomain>> {
        let domains = self.partition().index_domains(shape)?;
        if self.kind().listed_shards().is_none() {
            return self.select(domains, shards);
        }
        let (devices, addressable) = (self.devices.len(), self.devices.addressable().len());
        if shards == ShardSemantics::All && domains.len() != devices {
            return Err(invalid(format!(
                "SingleDeviceShardSemantics::kAllShards was requested, but the ConcreteSharding \
                 contains index domains from non-addressable devices. Saw {devices} devices, with \
                 {} addressable devices.",
                domains.len()
            )));
        }
        self.check_listed(domains.len(), addressable, "index domains")?;
        Ok(domains)
    }

    /// True if both split arrays alike, on whatever devices.
    pub fn has_same_partitioning(&self, other: &Self) -> bool {
        self.devices.len() == other.devices.len() && self.kind() == other.kind()
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
            let what = match self.kind() {
                ShardingKind::SingleDevice => "can only have one device",
                _ => "should have the same number of devices as the current sharding",
            };
            return Err(invalid(format!(
                "{} {what}, but was asked to have {} devices",
                self.partition(),
                devices.len()
            )));
        }
        Ok(Arc::new(Self {
            spec: self.spec.clone(),
            devices,
            memory_kind,
        }))
    }

    /// Keeps what belongs to the shards that are asked for.
    fn select<T>(&self, all: Vec<T>, shards: ShardSemantics) -> Result<Vec<T>> {
        let addressable = self.devices.addressable().len();
        if self.kind().listed_shards().is_some() {
            if shards == ShardSemantics::All && addressable != self.devices.len() {
                return Err(invalid(format!(
                    "SingleDeviceShardSemantics::kAllShards was requested, but the \
                     ConcreteSharding contains non-addressable devices. Saw {} devices, with \
                     {addressable} addressable devices.",
                    self.devices.len()
                )));
            }
            self.check_listed(all.len(), addressable, "shard shapes")?;
            return Ok(all);
        }
        if shards == ShardSemantics::All || addressable == self.devices.len() {
            return Ok(all);
        }
        let devices = self.devices.iter();
        Ok(all
            .into_iter()
            .zip(devices)
            .filter_map(|(one, device)| device.is_addressable().then_some(one))
            .collect())
    }

    /// Checks that a concrete sharding lists something for each addressable device.
    fn check_listed(&self, listed: usize, addressable: usize, what: &str) -> Result<()> {
        if listed == addressable {
            return Ok(());
        }
        Err(invalid(format!(
            "{} must have the same number of {what} and addressable devices. Saw {listed} {what}, \
             with {addressable} addressable devices.",
            self.partition()
        )))
    }
}

/// The devices count, not the spec: that of a concrete sharding knows only addressable shards.
impl PartialEq for Sharding {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind()
            && self.devices == other.devices
            && self.memory_kind == other.memory_kind
    }
}

impl Eq for Sharding {}

impl Hash for Sharding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind().hash(state);
        self.devices.hash(state);
        self.memory_kind.hash(state);
    }
}

/// The form of the reference, for example `OpaqueSharding(devices: [0,1], memory_kind: device)`.
impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (devices, kind) = (&self.devices, &self.memory_kind);
        write!(f, "{}(", self.partition())?;
        match self.kind() {
            ShardingKind::SingleDevice => {
                let device = devices.iter().next().map(|device| device.debug_string());
                write!(f, "{}", device.unwrap_or_default())?;
            }
            ShardingKind::Opaque(_) => write!(f, "devices: {devices}")?,
            ShardingKind::Param(param) => write!(f, "{param}, devices: {devices}")?,
            ShardingKind::Hlo(hlo) => write!(f, "hlo_sharding: {hlo}, devices: {devices}")?,
            shapes => write!(f, "devices: {devices}, {}", shapes.text_of_shapes())?,
        }
        write!(f, ", memory_kind: {kind})")
    }
}

impl fmt::Debug for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharding")
            .field("kind", self.kind())
            .field("devices", &self.devices)
            .field("memory_kind", &self.memory_kind)
            .finish()
    }
}

#[cfg(test)]
mod tests;
