//! [`Sharding`]: where the parts of an array are.
//!
//! # Mirrors
//! `jax/_src/sharding_impls.py`: `SingleDeviceSharding`, `NamedSharding`, `GSPMDSharding`.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use ifrt::xla::HloSharding;
use ifrt::{DeviceList, DeviceRef, MemoryKind, Result, Shape, ShardingKind, ShardingRef};

use crate::named_sharding::NamedSharding;

/// The part of an array that a device has, one range per dimension; `None` is the whole dimension.
pub type Index = Box<[Option<Range<i64>>]>;

/// Where the parts of an array are. A cheap clone.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sharding {
    /// All of it on one device.
    SingleDevice(SingleDeviceSharding),
    /// Spread over a mesh by names.
    Named(NamedSharding),
    /// Spread as XLA decided; what executables answer.
    Gspmd(GspmdSharding),
}

/// All of an array on one device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SingleDeviceSharding {
    devices: DeviceList,
    memory_kind: MemoryKind,
}

/// An array spread as XLA decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GspmdSharding {
    devices: DeviceList,
    hlo: HloSharding,
    memory_kind: MemoryKind,
}

impl SingleDeviceSharding {
    /// All of an array in the default memory of this device.
    pub fn new(device: DeviceRef) -> Self {
        Self {
            devices: DeviceList::new([device]),
            memory_kind: MemoryKind::default(),
        }
    }

    /// The same in another memory of the device.
    #[must_use]
    pub fn with_memory_kind(mut self, memory_kind: MemoryKind) -> Self {
        self.memory_kind = memory_kind;
        self
    }
}

impl GspmdSharding {
    /// XLA's sharding over these devices.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it is for another number of devices.
    pub fn new(devices: DeviceList, hlo: HloSharding, memory_kind: MemoryKind) -> Result<Self> {
        ifrt::Sharding::hlo(hlo.clone(), devices.clone(), memory_kind.clone())?;
        Ok(Self {
            devices,
            hlo,
            memory_kind,
        })
    }
}

impl Sharding {
    /// All of an array in the default memory of this device.
    pub fn single_device(device: DeviceRef) -> Self {
        Self::SingleDevice(SingleDeviceSharding::new(device))
    }

    /// The sharding that a runtime speaks of. What it does not say in a form that JAX knows (IFRT's
    /// own parameters, opaque shardings) is `None`.
    pub fn from_runtime(sharding: &ifrt::Sharding) -> Option<Self> {
        let devices = sharding.devices().clone();
        let memory_kind = sharding.memory_kind().clone();
        if devices.len() == 1 {
            return Some(Self::SingleDevice(SingleDeviceSharding {
                devices,
                memory_kind,
            }));
        }
        match sharding.kind() {
            ShardingKind::Hlo(hlo) => Some(Self::Gspmd(GspmdSharding {
                devices,
                hlo: hlo.clone(),
                memory_kind,
            })),
            ShardingKind::ConcreteEven {
                is_fully_replicated: true,
                ..
            } => Some(Self::Gspmd(GspmdSharding {
                devices,
                hlo: HloSharding::Replicated,
                memory_kind,
            })),
            _ => None,
        }
    }

    /// The devices, in the order of the shards.
    pub fn devices(&self) -> &DeviceList {
        match self {
            Self::SingleDevice(single) => &single.devices,
            Self::Named(named) => named.mesh().devices(),
            Self::Gspmd(gspmd) => &gspmd.devices,
        }
    }

    /// The kind of memory.
    pub fn memory_kind(&self) -> &MemoryKind {
        match self {
            Self::SingleDevice(single) => &single.memory_kind,
            Self::Named(named) => named.memory_kind(),
            Self::Gspmd(gspmd) => &gspmd.memory_kind,
        }
    }

