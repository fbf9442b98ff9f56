//! [`HloSharding`]: how XLA splits an array over a list of devices.
//!
//! Numbers in a tile assignment are positions in the list of devices, not device ids.
//!
//! # Mirrors
//! `xla/hlo/ir/hlo_sharding.h`, `xla/hlo/ir/tile_assignment.h`, `xla.OpSharding`.

mod proto;
mod text;

use std::hash::{Hash, Hasher};

use crate::index::IndexDomain;
use crate::shape::Shape;
use crate::status::{Result, Status};

/// How XLA splits an array over a list of devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "closed by OpSharding.Type")]
pub enum HloSharding {
    /// Every device has the whole array.
    Replicated,
    /// One device has the whole array; its position in the list.
    Maximal(i64),
    /// The program itself says what each device has.
    Manual,
    /// Not said.
    Unknown,
    /// Each device has a partial sum.
    Unreduced,
    /// Each device has a tile.
    Tiled(TileAssignment),
    /// One sharding per leaf of a tuple.
    Tuple(Vec<Self>),
}

/// What the devices along a trailing tile dimension have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "closed by OpSharding.Type")]
pub enum SubgroupType {
    /// They hold copies.
    Replicated,
    /// One of them holds the data.
    Maximal,
    /// The program says.
    Manual,
    /// Not said.
    Unknown,
    /// They hold partial sums.
    Unreduced,
}

/// Which device has which tile.
///
/// Assignments are equal if every device has the same tile, in whatever form the order is written.
#[derive(Clone, Debug)]
pub struct TileAssignment {
    dims: Vec<i64>,
    order: DeviceOrder,
    subgroups: Vec<SubgroupType>,
    replicate_on_last_tile_dim: bool,
}

/// The devices in the order of the tiles, major to minor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "closed by OpSharding")]
pub enum DeviceOrder {
    /// Positions, one per tile.
    Explicit(Vec<i64>),
    /// The numbers from zero, reshaped and transposed.
    Iota {
        /// The dimensions of the numbers before they are transposed.
        reshape_dims: Vec<i64>,
        /// Which of these dimensions comes first, second and so on.
        transpose_perm: Vec<i32>,
    },
}

/// More tiles than this are a mistake or an attack, not a machine.
const MAX_TILES: i64 = 1 << 24;

impl TileAssignment {
    /// An assignment of tiles: `dims` has one number per dimension of the array, then one per
    /// subgroup, then one for the copies if `replicate_on_last_tile_dim`.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the numbers of tiles and devices differ, a position is missing, or
    /// there are more subgroups than dimensions.
    pub fn new(
        dims: Vec<i64>,
        order: DeviceOrder,
        subgroups: Vec<SubgroupType>,
        replicate_on_last_tile_dim: bool,
    ) -> Result<Self> {
        let tiles = Self {
            dims,
            order,
            subgroups,
            replicate_on_last_tile_dim,
        };
        let trailing = tiles.subgroups.len() + usize::from(tiles.replicate_on_last_tile_dim);
        if trailing > tiles.dims.len() {
            return Err(tiles.error("has more subgroups than dimensions"));
        }
        let count = tiles
            .dims
            .iter()
            .try_fold(
                1_i64,
                |n, dim| if *dim > 0 { n.checked_mul(*dim) } else { None },
            )
            .filter(|count| *count <= MAX_TILES)
            .ok_or_else(|| tiles.error("has dimensions that are not positive or too large"))?;
        let is_permutation = match &tiles.order {
            DeviceOrder::Explicit(positions) => is_permutation(positions.iter().copied(), count),
            DeviceOrder::Iota {
                reshape_dims,
                transpose_perm,
            } => {
                let product = reshape_dims.iter().try_fold(1_i64, |n, dim| {
                    if *dim > 0 { n.checked_mul(*dim) } else { None }
                });
                let rank = i64::try_from(reshape_dims.len()).unwrap_or(-1);
                product == Some(count)
                    && is_permutation(transpose_perm.iter().map(|p| i64::from(*p)), rank)
            }
        };
        if !is_permutation {
            return Err(tiles.error("does not give each device one tile"));
        }
        Ok(tiles)
    }

    /// The number of tiles in each dimension, subgroups last.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// The order of the devices.
    pub const fn order(&self) -> &DeviceOrder {
        &self.order
    }

    /// The kinds of the trailing dimensions, as far as they were listed.
    pub fn subgroups(&self) -> &[SubgroupType] {
        &self.subgroups
    }

