//! [`Index`] and [`IndexDomain`]: a position in an array, and the part that a shard holds.
//!
//! # Mirrors
//! `xla/python/ifrt/index.h`, `xla/python/ifrt/index_domain.h`. The operators of the reference
//! abort on different numbers of dimensions and wrap on overflow; here they are methods that
//! return an error.

use std::fmt;

use crate::shape::Shape;
use crate::status::{Result, Status};

/// A position in an array: one number per dimension, none of them negative.
///
/// # Examples
/// ```
/// # fn main() -> ifrt::Result<()> {
/// use ifrt::index::Index;
/// let tile = Index::new([1, 2])?;
/// assert_eq!(tile.checked_mul(&[3, 2])?, Index::new([3, 4])?);
/// assert!(tile.checked_sub(&Index::new([0, 3])?).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Index {
    elements: Box<[i64]>,
}

impl Index {
    /// The position with these numbers, major to minor.
    ///
    /// # Units
    /// Elements, or tiles where the index counts tiles.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a number is negative.
    pub fn new(elements: impl Into<Box<[i64]>>) -> Result<Self> {
        let elements = elements.into();
        match elements.iter().find(|element| **element < 0) {
            None => Ok(Self { elements }),
            Some(element) => Err(Status::invalid_argument(format!(
                "Index expects non-negative element values, but got {element}"
            ))),
        }
    }

    /// The first position of an array with so many dimensions.
    pub fn zeros(rank: usize) -> Self {
        Self {
            elements: vec![0; rank].into(),
        }
    }

    /// The numbers, major to minor.
    pub fn elements(&self) -> &[i64] {
        &self.elements
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.elements.len()
    }

    /// The sum in each dimension.
    ///
    /// # Shapes
    /// Both have the same number of dimensions.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the numbers of dimensions differ or a sum exceeds `i64`.
    pub fn checked_add(&self, offset: &Self) -> Result<Self> {
        self.zip(&offset.elements, '+', i64::checked_add)
    }

    /// The difference in each dimension.
    ///
    /// # Shapes
    /// Both have the same number of dimensions.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the numbers of dimensions differ or a difference is negative.
    pub fn checked_sub(&self, offset: &Self) -> Result<Self> {
        self.zip(&offset.elements, '-', i64::checked_sub)
    }

    /// The product in each dimension, for example of the number of a tile and its extent.
    ///
    /// # Shapes
    /// `multiplier` has one number per dimension.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the numbers of dimensions differ, or a product is negative or exceeds
    /// `i64`.
    pub fn checked_mul(&self, multiplier: &[i64]) -> Result<Self> {
        self.zip(multiplier, '*', i64::checked_mul)
    }

    fn zip(
        &self,
        other: &[i64],
        name: char,
        operation: fn(i64, i64) -> Option<i64>,
    ) -> Result<Self> {
        if self.elements.len() != other.len() {
            return Err(Status::invalid_argument(format!(
                "{self} {name} {other:?} has different numbers of dimensions"
            )));
        }
        let elements: Option<Box<[i64]>> = self
            .elements
            .iter()
            .zip(other)
            .map(|(a, b)| operation(*a, *b).filter(|result| *result >= 0))
            .collect();
        elements.map(|elements| Self { elements }).ok_or_else(|| {
            Status::invalid_argument(format!(
                "{self} {name} {other:?} is negative or exceeds 64 bits"
            ))
        })
    }
}

/// `[1,2]`, the form of the reference.
impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (position, element) in self.elements.iter().enumerate() {
            let separator = if position > 0 { "," } else { "" };
            write!(f, "{separator}{element}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({self})")
    }
}

/// The part `origin .. origin + shape` of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexDomain {
    origin: Index,
    shape: Shape,
}

impl IndexDomain {
    /// The part that begins at `origin` (one number per dimension of `shape`).
    ///
    /// For origins that are known to fit; [`IndexDomain::try_new`] checks.
    pub fn new(origin: impl Into<Box<[i64]>>, shape: Shape) -> Self {
        Self {
            origin: Index {
                elements: origin.into(),
            },
            shape,
        }
    }

    /// The part that begins at `origin`.
    ///
    /// # Shapes
    /// `origin` has one number per dimension of `shape`.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the numbers of dimensions differ or the part ends beyond `i64`.
    pub fn try_new(origin: Index, shape: Shape) -> Result<Self> {
        if origin.rank() != shape.rank() {
            return Err(Status::invalid_argument(format!(
                "an index domain has the origin {origin} and the shape {shape}, which have \
                 different numbers of dimensions"
            )));
        }
        let mut ends = origin.elements.iter().zip(shape.dims());
        if ends.any(|(start, dim)| start.checked_add(*dim).is_none()) {
            return Err(Status::invalid_argument(format!(
                "an index domain of shape {shape} at {origin} ends beyond 64 bits"
            )));
        }
        Ok(Self { origin, shape })
    }

    /// The whole of an array of this shape.
    pub fn whole(shape: Shape) -> Self {
        Self {
            origin: Index::zeros(shape.rank()),
            shape,
        }
    }

    /// Where the part begins.
    ///
    /// # Units
    /// Elements.
    pub fn origin(&self) -> &[i64] {
        &self.origin.elements
    }

    /// Where the part begins, as an index.
    pub const fn origin_index(&self) -> &Index {
        &self.origin
    }

    /// The extent of the part.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The same extent, moved towards the end of the array.
    ///
    /// # Shapes
    /// `offset` has one number per dimension.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the numbers of dimensions differ or the part would end beyond `i64`.
    pub fn checked_add(&self, offset: &Index) -> Result<Self> {
        Self::try_new(self.origin.checked_add(offset)?, self.shape.clone())
    }

    /// The same extent, moved towards the start of the array.
    ///
    /// # Shapes
    /// `offset` has one number per dimension.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the numbers of dimensions differ or the part would begin before zero.
    pub fn checked_sub(&self, offset: &Index) -> Result<Self> {
        Self::try_new(self.origin.checked_sub(offset)?, self.shape.clone())
    }
}

/// `IndexDomain(origin=[1,2],shape=[3,4])`, the form of the reference.
impl fmt::Display for IndexDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "IndexDomain(origin={},shape={})",
            self.origin, self.shape
        )
    }
}
