//! [`IndexDomain`]: the part of an array that a shard holds.
//!
//! # Mirrors
//! `xla/python/ifrt/index.h`, `xla/python/ifrt/index_domain.h`.

use crate::shape::Shape;

/// The part `origin .. origin + shape` of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexDomain {
    origin: Box<[i64]>,
    shape: Shape,
}

impl IndexDomain {
    /// The part that begins at `origin` (one number per dimension of `shape`).
    pub fn new(origin: impl Into<Box<[i64]>>, shape: Shape) -> Self {
        Self {
            origin: origin.into(),
            shape,
        }
    }

    /// The whole of an array of this shape.
    pub fn whole(shape: Shape) -> Self {
        Self {
            origin: vec![0; shape.rank()].into(),
            shape,
        }
    }

    /// Where the part begins.
    pub fn origin(&self) -> &[i64] {
        &self.origin
    }

    /// The extent of the part.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }
}
