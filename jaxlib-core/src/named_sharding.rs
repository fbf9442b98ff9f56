//! [`NamedSharding`]: an array spread over a mesh by the names of its axes.
//!
//! # Mirrors
//! `jax/_src/named_sharding.py`; the conversion to XLA's form is that of
//! `named_sharding_to_xla_hlo_sharding` for axes of type `Auto`.

use std::fmt;
use std::sync::Arc;

use ifrt::xla::{DeviceOrder, HloSharding, TileAssignment};
use ifrt::{MemoryKind, Result, Shape, Status};

use crate::mesh::Mesh;
use crate::messages;
use crate::partition_spec::{PartitionDim, PartitionSpec};
use crate::sharding::Index;

/// An array spread over a mesh by the names of its axes. A cheap clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NamedSharding(Arc<Inner>);

#[derive(PartialEq, Eq, Hash)]
struct Inner {
    mesh: Mesh,
    spec: PartitionSpec,
    memory_kind: MemoryKind,
}

impl NamedSharding {
    /// A sharding over the mesh, in the default memory of its devices.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the mesh has no such axis, or an axis splits two dimensions.
    pub fn new(mesh: &Mesh, spec: impl Into<PartitionSpec>) -> Result<Self> {
        let inner = Inner {
            mesh: mesh.clone(),
            spec: spec.into(),
            memory_kind: MemoryKind::default(),
        };
        for (position, axis) in inner.spec.axes().enumerate() {
            if mesh.axis_size(axis).is_none() {
                let names: Vec<String> = mesh.axes().map(|(name, _)| format!("'{name}'")).collect();
                return Err(Status::invalid_argument(format!(
                    "Resource axis: {axis} of {} is not found in mesh: {}.",
                    inner.spec,
                    messages::tuple(&names)
                )));
            }
            if inner.spec.axes().take(position).any(|other| other == axis) {
                return Err(Status::invalid_argument(format!(
                    "A single NamedSharding spec specification can map every mesh axis to at most \
                     one positional dimension, but {} has duplicate entries for `{axis}`",
                    inner.spec
                )));
            }
        }
        Ok(Self(Arc::new(inner)))
    }

    /// The same in another memory of the devices.
    #[must_use]
    pub fn with_memory_kind(&self, memory_kind: MemoryKind) -> Self {
        Self(Arc::new(Inner {
            mesh: self.mesh().clone(),
            spec: self.spec().clone(),
            memory_kind,
        }))
    }

    /// The mesh.
    pub fn mesh(&self) -> &Mesh {
        &self.0.mesh
    }

    /// The spec.
    pub fn spec(&self) -> &PartitionSpec {
        &self.0.spec
    }

    /// The kind of memory.
    pub fn memory_kind(&self) -> &MemoryKind {
        &self.0.memory_kind
    }

