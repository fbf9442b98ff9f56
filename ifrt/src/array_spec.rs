//! [`ArraySpec`]: everything about an array but its data.
//!
//! # Mirrors
//! `xla/python/ifrt/array_spec.h`.

use crate::dtype::DType;
use crate::layout::Layout;
use crate::shape::Shape;
use crate::sharding::ShardingRef;

/// Everything about an array but its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraySpec {
    /// The element type.
    pub dtype: DType,
    /// The shape of the whole array.
    pub shape: Shape,
    /// How it is spread over devices.
    pub sharding: ShardingRef,
    /// The layout of the shards; `None` is the default of the device.
    pub layout: Option<Layout>,
}
