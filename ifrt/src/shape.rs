//! [`Shape`]: the dimensions of an array.
//!
//! A [`DynamicShape`] has dimensions that are only bounded. JAX makes none; they exist for the
//! shardings and messages that mention them.
//!
//! # Mirrors
//! `xla/python/ifrt/shape.h`.

mod dynamic;

use std::fmt;

pub use dynamic::{BoundedDynamicShapeTag, DynamicShape};

use crate::status::{Result, Status};

/// The static dimensions of an array, none of them negative, their product within `i64`.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape {
    dims: Box<[i64]>,
}

impl Shape {
    /// A shape with these dimensions, major to minor.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a dimension is negative or the number of elements exceeds `i64`.
    pub fn new(dims: impl Into<Box<[i64]>>) -> Result<Self> {
        let shape = Self { dims: dims.into() };
        if let Some(dim) = shape.dims.iter().find(|dim| **dim < 0) {
            return Err(Status::invalid_argument(format!(
                "shape {shape} has the negative dimension {dim}"
            )));
        }
        if !shape.dims.contains(&0)
            && shape
                .dims
                .iter()
                .try_fold(1_i64, |n, dim| n.checked_mul(*dim))
                .is_none()
        {
            return Err(Status::invalid_argument(format!(
                "shape {shape} has more elements than a 64-bit number can count"
            )));
        }
        Ok(shape)
    }

    /// The shape of a scalar: no dimensions, one element.
    pub fn scalar() -> Self {
        Self::default()
    }

    /// The dimensions, major to minor.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The number of elements; 1 for a scalar.
    pub fn num_elements(&self) -> i64 {
        if self.dims.contains(&0) {
            0
        } else {
            self.dims.iter().product()
        }
    }
}

impl TryFrom<&[i64]> for Shape {
    type Error = Status;

    fn try_from(dims: &[i64]) -> Result<Self> {
        Self::new(dims)
    }
}

impl<const N: usize> TryFrom<[i64; N]> for Shape {
    type Error = Status;

    fn try_from(dims: [i64; N]) -> Result<Self> {
        Self::new(dims)
    }
}

/// `[2,3]`, the form of the messages that clients see.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (position, dim) in self.dims.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            write!(f, "{dim}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shape({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_elements() {
        for (dims, count) in [
            (&[][..], 1),
            (&[0], 0),
            (&[1, 0], 0),
            (&[0, 1], 0),
            (&[2], 2),
            (&[2, 3], 6),
            (&[i64::MAX], i64::MAX),
            (&[i64::MAX, 0, i64::MAX], 0),
        ] {
            assert_eq!(Shape::new(dims).unwrap().num_elements(), count, "{dims:?}");
        }
        assert_eq!(Shape::new(vec![1; 65536]).unwrap().rank(), 65536);
    }

    #[test]
    fn refuses_what_cannot_be() {
        assert!(
            Shape::new([2, -1])
                .unwrap_err()
                .message()
                .contains("negative dimension -1")
        );
        assert!(Shape::new([3_037_000_500, 3_037_000_500, 4]).is_err());
    }

    #[test]
    fn prints_like_the_reference() {
        assert_eq!(Shape::new([2, 3]).unwrap().to_string(), "[2,3]");
        assert_eq!(Shape::scalar().to_string(), "[]");
    }
}
