//! A host buffer cut into messages.

use bytes::Bytes;

use crate::proto::xla::ifrt::proxy::GrpcHostBufferLookupResponse;

/// The bytes in one message. Messages of 1 to 4 MiB are the fastest.
const CHUNK_BYTES: usize = 1 << 20;

/// The messages of one download: at least one, also for no bytes.
#[derive(Debug)]
pub(crate) struct Chunks(Option<Bytes>);

impl Chunks {
    pub(super) const fn new(bytes: Bytes) -> Self {
        Self(Some(bytes))
    }
}

impl Iterator for Chunks {
    type Item = Result<GrpcHostBufferLookupResponse, tonic::Status>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.0.take()?;
        let data = rest.split_to(rest.len().min(CHUNK_BYTES));
        if !rest.is_empty() {
            self.0 = Some(rest);
        }
        Some(Ok(GrpcHostBufferLookupResponse { data }))
    }
}

#[cfg(test)]
mod tests;
