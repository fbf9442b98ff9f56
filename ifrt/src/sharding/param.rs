//! [`ShardingParam`]: IFRT's own way to describe tiles.
//!
//! # Mirrors
//! `xla/python/ifrt/ir/sharding_param.h`.

use std::fmt;

use crate::index::IndexDomain;
use crate::shape::Shape;
use crate::status::{Result, Status};

/// Tiles by a mesh of devices: `dim_shards` tiles per dimension, handed to the devices of a mesh
/// with the axes `axis_sizes`, walked in the order `permutation` (its first entry innermost).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShardingParam {
    dim_shards: Vec<i64>,
    permutation: Vec<i32>,
    axis_sizes: Vec<i32>,
    unreduced_axes: Vec<i32>,
}

/// More devices than this are a mistake or an attack, not a machine.
const MAX_DEVICES: i64 = 1 << 24;

impl ShardingParam {
    /// Parameters that fit together.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if `permutation` is none of the axes, a number is not positive, an
    /// unreduced axis does not exist, or the tiles cannot be handed out evenly.
    pub fn new(
        dim_shards: Vec<i64>,
        permutation: Vec<i32>,
        axis_sizes: Vec<i32>,
        unreduced_axes: Vec<i32>,
    ) -> Result<Self> {
        let param = Self {
            dim_shards,
            permutation,
            axis_sizes,
            unreduced_axes,
        };
        let error = |what: &str| Err(invalid(format!("sharding {param} {what}")));
        let axes = param.axis_sizes.len();
        if axes == 0 || param.permutation.len() != axes {
            return error("needs a permutation of at least one axis");
        }
        if !distinct_below(&param.permutation, axes) {
            return error("has a permutation that is none");
        }
        if !distinct_below(&param.unreduced_axes, axes) {
            return error("has unreduced axes that are repeated or do not exist");
        }
        let product = |mut values: Box<dyn Iterator<Item = i64> + '_>| {
            values
                .try_fold(1_i64, |n, value| {
                    if value > 0 {
                        n.checked_mul(value)
                    } else {
                        None
                    }
                })
                .filter(|n| *n <= MAX_DEVICES)
        };
        let devices = product(Box::new(
            param.axis_sizes.iter().map(|size| i64::from(*size)),
        ));
        let tiles = product(Box::new(param.dim_shards.iter().copied()));
        match (devices, tiles) {
            (Some(devices), Some(tiles)) if devices % tiles == 0 => Ok(param),
            (Some(_), Some(_)) => error("has tiles that its devices cannot share evenly"),
            _ => error("has sizes that are not positive or too large"),
        }
    }

    /// The number of tiles in each dimension.
    pub fn dim_shards(&self) -> &[i64] {
        &self.dim_shards
    }

    /// The order in which the axes are walked, innermost first.
    pub fn permutation(&self) -> &[i32] {
        &self.permutation
    }

    /// The sizes of the axes.
    pub fn axis_sizes(&self) -> &[i32] {
        &self.axis_sizes
    }

    /// The axes along which devices hold partial sums.
    pub fn unreduced_axes(&self) -> &[i32] {
        &self.unreduced_axes
    }

    /// The number of devices.
    pub fn num_devices(&self) -> i64 {
        self.axis_sizes
            .iter()
            .map(|size| i64::from(*size))
            .product()
    }

    pub(super) fn check_devices(&self, count: usize) -> Result<()> {
        if i64::try_from(count) == Ok(self.num_devices()) {
            return Ok(());
        }
        Err(invalid(format!(
            "Device counts don't match. From ShardingParam {} vs from DeviceList {count}",
            self.num_devices()
        )))
    }

    pub(super) fn is_fully_replicated(&self) -> bool {
        self.dim_shards.iter().all(|shards| *shards == 1)
    }

    pub(super) fn shard_shape(&self, shape: &Shape) -> Result<Shape> {
        if shape.rank() != self.dim_shards.len() {
            return Err(invalid(format!(
                "Numbers of dimensions don't match. From Shape {} vs from ShardingParam {}",
                shape.rank(),
                self.dim_shards.len()
            )));
        }
        let mut dims = Vec::with_capacity(shape.rank());
        for (dim, shards) in shape.dims().iter().zip(&self.dim_shards) {
            if dim % shards != 0 {
                return Err(invalid(format!(
                    "Uneven shard is not supported. dim: {dim}, dim_shards: {shards}"
                )));
            }
            dims.push(dim / shards);
        }
        Shape::new(dims)
    }

    pub(super) fn index_domains(&self, shape: &Shape) -> Result<Vec<IndexDomain>> {
        let tile = self.shard_shape(shape)?;
        let tiles: i64 = self.dim_shards.iter().product();
        let copies = self.num_devices() / tiles;
        let order = self.device_order();
        let mut domains = vec![IndexDomain::whole(Shape::scalar()); order.len()];
        for (place, device) in (0..).zip(order) {
            let mut rest = place / copies;
            let mut origin = vec![0; shape.rank()];
            for axis in (0..shape.rank()).rev() {
                origin[axis] = rest % self.dim_shards[axis] * tile.dims()[axis];
                rest /= self.dim_shards[axis];
            }
            if let Some(domain) = usize::try_from(device)
                .ok()
                .and_then(|d| domains.get_mut(d))
            {
                *domain = IndexDomain::new(origin, tile.clone());
            }
        }
        Ok(domains)
    }

    /// The devices in the order of the tiles: the last axis of the permutation is outermost.
    fn device_order(&self) -> Vec<i64> {
        let mut order = vec![0];
        for axis in self
            .permutation
            .iter()
            .rev()
            .filter_map(|axis| usize::try_from(*axis).ok())
        {
            let stride: i64 = self.axis_sizes[..axis]
                .iter()
                .map(|size| i64::from(*size))
                .product();
            let size = i64::from(self.axis_sizes[axis]);
            order = order
                .iter()
                .flat_map(|base| (0..size).map(move |index| base + index * stride))
                .collect();
        }
        order
    }
}

