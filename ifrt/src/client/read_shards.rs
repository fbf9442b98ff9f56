//! Reading the shards of several arrays in one call.

use crate::array::{ArrayCopySemantics, ArrayRef, ShardSemantics};
use crate::completion::{Completion, join_all};
use crate::host_buffer::HostValue;
use crate::status::{Result, Status};

/// An array of which shards are to be read.
#[derive(Clone, Debug)]
pub struct ReadShards {
    /// The array.
    pub array: ArrayRef,
    /// What to read; each gives one host value.
    pub reads: Vec<ReadShard>,
}

/// One shard, or several that hold the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadShard {
    /// The shards, in the order of the sharding's devices, that may be the source. The runtime
    /// chooses one.
    pub shards: Vec<usize>,
    /// As in [`crate::array::Array::copy_to_host`].
    pub byte_strides: Option<Box<[i64]>>,
}

/// Reads shards with the methods that every runtime has: takes each array apart and reads the
/// pieces.
///
/// # Blocking
/// Never; the completions bring the values.
///
/// # Errors
/// See [`crate::client::Client::copy_arrays_to_host_buffer_shards`].
///
/// # Mirrors
/// `xla/python/ifrt/client_impl_util.h`, `ClientCopyArraysToHostBufferShards`.
pub fn copy_arrays_to_host_buffer_shards(
    arrays: &[ReadShards],
) -> Result<Vec<Completion<Vec<HostValue>>>> {
    if let Some((first, rest)) = arrays.split_first() {
        let devices = first.array.sharding().devices();
        for (other, position) in rest.iter().zip(1..) {
            let others = other.array.sharding().devices();
            if others != devices {
                return Err(Status::invalid_argument(format!(
                    "arrays that are read in one call must be on the same devices, but array 0 is \
                     on {devices:?} and array {position} on {others:?}"
                )));
            }
        }
    }
    // All is checked before the first read begins.
    let mut plans = Vec::with_capacity(arrays.len());
    for array in arrays {
        plans.push(plan(array)?);
    }
    let read = |(array, sources): (&ReadShards, Vec<ArrayRef>)| {
        let reads = sources.iter().zip(&array.reads);
        join_results(reads.map(|(shard, read)| shard.copy_to_host(read.byte_strides.as_deref())))
    };
    Ok(arrays.iter().zip(plans).map(read).collect())
}

/// The single-device array that each read takes.
fn plan(array: &ReadShards) -> Result<Vec<ArrayRef>> {
    if array.reads.is_empty() {
        return Ok(Vec::new());
    }
    if !array.array.sharding().devices().is_fully_addressable() {
        return Err(Status::invalid_argument(format!(
            "only fully addressable arrays can be read shard by shard, but this one is on {:?}",
            array.array.sharding().devices()
        )));
    }
    let pieces = array
        .array
        .disassemble(ArrayCopySemantics::ReuseInput, ShardSemantics::All)?;
    let source = |read: &ReadShard| {
        let shard = *read.shards.first().ok_or_else(|| {
            Status::invalid_argument("a read names no shard to take the data from")
        })?;
        if let Some(outside) = read.shards.iter().find(|shard| **shard >= pieces.len()) {
            return Err(Status::out_of_range(format!(
                "a read names shard {outside} of an array with {} shards",
                pieces.len()
            )));
        }
        Ok(pieces[shard].clone())
    };
    array.reads.iter().map(source).collect()
}

/// The results of all completions in order, once **all** are ready; the first error that arrived
/// otherwise.
pub(crate) fn join_results<T: Clone + Send + Sync + 'static>(
    completions: impl IntoIterator<Item = Completion<T>>,
) -> Completion<Vec<T>> {
    let completions: Vec<_> = completions.into_iter().collect();
    let done =
        |one: &Completion<T>| one.then(|result| result.as_ref().map(drop).map_err(Clone::clone));
    join_all(completions.iter().map(done)).then(move |joined| {
        joined.clone()?;
        let result = |one: &Completion<T>| {
            one.peek()
                .unwrap_or_else(|| Err(Status::internal("a joined completion is not ready")))
        };
        completions.iter().map(result).collect()
    })
}
