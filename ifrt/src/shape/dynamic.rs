//! [`DynamicShape`]: dimensions of which some are only bounded.
//!
//! # Mirrors
//! `xla/python/ifrt/shape.h`, `BoundedDynamicShapeTag` and `DynamicShape`.

use std::fmt;

use super::Shape;
use crate::status::{Result, Status};

/// Which dimensions of a [`DynamicShape`] are bounded rather than fixed; at least one is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoundedDynamicShapeTag {
    dynamic_dims: Box<[bool]>,
}

impl BoundedDynamicShapeTag {
    /// A tag with one flag per dimension, true where the dimension is only bounded.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if no flag is true: such a shape is a [`Shape`].
    pub fn new(dynamic_dims: impl Into<Box<[bool]>>) -> Result<Self> {
        let dynamic_dims = dynamic_dims.into();
        if dynamic_dims.contains(&true) {
            return Ok(Self { dynamic_dims });
        }
        Err(Status::invalid_argument(
            "At least one dimension needs to be dynamically sized",
        ))
    }

    /// One flag per dimension, true where the dimension is only bounded.
    pub fn dynamic_dims(&self) -> &[bool] {
        &self.dynamic_dims
    }
}

/// The dimensions of an array of which some are not known before it is computed, but have a bound.
///
/// # Examples
/// ```
/// # fn main() -> ifrt::Result<()> {
/// use ifrt::shape::{BoundedDynamicShapeTag, DynamicShape, Shape};
/// let tag = BoundedDynamicShapeTag::new([false, true])?;
/// let shape = DynamicShape::new(Shape::try_from([2, 4])?, tag)?;
/// assert_eq!(shape.to_string(), "[2,<=4]");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DynamicShape {
    bounds: Shape,
    tag: BoundedDynamicShapeTag,
}

impl DynamicShape {
    /// A shape with these bounds; dimensions that `tag` does not name are exactly their bound.
    ///
    /// # Shapes
    /// `tag` has one flag per dimension of `bounds`.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the numbers of dimensions differ.
    pub fn new(bounds: Shape, tag: BoundedDynamicShapeTag) -> Result<Self> {
        if tag.dynamic_dims.len() == bounds.rank() {
            return Ok(Self { bounds, tag });
        }
        Err(Status::invalid_argument(format!(
            "Shape and tag must have the same number of dimensions: {} vs. {}",
            bounds.rank(),
            tag.dynamic_dims.len()
        )))
    }

    /// The shape of a buffer that holds any array of this shape.
    pub const fn padded_shape(&self) -> &Shape {
        &self.bounds
    }

    /// Which dimensions are only bounded.
    pub const fn tag(&self) -> &BoundedDynamicShapeTag {
        &self.tag
    }

    /// True if this dimension is only bounded; false if it is fixed or does not exist.
    pub fn is_dynamic_dim(&self, dim: usize) -> bool {
        self.tag.dynamic_dims.get(dim).copied().unwrap_or(false)
    }
}

/// `[2,<=4]`, the form of the messages that clients see.
impl fmt::Display for DynamicShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (position, dim) in self.bounds.dims().iter().enumerate() {
            let separator = if position > 0 { "," } else { "" };
            let bound = if self.is_dynamic_dim(position) {
                "<="
            } else {
                ""
            };
            write!(f, "{separator}{bound}{dim}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for DynamicShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynamicShape({self})")
    }
}
