//! [`Array`]: data of one element type, spread over devices by a sharding.
//!
//! # Mirrors
//! `xla/python/ifrt/array.h`.

use std::sync::Arc;

use crate::completion::Completion;
use crate::dtype::DType;
use crate::host_buffer::HostValue;
use crate::layout::Layout;
use crate::shape::Shape;
use crate::sharding::ShardingRef;
use crate::status::Result;
use crate::value::Value;

/// A shared [`Array`].
pub type ArrayRef = Arc<dyn Array>;

/// What an operation may do with its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "closed by the IFRT contract")]
pub enum ArrayCopySemantics {
    /// The outputs share nothing with the inputs.
    AlwaysCopy,
    /// The outputs may share buffers with the inputs, which stay usable.
    ReuseInput,
    /// The outputs may take the buffers; the inputs are consumed.
    DonateInput,
}

/// Which shards an operation speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "closed by the IFRT contract")]
pub enum ShardSemantics {
    /// Those on devices that this process can reach, in the order of the sharding's devices.
    Addressable,
    /// All of them.
    All,
}

/// Data of one element type, spread over devices.
///
/// A *shard* is the piece on one device; shards stand in the order of the sharding's devices.
pub trait Array: Value {
    /// The element type.
    fn dtype(&self) -> DType;

    /// The shape of the whole array.
    fn shape(&self) -> &Shape;

    /// How the array is spread: the very object that it was made with.
    fn sharding(&self) -> &ShardingRef;

    /// The layout of the shards; `None` is the default of the device for the shape of a shard.
    ///
    /// # Blocking
    /// May be a round trip in a remote runtime.
    ///
    /// # Errors
    /// Those of the runtime.
    fn layout(&self) -> Result<Option<Layout>>;

    /// One array per shard.
    ///
    /// The results share the buffers of this array for every `copy` semantics, as in the reference
    /// implementation: deleting one of them deletes that shard here, and an array without one of its
    /// shards counts as deleted.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the array was deleted, or if `shards` asks for shards that cannot be
    /// reached.
    fn disassemble(
        &self,
        copy: ArrayCopySemantics,
        shards: ShardSemantics,
    ) -> Result<Vec<ArrayRef>>;

    /// The first shard of a fully replicated array, as an array on one device. It shares the buffer.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the array is not fully replicated or was deleted.
    fn fully_replicated_shard(&self, copy: ArrayCopySemantics) -> Result<ArrayRef>;

    /// Copies an array with one shard, or the first shard of a replicated one, to the host.
    ///
    /// # Shapes
    /// Dense and major to minor, or as `byte_strides` says (one positive stride per dimension, a
    /// reordering of the dimensions). Types below a byte take a byte per element, sign extended.
    /// A token gives no bytes; reading it is waiting for it.
    ///
    /// # Blocking
    /// Never; the completion brings the bytes, which stay valid whatever happens to the array.
    ///
    /// # Errors
    /// Through the completion: INVALID_ARGUMENT for several different shards or a deleted array;
    /// UNIMPLEMENTED for strides that are no reordering; the error of a failed array.
    ///
    /// # Conformance
    /// ARR-09, ARR-13, ARR-25, ARR-40.
    fn copy_to_host(&self, byte_strides: Option<&[i64]>) -> Completion<HostValue>;
}