    /// True if devices along the last dimension hold copies.
    pub const fn replicate_on_last_tile_dim(&self) -> bool {
        self.replicate_on_last_tile_dim
    }

    /// The number of devices.
    pub fn num_devices(&self) -> i64 {
        self.dims.iter().product()
    }

    /// The number of tiles in each dimension of the array.
    pub fn data_dims(&self) -> &[i64] {
        let trailing = self.subgroups.len() + usize::from(self.replicate_on_last_tile_dim);
        &self.dims[..self.dims.len() - trailing]
    }

    /// The positions of the devices in the order of the tiles.
    pub fn positions(&self) -> Vec<i64> {
        match &self.order {
            DeviceOrder::Explicit(positions) => positions.clone(),
            DeviceOrder::Iota {
                reshape_dims,
                transpose_perm,
            } => transposed_iota(reshape_dims, transpose_perm),
        }
    }

    /// True if the devices along every trailing dimension hold copies.
    fn has_only_copies(&self) -> bool {
        let is_copy = |subgroup: &SubgroupType| *subgroup == SubgroupType::Replicated;
        self.subgroups.iter().all(is_copy)
    }

    fn error(&self, what: &str) -> Status {
        Status::invalid_argument(format!("sharding {self} {what}"))
    }
}

impl PartialEq for TileAssignment {
    fn eq(&self, other: &Self) -> bool {
        self.dims == other.dims
            && self.subgroups == other.subgroups
            && self.replicate_on_last_tile_dim == other.replicate_on_last_tile_dim
            && (self.order == other.order || self.positions() == other.positions())
    }
}

impl Eq for TileAssignment {}

/// The order is left out, because equal orders may be written differently.
impl Hash for TileAssignment {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dims.hash(state);
        self.subgroups.hash(state);
        self.replicate_on_last_tile_dim.hash(state);
    }
}

fn is_permutation(values: impl ExactSizeIterator<Item = i64>, count: i64) -> bool {
    let mut seen = vec![false; values.len()];
    i64::try_from(values.len()) == Ok(count)
        && values.into_iter().all(|value| {
            let slot = usize::try_from(value)
                .ok()
                .and_then(|value| seen.get_mut(value));
            slot.is_some_and(|seen| !std::mem::replace(seen, true))
        })
}

/// Major-to-minor strides of an array of numbers with these dimensions.
fn strides(dims: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; dims.len()];
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i] * dims[i];
    }
    strides
}

fn transposed_iota(dims: &[i64], perm: &[i32]) -> Vec<i64> {
    let source = strides(dims);
    let axes: Vec<usize> = perm
        .iter()
        .filter_map(|axis| usize::try_from(*axis).ok())
        .collect();
    let mut values = vec![0];
    for axis in axes {
        let (dim, stride) = (dims[axis], source[axis]);
        values = values
            .iter()
            .flat_map(|base| (0..dim).map(move |index| base + index * stride))
            .collect();
    }
    values
}

impl HloSharding {
    /// Tiles in the order of the devices: `dims` has one number per dimension of the array.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a number is not positive.
    pub fn tile(dims: impl Into<Vec<i64>>) -> Result<Self> {
        let dims = dims.into();
        let count = dims
            .iter()
            .try_fold(1_i64, |n, dim| n.checked_mul(*dim))
            .unwrap_or(0);
        let order = DeviceOrder::Iota {
            reshape_dims: vec![count],
            transpose_perm: vec![0],
        };
        TileAssignment::new(dims, order, Vec::new(), false).map(Self::Tiled)
    }

    /// True if each of `num_devices` devices has the whole array.
    pub fn is_fully_replicated(&self, num_devices: usize) -> bool {
        match self {
            Self::Replicated => true,
            Self::Maximal(_) => num_devices == 1,
            Self::Tiled(tiles) => {
                tiles.has_only_copies() && tiles.data_dims().iter().all(|dim| *dim == 1)
            }
            _ => false,
        }
    }

