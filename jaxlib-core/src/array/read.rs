//! Reading arrays into host memory.

use ifrt::{ArrayCopySemantics, Completion, DType, HostValue, Result, ShardSemantics, Status};

use super::Array;
use crate::host::{self, HostArray};
use crate::sharding::{Index, replica_ids};
use crate::transfer_guard::{self, Direction, Intent};

/// A read that is under way. Dropping it cancels nothing.
///
/// Deleting the array now does not disturb it.
#[derive(Debug)]
#[must_use = "wait() on it; the bytes arrive whether or not somebody waits"]
pub struct HostRead {
    array: Array,
    parts: HostParts,
}

/// Parts of an array on their way to the host, each with its place.
pub(crate) type HostParts = Vec<(Index, Completion<HostValue>)>;

impl Array {
    /// Starts to copy the contents to the host.
    ///
    /// # Blocking
    /// Only enqueues.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a dead array, a token, or an array with parts that this process cannot
    /// reach.
    pub fn read(&self) -> Result<HostRead> {
        if matches!(self.dtype(), DType::Token | DType::Opaque) {
            return Err(Status::invalid_argument(format!(
                "an array of type {} has no value to read",
                self.aval()
            )));
        }
        let pinned = self
            .buffers()
            .pin()
            .map_err(|reason| self.deleted(reason))?;
        transfer_guard::check(Direction::DeviceToHost, Intent::Explicit, || {
            format!("aval={}, sharding={}", self.aval(), self.sharding())
        })?;
        if let Some(parts) = self.buffers().host_copy() {
            return Ok(HostRead {
                array: self.clone(),
                parts,
            });
        }
        let is_replicated = self.is_fully_replicated();
        if !is_replicated && !self.sharding().devices().is_fully_addressable() {
            return Err(Status::invalid_argument(
                "Fetching value for `jax.Array` that spans non-addressable (non process local) \
                 devices is not possible. Read the shards that this process has instead.",
            ));
        }
        let parts = pinned.with(|handle| {
            if is_replicated {
                let whole: Index = vec![None; self.shape().rank()].into();
                return Ok(vec![(whole, handle.copy_to_host(None))]);
            }
            let indices = self.sharding().index_map(self.shape())?;
            let shards =
                handle.disassemble(ArrayCopySemantics::ReuseInput, ShardSemantics::Addressable)?;
            Ok(replica_ids(&indices)
                .into_iter()
                .zip(indices)
                .zip(shards)
                .filter(|((replica, _), _)| *replica == 0)
                .map(|((_, index), shard)| (index, shard.copy_to_host(None)))
                .collect())
        });
        Ok(HostRead {
            array: self.clone(),
            parts: self.explain(parts)?,
        })
    }

    /// Starts to copy the contents to the host and keeps what arrives for those who read them later,
    /// until the array is deleted, donated or gone.
    ///
    /// # Blocking
    /// Only enqueues.
    ///
    /// # Errors
    /// As [`Array::read`].
    ///
    /// # Mirrors
    /// `jax.Array.copy_to_host_async`.
    pub fn copy_to_host_async(&self) -> Result<()> {
        let read = self.read()?;
        self.buffers().keep_host_copy(read.parts);
        Ok(())
    }

    /// The contents.
    ///
    /// # Blocking
    /// Until the data is there.
    ///
    /// # Errors
    /// INVALID_ARGUMENT as [`Array::read`]; the error of what made the array.
    pub fn to_host(&self) -> Result<HostArray> {
        self.read()?.wait()
    }

    /// The same result, or that this array is dead if that is why the runtime refused.
    pub(crate) fn explain<T>(&self, result: Result<T>) -> Result<T> {
        crate::messages::explain(result, || {
            let reason = self.buffers().dead_after_refusal()?;
            Some(self.deleted(reason))
        })
    }
}

impl HostRead {
    /// True once the contents are there or have failed.
    pub fn is_ready(&self) -> bool {
        self.parts.iter().all(|(_, part)| part.is_ready())
    }

    /// The contents.
    ///
    /// # Blocking
    /// Until they are there.
    ///
    /// # Errors
    /// The error of what made the array, or of the copy.
    pub fn wait(self) -> Result<HostArray> {
        let Self { array, parts } = self;
        let values = parts
            .into_iter()
            .map(|(index, part)| part.wait().map(|value| (index, value)))
            .collect::<Result<Vec<_>>>();
        let mut values = array.explain(values)?;
        match (values.len(), values.pop()) {
            (1, Some((_, whole))) => HostArray::from_value(array.aval().clone(), whole),
            (_, Some(last)) => {
                values.push(last);
                host::assemble(array.aval(), &values)
            }
            (_, None) => host::assemble(array.aval(), &[]),
        }
    }
}
