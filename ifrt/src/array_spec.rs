//! [`ArraySpec`]: everything about an array but its data.
//!
//! # Mirrors
//! `xla/python/ifrt/array_spec.h`, `xla/python/ifrt/abstract_array_spec.h`.

use std::fmt;

use crate::client::Client;
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::layout::Layout;
use crate::memory::MemoryKind;
use crate::shape::Shape;
use crate::sharding::{ShardingRef, ShardingSpec};
use crate::status::{Result, Status};

/// Everything about an array but its data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

impl ArraySpec {
    /// The same without devices. A concrete sharding keeps its addressable shards only.
    pub fn to_abstract(&self) -> AbstractArraySpec {
        AbstractArraySpec {
            dtype: self.dtype,
            shape: self.shape.clone(),
            sharding_spec: self.sharding.sharding_spec().clone(),
            memory_kind: self.sharding.memory_kind().clone(),
            layout: self.layout.clone(),
        }
    }

    /// The bytes that one shard takes on its device; `None` if the dtype has no size or the shards
    /// have no common shape.
    ///
    /// # Units
    /// Bytes, with the padding of the layout.
    ///
    /// # Blocking
    /// Asks `client` for the default layout if the spec has none.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the layout is for another number of dimensions or the size exceeds
    /// `u64`; those of [`Client::default_layout`].
    ///
    /// # Mirrors
    /// `Layout::ByteSize` and `PjRtLayout::ByteSize` with a sharding.
    pub fn shard_byte_size(&self, client: &dyn Client) -> Result<Option<u64>> {
        let shard_shape = if self.sharding.is_fully_replicated() {
            self.shape.clone()
        } else {
            match self.sharding.shard_shape(&self.shape) {
                Ok(shape) => shape,
                Err(_) => return Ok(None),
            }
        };
        if self.dtype.bit_size().is_none() {
            return Ok(None);
        }
        match &self.layout {
            Some(layout) => layout.byte_size(self.dtype, &shard_shape),
            None => self
                .default_layout(&shard_shape, client)?
                .byte_size(self.dtype, &shard_shape),
        }
    }

    /// True if the shards of both arrays have one layout, once missing ones are looked up.
    ///
    /// One missing layout is not equivalent to any given one, even if that is the default.
    ///
    /// # Blocking
    /// Asks `client` for default layouts if neither spec has one.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the shards of an array have no common shape; those of
    /// [`Client::default_layout`].
    ///
    /// # Mirrors
    /// `xla/python/ifrt/layout.h`, `EquivalentLayouts`.
    pub fn has_equivalent_layout(&self, other: &Self, client: &dyn Client) -> Result<bool> {
        let (this, that) = match (&self.layout, &other.layout) {
            (Some(this), Some(that)) => return Ok(this == that),
            (None, None) => (&self.sharding, &other.sharding),
            _ => return Ok(false),
        };
        if self.dtype == other.dtype
            && self.shape == other.shape
            && this.devices().ids().next() == that.devices().ids().next()
            && this.memory_kind() == that.memory_kind()
        {
            return Ok(true);
        }
        let default = |spec: &Self| {
            let shard_shape = spec.sharding.shard_shape(&spec.shape)?;
            spec.default_layout(&shard_shape, client)
        };
        Ok(default(self)? == default(other)?)
    }

    fn default_layout(&self, shard_shape: &Shape, client: &dyn Client) -> Result<Layout> {
        let device = self.sharding.devices().iter().next().ok_or_else(|| {
            Status::invalid_argument("a sharding without devices has no default layout")
        })?;
        client.default_layout(self.dtype, shard_shape, device, self.sharding.memory_kind())
    }
}

/// The form of the reference.
impl fmt::Display for ArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ArraySpec(dtype={},shape={},sharding={},layout={})",
            self.dtype,
            self.shape,
            self.sharding,
            text_of(self.layout.as_ref())
        )
    }
}

/// Everything about an array but its data and its devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AbstractArraySpec {
    /// The element type.
    pub dtype: DType,
    /// The shape of the whole array.
    pub shape: Shape,
    /// How it is split.
    pub sharding_spec: ShardingSpec,
    /// The kind of memory that its shards are in.
    pub memory_kind: MemoryKind,
    /// The layout of the shards; `None` is the default of the device.
    pub layout: Option<Layout>,
}

impl AbstractArraySpec {
    /// The same with shard number *i* on device number *i*.
    ///
    /// # Shapes
    /// One device per shard.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for another number of devices.
    pub fn to_array_spec(&self, devices: DeviceList) -> Result<ArraySpec> {
        Ok(ArraySpec {
            dtype: self.dtype,
            shape: self.shape.clone(),
            sharding: self
                .sharding_spec
                .to_sharding(devices, self.memory_kind.clone())?,
            layout: self.layout.clone(),
        })
    }
}

/// The form of the reference.
impl fmt::Display for AbstractArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "AbstractArraySpec(dtype={}, shape={}, sharding_spec={}, memory_kind={}, layout={})",
            self.dtype,
            self.shape,
            self.sharding_spec,
            self.memory_kind,
            text_of(self.layout.as_ref())
        )
    }
}

fn text_of(layout: Option<&Layout>) -> String {
    layout.map_or_else(|| "<nullptr>".into(), ToString::to_string)
}