    /// True if each device has the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        self.spec()
            .axes()
            .all(|axis| self.mesh().axis_size(axis) == Some(1))
    }

    /// The number of parts of each dimension of an array of this rank.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the spec speaks of more dimensions, or leaves one to the compiler.
    pub fn tiling(&self, rank: usize) -> Result<Vec<i64>> {
        let dims = self.spec().dims();
        if dims.len() > rank {
            let hint = if rank == 0 {
                " For scalars the PartitionSpec should be P()"
            } else {
                ""
            };
            return Err(Status::invalid_argument(format!(
                "Sharding {self} is only valid for values of rank at least {}, but was applied to \
                 a value of rank {rank}.{hint}",
                dims.len()
            )));
        }
        if dims.contains(&PartitionDim::Unconstrained) {
            return Err(Status::invalid_argument(format!(
                "Sharding {self} leaves a dimension to the compiler, so it does not say where data \
                 is. Name axes or None instead of UNCONSTRAINED."
            )));
        }
        let mut tiling = vec![1_i64; rank];
        for (parts, dim) in tiling.iter_mut().zip(dims) {
            for axis in dim.names() {
                let size = self.mesh().axis_size(axis).unwrap_or(1);
                // The product is at most the number of devices.
                *parts *= i64::try_from(size).unwrap_or(i64::MAX);
            }
        }
        Ok(tiling)
    }

    /// The shape of each part of an array of this shape.
    ///
    /// # Errors
    /// INVALID_ARGUMENT as [`NamedSharding::tiling`], or if a dimension cannot be split equally.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape> {
        let tiling = self.tiling(shape.rank())?;
        let uneven = shape
            .dims()
            .iter()
            .zip(&tiling)
            .position(|(dim, parts)| dim % parts != 0);
        if let Some(axis) = uneven {
            return Err(messages::indivisible(
                &self.to_string(),
                shape.dims(),
                &tiling,
                axis,
            ));
        }
        let dims: Vec<i64> = shape
            .dims()
            .iter()
            .zip(&tiling)
            .map(|(dim, parts)| dim / parts)
            .collect();
        Shape::new(dims)
    }

    /// The part of an array that each device has, in the order of the mesh.
    ///
    /// # Errors
    /// INVALID_ARGUMENT as [`NamedSharding::shard_shape`].
    pub fn index_map(&self, shape: &Shape) -> Result<Vec<Index>> {
        let shard = self.shard_shape(shape)?;
        let names: Vec<&str> = self.mesh().axes().map(|(name, _)| name).collect();
        let sizes: Vec<usize> = self.mesh().axes().map(|(_, size)| size).collect();
        let part_of = |dim: &PartitionDim, coordinates: &[usize]| {
            dim.names().iter().fold(0_i64, |part, axis| {
                let axis = names.iter().position(|name| **name == **axis).unwrap_or(0);
                let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
                part * number(sizes[axis]) + number(coordinates[axis])
            })
        };
        let index = |position: usize| {
            let coordinates = self.mesh().coordinates(position);
            let dims = shape.dims().iter().zip(shard.dims()).enumerate();
            dims.map(|(axis, (dim, part_size))| {
                if dim == part_size {
                    return None;
                }
                let part = part_of(&self.spec().dims()[axis], &coordinates);
                Some(part * part_size..(part + 1) * part_size)
            })
            .collect()
        };
        Ok((0..self.mesh().devices().len()).map(index).collect())
    }

    /// XLA's form of the sharding, for arrays of this rank.
    ///
    /// # Errors
    /// INVALID_ARGUMENT as [`NamedSharding::tiling`].
    pub fn to_hlo(&self, rank: usize) -> Result<HloSharding> {
        let mut dims = self.tiling(rank)?;
        // Axes of size one split nothing.
        let axes: Vec<(&str, usize)> = self.mesh().axes().filter(|(_, size)| *size > 1).collect();
        let position = |name: &str| axes.iter().position(|(axis, _)| *axis == name);
        let mut order: Vec<usize> = self
            .spec()
            .axes()
            .filter_map(|axis| position(axis))
            .collect();
        if order.is_empty() {
            return Ok(HloSharding::Replicated);
        }
        let unused: Vec<usize> = (0..axes.len())
            .filter(|axis| !order.contains(axis))
            .collect();
        if !unused.is_empty() {
            let copies: usize = unused.iter().map(|axis| axes[*axis].1).product();
            dims.push(i64::try_from(copies).unwrap_or(i64::MAX));
        }
        let replicate = !unused.is_empty();
        order.extend(unused);
        let sizes: Vec<usize> = axes.iter().map(|(_, size)| *size).collect();
        TileAssignment::new(dims, iota(&sizes, &order), Vec::new(), replicate)
            .map(HloSharding::Tiled)
    }
}

/// The numbers from zero as an array of `sizes`, transposed by `order`, in the shortest form: axes
/// that stay neighbors are one.
fn iota(sizes: &[usize], order: &[usize]) -> DeviceOrder {
    // Runs of neighboring axes as (first axis, number of axes), in the order of the result.
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &axis in order {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == axis => *count += 1,
            _ => runs.push((axis, 1)),
        }
    }
    let mut by_axis = runs.clone();
    by_axis.sort_unstable();
    let reshape_dims = by_axis
        .iter()
        .map(|(first, count)| {
            let size: usize = sizes[*first..first + count].iter().product();
            i64::try_from(size).unwrap_or(i64::MAX)
        })
        .collect();
    let transpose_perm = runs
        .iter()
        .filter_map(|run| by_axis.iter().position(|other| other == run))
        .filter_map(|position| i32::try_from(position).ok())
        .collect();
    DeviceOrder::Iota {
        reshape_dims,
        transpose_perm,
    }
}

/// As Python shows it.
impl fmt::Display for NamedSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "NamedSharding(mesh={}, spec={}, memory_kind={})",
            self.mesh(),
            self.spec(),
            self.memory_kind()
        )
    }
}

impl fmt::Debug for NamedSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
