//! The memory that an upload is gathered in.

use std::io;

use bytes::Bytes;
use ifrt::{Result, Status};

/// CPU runtimes use host memory in place of a copy of their own if it is aligned like this.
const ALIGNMENT: usize = 64;

/// One aligned piece of memory for the announced bytes, filled from the front.
#[derive(Debug)]
pub(crate) struct UploadMemory {
    bytes: Vec<u8>,
    start: usize,
}

impl UploadMemory {
    /// Memory for `size` bytes.
    ///
    /// The pages are touched only when bytes arrive, so a large announcement alone costs little.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there is no such memory.
    pub(crate) fn new(size: usize) -> Result<Self> {
        let mut bytes: Vec<u8> = Vec::new();
        let capacity = size.checked_add(ALIGNMENT);
        if capacity.is_none_or(|capacity| bytes.try_reserve_exact(capacity).is_err()) {
            return Err(Status::resource_exhausted(format!(
                "no memory on the server's host for a host buffer of {size} bytes; upload smaller \
                 pieces or delete arrays first"
            )));
        }
        let start = bytes.as_ptr().addr().wrapping_neg() % ALIGNMENT;
        bytes.resize(start, 0);
        Ok(Self { bytes, start })
    }

    /// Adds bytes. The caller sees to it that there are no more than announced, so the memory is
    /// never moved and stays aligned.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds all that `source` has, which must be no more than announced. Blocks meanwhile.
    pub(crate) fn push_from(&mut self, mut source: impl io::Read) -> io::Result<u64> {
        let read = source.read_to_end(&mut self.bytes)?;
        Ok(u64::try_from(read).unwrap_or(u64::MAX))
    }

    /// The bytes, without copying them.
    pub(crate) fn finish(self) -> Bytes {
        Bytes::from(self.bytes).slice(self.start..)
    }
}

#[cfg(test)]
mod tests;