fn distinct_below(values: &[i32], limit: usize) -> bool {
    let mut seen = vec![false; limit];
    values.iter().all(|value| {
        let slot = usize::try_from(*value)
            .ok()
            .and_then(|value| seen.get_mut(value));
        slot.is_some_and(|seen| !std::mem::replace(seen, true))
    })
}

fn invalid(message: String) -> Status {
    Status::invalid_argument(message)
}

/// `2x1x3 to [1,0] on 2x3`, the form of the reference.
impl fmt::Display for ShardingParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn join<T: fmt::Display>(values: &[T], separator: &str) -> String {
            values
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(separator)
        }
        write!(
            f,
            "{} to [{}] on {}",
            join(&self.dim_shards, "x"),
            join(&self.permutation, ","),
            join(&self.axis_sizes, "x")
        )?;
        if !self.unreduced_axes.is_empty() {
            write!(f, " unreduced [{}]", join(&self.unreduced_axes, ","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tiles, permutation, axes and shape; origins and extent of the parts.
    type Case<'a> = (
        &'a [i64],
        &'a [i32],
        &'a [i32],
        &'a [i64],
        &'a [&'a [i64]],
        &'a [i64],
    );

    #[test]
    fn origins_of_the_reference() {
        let (a, b, c) = ([3, 2], [3, 6], [0; 0]);
        let cases: [Case<'_>; 4] = [
            (
                &[2, 3],
                &[0, 1],
                &[2, 3],
                &[6, 6],
                &[&[0, 0], &[0, 2], &[0, 4], &[3, 0], &[3, 2], &[3, 4]],
                &a,
            ),
            (
                &[2, 3],
                &[1, 0],
                &[3, 2],
                &[6, 6],
                &[&[0, 0], &[0, 4], &[3, 2], &[0, 2], &[3, 0], &[3, 4]],
                &a,
            ),
            (
                &[2, 1],
                &[0, 1],
                &[2, 3],
                &[6, 6],
                &[&[0, 0], &[0, 0], &[0, 0], &[3, 0], &[3, 0], &[3, 0]],
                &b,
            ),
            (&[], &[0], &[6], &[], &[&[], &[], &[], &[], &[], &[]], &c),
        ];
        for (dim_shards, permutation, axes, shape, origins, tile) in cases {
            let param =
                ShardingParam::new(dim_shards.into(), permutation.into(), axes.into(), vec![])
                    .unwrap();
            let domains = param.index_domains(&Shape::new(shape).unwrap()).unwrap();
            let found: Vec<&[i64]> = domains.iter().map(IndexDomain::origin).collect();
            assert_eq!(found, origins, "{param}");
            assert!(
                domains.iter().all(|domain| domain.shape().dims() == tile),
                "{param}"
            );
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        for (dim_shards, permutation, axes, unreduced) in [
            (&[1][..], &[][..], &[][..], &[][..]),
            (&[1], &[0, 0], &[2, 2], &[]),
            (&[1], &[0, 2], &[2, 2], &[]),
            (&[1], &[0], &[2, 2], &[]),
            (&[3], &[0], &[2], &[]),
            (&[0], &[0], &[2], &[]),
            (&[1], &[0], &[-2], &[]),
            (&[1], &[0], &[2], &[1]),
            (&[1], &[0, 1, 2], &[i32::MAX, i32::MAX, i32::MAX], &[]),
        ] {
            let param = ShardingParam::new(
                dim_shards.into(),
                permutation.into(),
                axes.into(),
                unreduced.into(),
            );
            assert!(
                param.is_err(),
                "{dim_shards:?} {permutation:?} {axes:?} {unreduced:?}"
            );
        }
    }
}
