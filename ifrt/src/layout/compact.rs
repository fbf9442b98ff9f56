//! [`CompactLayout`]: an order of dimensions without padding.
//!
//! # Mirrors
//! `xla/python/ifrt/layout.h`, `CompactLayout`.

use std::fmt;

use super::Layout;
use crate::dtype::DType;
use crate::shape::Shape;
use crate::status::{Result, Status};

/// An order of dimensions without padding: elements are packed bit by bit.
///
/// A [`Layout`] of the same order differs from it for types below a byte, which a layout of XLA
/// does not pack unless it says so. Runtimes speak of [`Layout`]; this type is for peers that send
/// or expect a compact one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompactLayout {
    major_to_minor: Box<[usize]>,
}

impl CompactLayout {
    /// The layout with this order of dimensions, from the slowest to the fastest.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the numbers are no permutation.
    pub fn new(major_to_minor: impl Into<Box<[usize]>>) -> Result<Self> {
        let major_to_minor = major_to_minor.into();
        let rank = major_to_minor.len();
        let error = |expected: &str| {
            Err(Status::invalid_argument(format!(
                "CompactLayout expects major_to_minor with {expected} in range [0, {rank}), but got \
                 major_to_minor=[{}]",
                join(&major_to_minor)
            )))
        };
        let mut seen = vec![false; rank];
        for dim in &major_to_minor {
            match seen.get_mut(*dim) {
                Some(seen) => *seen = true,
                None => return error("elements"),
            }
        }
        if seen.contains(&false) {
            return error("all elements");
        }
        Ok(Self { major_to_minor })
    }

    /// The layout of a dense array, major to minor, with so many dimensions.
    pub fn c_order(rank: usize) -> Self {
        Self {
            major_to_minor: (0..rank).collect(),
        }
    }

    /// The dimensions from the slowest to the fastest.
    pub fn major_to_minor(&self) -> &[usize] {
        &self.major_to_minor
    }

    /// The bytes that a shard takes; `None` if the dtype has no size.
    ///
    /// # Shapes
    /// `shard_shape` is that of a shard, not of the whole array.
    ///
    /// # Units
    /// Bytes; elements below a byte share them.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the layout is for another number of dimensions or the size exceeds 64
    /// bits.
    pub fn byte_size(&self, dtype: DType, shard_shape: &Shape) -> Result<Option<u64>> {
        if self.major_to_minor.len() != shard_shape.rank() {
            return Err(Status::invalid_argument(format!(
                "CompactLayout expects Shape with the same number of dimensions as major_to_minor \
                 [{}], but got shard_shape={shard_shape}",
                join(&self.major_to_minor)
            )));
        }
        let Some(bits) = dtype.bit_size() else {
            return Ok(None);
        };
        let size = u64::try_from(shard_shape.num_elements())
            .ok()
            .zip(u64::try_from(bits).ok())
            .and_then(|(elements, bits)| elements.checked_mul(bits));
        match size {
            Some(bits) => Ok(Some(bits.div_ceil(8))),
            None => Err(Status::invalid_argument(format!(
                "an array of shape {shard_shape} and dtype {dtype} has more bits than a 64-bit \
                 number can count"
            ))),
        }
    }

    /// The layout of XLA with the same order.
    ///
    /// # Mirrors
    /// `xla/python/pjrt_ifrt/pjrt_layout.h`, `ToPjRtLayout`.
    pub fn to_layout(&self) -> Layout {
        // A permutation of the positions of a slice fits.
        let minor_to_major = self.major_to_minor.iter().rev();
        Layout {
            minor_to_major: minor_to_major
                .map(|dim| i64::try_from(*dim).unwrap_or(i64::MAX))
                .collect(),
            properties: "".into(),
        }
    }
}

fn join(dims: &[usize]) -> String {
    let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
    dims.join(",")
}

/// `CompactLayout(major_to_minor=[1,0])`, the form of the reference.
impl fmt::Display for CompactLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = join(&self.major_to_minor);
        write!(f, "CompactLayout(major_to_minor=[{order}])")
    }
}