    /// True if each device has the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        match self {
            Self::SingleDevice(_) => true,
            Self::Named(named) => named.is_fully_replicated(),
            Self::Gspmd(gspmd) => gspmd.hlo.is_fully_replicated(gspmd.devices.len()),
        }
    }

    /// The shape of each part of an array of this shape.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the sharding is for another rank, or a dimension cannot be split equally.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape> {
        match self {
            Self::SingleDevice(_) => Ok(shape.clone()),
            Self::Named(named) => named.shard_shape(shape),
            Self::Gspmd(gspmd) => {
                let shard = gspmd.hlo.shard_shape(shape)?;
                if let HloSharding::Tiled(tiles) = &gspmd.hlo {
                    let factors = tiles.data_dims();
                    let uneven = |(dim, parts): (&i64, &i64)| dim % parts != 0;
                    if let Some(axis) = shape.dims().iter().zip(factors).position(uneven) {
                        return Err(crate::messages::indivisible(
                            &self.to_string(),
                            shape.dims(),
                            factors,
                            axis,
                        ));
                    }
                }
                Ok(shard)
            }
        }
    }

    /// The part of an array that each device has, in the order of the devices.
    ///
    /// # Errors
    /// INVALID_ARGUMENT as [`Sharding::shard_shape`], or if the sharding does not say.
    pub fn index_map(&self, shape: &Shape) -> Result<Vec<Index>> {
        match self {
            Self::SingleDevice(_) => Ok(vec![whole(shape)]),
            Self::Named(named) => named.index_map(shape),
            Self::Gspmd(gspmd) => {
                self.shard_shape(shape)?;
                let domains = gspmd.hlo.index_domains(shape, gspmd.devices.len())?;
                let index = |domain: ifrt::IndexDomain| -> Index {
                    domain
                        .origin()
                        .iter()
                        .zip(domain.shape().dims())
                        .zip(shape.dims())
                        .map(|((start, size), dim)| (size != dim).then(|| *start..start + size))
                        .collect()
                };
                Ok(domains.into_iter().map(index).collect())
            }
        }
    }

    /// XLA's form of the sharding, for arrays of this rank.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the sharding is for another rank.
    pub fn to_hlo(&self, rank: usize) -> Result<HloSharding> {
        match self {
            Self::SingleDevice(_) => Ok(HloSharding::Replicated),
            Self::Named(named) => named.to_hlo(rank),
            Self::Gspmd(gspmd) => Ok(gspmd.hlo.clone()),
        }
    }

    /// The form that runtimes take, for arrays of this rank.
    ///
    /// # Errors
    /// INVALID_ARGUMENT as [`Sharding::to_hlo`].
    pub fn to_runtime(&self, rank: usize) -> Result<ShardingRef> {
        ifrt::Sharding::hlo(
            self.to_hlo(rank)?,
            self.devices().clone(),
            self.memory_kind().clone(),
        )
    }

    /// True if both put the same parts of an array of this rank into the same memories.
    pub fn is_equivalent_to(&self, other: &Self, rank: usize) -> bool {
        if self.devices() != other.devices() || self.memory_kind() != other.memory_kind() {
            return false;
        }
        self == other || self.has_same_parts(other, rank)
    }

    /// True if both split an array of this rank alike, on whatever devices.
    pub(crate) fn has_same_parts(&self, other: &Self, rank: usize) -> bool {
        let count = self.devices().len();
        if count != other.devices().len() {
            return false;
        }
        if self.is_fully_replicated() || other.is_fully_replicated() {
            return self.is_fully_replicated() && other.is_fully_replicated();
        }
        match (self.to_hlo(rank), other.to_hlo(rank)) {
            (Ok(HloSharding::Tiled(a)), Ok(HloSharding::Tiled(b))) => {
                // Two notations of one assignment give the same parts of an array of one element
                // per tile.
                let parts = |tiles: ifrt::xla::TileAssignment| {
                    let shape = Shape::new(tiles.data_dims()).ok()?;
                    HloSharding::Tiled(tiles).index_domains(&shape, count).ok()
                };
                a.data_dims() == b.data_dims() && parts(a) == parts(b)
            }
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        }
    }
}

fn whole(shape: &Shape) -> Index {
    vec![None; shape.rank()].into()
}

/// For each part how many earlier devices have the same one.
pub fn replica_ids(index_map: &[Index]) -> Vec<usize> {
    let mut seen: HashMap<&Index, usize> = HashMap::new();
    index_map
        .iter()
        .map(|index| {
            let count = seen.entry(index).or_default();
            *count += 1;
            *count - 1
        })
        .collect()
}

impl From<NamedSharding> for Sharding {
    fn from(named: NamedSharding) -> Self {
        Self::Named(named)
    }
}

impl From<&NamedSharding> for Sharding {
    fn from(named: &NamedSharding) -> Self {
        Self::Named(named.clone())
    }
}

impl From<SingleDeviceSharding> for Sharding {
    fn from(single: SingleDeviceSharding) -> Self {
        Self::SingleDevice(single)
    }
}

impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SingleDevice(single) => write!(
                f,
                "SingleDeviceSharding(device={:?}, memory_kind={})",
                single.devices, single.memory_kind
            ),
            Self::Named(named) => write!(f, "{named}"),
            Self::Gspmd(gspmd) => {
                f.write_str("GSPMDSharding(")?;
                match &gspmd.hlo {
                    HloSharding::Tiled(tiles) => write!(f, "{tiles}")?,
                    other => write!(f, "{other:?}")?,
                }
                write!(
                    f,
                    ", devices={:?}, memory_kind={})",
                    gspmd.devices, gspmd.memory_kind
                )
            }
        }
    }
}

impl fmt::Debug for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
