//! What a [`Sharding`](super::Sharding) and a [`ShardingSpec`](super::ShardingSpec) have in common:
//! the shapes and parts of `num_shards` shards, whatever devices they live on.

use std::fmt;

use super::ShardingKind;
use crate::index::IndexDomain;
use crate::shape::{DynamicShape, Shape};
use crate::status::{Result, Status};
use crate::xla::HloSharding;

/// More shards than this are a mistake or an attack, not a machine.
const MAX_SHARDS: usize = 1 << 24;

/// Which of the two types speaks; their messages differ in the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Sharding,
    Spec,
}

/// A partitioning, the number of shards, and the name for messages.
#[derive(Clone, Copy)]
pub(super) struct Partition<'a> {
    pub(super) kind: &'a ShardingKind,
    pub(super) num_shards: usize,
    pub(super) form: Form,
}

/// `HloSharding` or `HloShardingSpec`.
impl fmt::Display for Partition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        f.write_str(match self.form {
            Form::Sharding => "",
            Form::Spec => "Spec",
        })
    }
}

impl Partition<'_> {
    /// Checks that the partitioning is for this number of shards.
    pub(super) fn check(&self) -> Result<()> {
        let count = self.num_shards;
        if count == 0 || count > MAX_SHARDS {
            return Err(invalid(format!(
                "{self} needs at least one device and at most {MAX_SHARDS}, but has {count}"
            )));
        }
        match self.kind {
            ShardingKind::SingleDevice if count != 1 => Err(invalid(format!(
                "{self} can only have one device, but was asked to have {count} devices"
            ))),
            ShardingKind::Hlo(HloSharding::Tiled(tiles))
                if i64::try_from(count) != Ok(tiles.num_devices()) =>
            {
                Err(invalid(format!(
                    "sharding's tile count and device count does not match: {} vs. {count}; \
                     sharding={tiles}",
                    tiles.num_devices()
                )))
            }
            ShardingKind::Param(param) => param.check_devices(count),
            _ => Ok(()),
        }
    }

    pub(super) fn is_fully_replicated(&self) -> bool {
        match self.kind {
            ShardingKind::SingleDevice => true,
            ShardingKind::Opaque(_)
            | ShardingKind::Concrete { .. }
            | ShardingKind::ConcreteDynamic { .. } => false,
            ShardingKind::ConcreteEven {
                is_fully_replicated,
                ..
            } => *is_fully_replicated,
            ShardingKind::Param(param) => param.is_fully_replicated(),
            ShardingKind::Hlo(hlo) => hlo.is_fully_replicated(self.num_shards),
        }
    }

    /// The one shape that all shards have.
    pub(super) fn shard_shape(&self, asked: &Shape) -> Result<Shape> {
        match self.kind {
            ShardingKind::SingleDevice => Ok(asked.clone()),
            ShardingKind::Opaque(_) => Err(self.lacks("shard shape information")),
            ShardingKind::Concrete {
                shape,
                shard_shapes,
                ..
            } => match shard_shapes.split_first() {
                Some((first, rest)) if rest.iter().all(|other| other == first) => {
                    self.check_shape(
                        "has a shard shape for",
                        "get a shard shape for",
                        shape,
                        asked,
                    )?;
                    Ok(first.clone())
                }
                _ => Err(self.lacks("a fixed shard shape")),
            },
            ShardingKind::ConcreteDynamic { .. } => Err(self.lacks("a fixed shard shape")),
            ShardingKind::ConcreteEven {
                shape, shard_shape, ..
            } => {
                self.check_shape(
                    "has a shard shape for",
                    "get a shard shape for",
                    shape,
                    asked,
                )?;
                Ok(shard_shape.clone())
            }
            ShardingKind::Param(param) => param.shard_shape(asked),
            ShardingKind::Hlo(hlo) => hlo.shard_shape(asked),
        }
    }

    /// The shape of each shard; for concrete partitionings of each shard that has one.
    pub(super) fn shard_shapes(&self, asked: &Shape) -> Result<Vec<Shape>> {
        match self.kind {
            ShardingKind::Concrete {
                shape,
                shard_shapes,
                ..
            } => {
                self.check_shape("can only disassemble", "disassemble", shape, asked)?;
                Ok(shard_shapes.clone())
            }
            ShardingKind::ConcreteDynamic { .. } => Err(invalid(format!(
                "{self} holds dynamic shape, but was asked to disassemble static shape {asked}"
            ))),
            ShardingKind::ConcreteEven {
                shape, shard_shape, ..
            } => {
                self.check_shape("can only disassemble", "disassemble", shape, asked)?;
                Ok(vec![shard_shape.clone(); self.num_shards])
            }
            ShardingKind::Hlo(hlo) => hlo.shard_shapes(asked, self.num_shards),
            _ => Ok(vec![self.shard_shape(asked)?; self.num_shards]),
        }
    }

    /// The shape of each shard of an array with dimensions that are only bounded.
    pub(super) fn dynamic_shard_shapes(&self, asked: &DynamicShape) -> Result<Vec<DynamicShape>> {
        match self.kind {
            ShardingKind::SingleDevice => Ok(vec![asked.clone()]),
            ShardingKind::Opaque(_) => Err(self.lacks("shard shape information")),
            ShardingKind::Concrete { .. } => Err(invalid(format!(
                "{self} holds static shape, but was asked to disassemble dynamic shape {asked}"
            ))),
            ShardingKind::ConcreteDynamic {
                shape,
                shard_shapes,
            } if shape == asked => Ok(shard_shapes.clone()),
            ShardingKind::ConcreteDynamic { shape, .. } => Err(invalid(format!(
                "{self} can only disassemble dynamic shape {shape}, but was asked to disassemble \
                 dynamic shape {asked}"
            ))),
            _ => Err(invalid(format!(
                "{self} can only disassemble static shape, but was asked to disassemble dynamic \
                 shape {asked}"
            ))),
        }
    }

    /// The part that each shard holds; for concrete partitionings of each shard that has a shape.
    pub(super) fn index_domains(&self, asked: &Shape) -> Result<Vec<IndexDomain>> {
        match self.kind {
            ShardingKind::SingleDevice => Ok(vec![IndexDomain::whole(asked.clone())]),
            ShardingKind::Concrete {
                shape,
                index_domains: Some(domains),
                ..
            } => {
                self.check_shape(
                    "has index domains for",
                    "get index domains for",
                    shape,
                    asked,
                )?;
                Ok(domains.clone())
            }
            // The flag alone proves nothing, and the spec of the reference never answers.
            ShardingKind::ConcreteEven {
                shape,
                shard_shape,
                is_fully_replicated: true,
            } if self.form == Form::Sharding && shape == asked && shard_shape == asked => {
                Ok(vec![IndexDomain::whole(asked.clone()); self.num_shards])
            }
            ShardingKind::Param(param) => param.index_domains(asked),
            ShardingKind::Hlo(hlo) => hlo.index_domains(asked, self.num_shards),
            _ => Err(self.lacks("index domain information")),
        }
    }

    fn check_shape(&self, has: &str, asked_to: &str, own: &Shape, asked: &Shape) -> Result<()> {
        if own == asked {
            return Ok(());
        }
        Err(invalid(format!(
            "{self} {has} shape {own}, but was asked to {asked_to} shape {asked}"
        )))
    }

    fn lacks(&self, what: &str) -> Status {
        invalid(format!("{self} does not have {what}"))
    }
}

pub(super) fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}