    /// The shape of a shard of an array of this shape; rounded up where tiles do not fit.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the sharding is for another number of dimensions.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape> {
        let Self::Tiled(tiles) = self else {
            return Ok(shape.clone());
        };
        check_rank(tiles, shape)?;
        let dims: Vec<i64> = shape
            .dims()
            .iter()
            .zip(tiles.data_dims())
            .map(|(dim, tiles)| dim / tiles + i64::from(dim % tiles != 0))
            .collect();
        Shape::new(dims)
    }

    /// The shape of an array whose shards have this shape, if tiles fit.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the sharding is for another number of dimensions or the result is too
    /// large.
    pub fn global_shape(&self, shard_shape: &Shape) -> Result<Shape> {
        let Self::Tiled(tiles) = self else {
            return Ok(shard_shape.clone());
        };
        check_rank(tiles, shard_shape)?;
        let dims: Option<Vec<i64>> = shard_shape
            .dims()
            .iter()
            .zip(tiles.data_dims())
            .map(|(dim, tiles)| dim.checked_mul(*tiles))
            .collect();
        Shape::new(dims.ok_or_else(|| tiles.error("makes an array that is too large"))?)
    }

    /// The shape that each of `num_devices` devices has, in the order of the list.
    ///
    /// A manual or unreduced sharding gives each device the shape of the whole array.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the sharding does not say, or is for other numbers of dimensions or
    /// devices.
    pub fn shard_shapes(&self, shape: &Shape, num_devices: usize) -> Result<Vec<Shape>> {
        match self {
            Self::Replicated | Self::Maximal(_) | Self::Manual | Self::Unreduced => {
                Ok(vec![shape.clone(); num_devices])
            }
            Self::Tiled(_) | Self::Unknown | Self::Tuple(_) => {
                let domains = self.index_domains(shape, num_devices)?;
                Ok(domains.into_iter().map(|d| d.shape().clone()).collect())
            }
        }
    }

    /// The part that each of `num_devices` devices has, in the order of the list.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the sharding does not say, or is for other numbers of dimensions or
    /// devices.
    pub fn index_domains(&self, shape: &Shape, num_devices: usize) -> Result<Vec<IndexDomain>> {
        match self {
            Self::Replicated | Self::Maximal(_) => {
                Ok(vec![IndexDomain::whole(shape.clone()); num_devices])
            }
            Self::Tiled(tiles) => {
                let rank = tiles.data_dims().len();
                if shape.rank() != rank {
                    return Err(Status::invalid_argument(format!(
                        "shape must have {rank} dimensions, but has {} dimensions: shape={shape}, \
                         sharding={tiles}",
                        shape.rank()
                    )));
                }
                if i64::try_from(num_devices) != Ok(tiles.num_devices()) {
                    return Err(tiles.error(&format!("is not for {num_devices} devices")));
                }
                self.tile_domains(tiles, shape, num_devices)
            }
            Self::Unreduced => Err(no_domains("Unreduced")),
            Self::Manual => Err(no_domains("Manual")),
            Self::Unknown => Err(no_domains("Unknown")),
            Self::Tuple(_) => Err(no_domains("Tuple")),
        }
    }

    fn tile_domains(
        &self,
        tiles: &TileAssignment,
        shape: &Shape,
        num_devices: usize,
    ) -> Result<Vec<IndexDomain>> {
        let tile = self.shard_shape(shape)?;
        let tile_strides = strides(tiles.dims());
        let mut domains = vec![IndexDomain::whole(Shape::scalar()); num_devices];
        for (number, position) in (0..).zip(tiles.positions()) {
            let mut origin = Vec::with_capacity(shape.rank());
            let mut extent = Vec::with_capacity(shape.rank());
            for (axis, (dim, tile_dim)) in shape.dims().iter().zip(tile.dims()).enumerate() {
                let coordinate = number / tile_strides[axis] % tiles.dims()[axis];
                // Tiles past the end are empty where the dimension does not divide.
                let start = coordinate.saturating_mul(*tile_dim).min(*dim);
                let end = start.saturating_add(*tile_dim).min(*dim);
                origin.push(start);
                extent.push(end - start);
            }
            if let Some(domain) = usize::try_from(position)
                .ok()
                .and_then(|p| domains.get_mut(p))
            {
                *domain = IndexDomain::new(origin, Shape::new(extent)?);
            }
        }
        Ok(domains)
    }
}

fn check_rank(tiles: &TileAssignment, shape: &Shape) -> Result<()> {
    let expected = tiles.data_dims().len();
    if shape.rank() == expected {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "Numbers of dimensions don't match. From Shape {} vs from HloSharding {expected}",
        shape.rank()
    )))
}

fn no_domains(kind: &str) -> Status {
    Status::invalid_argument(format!("{kind} sharding does not support IndexDomains"))
}

#[cfg(test)]
mod tests;
