//! Between host buffers and arrays.

use std::collections::HashSet;

use ifrt::serdes::{array_spec_from_proto, layout_from_proto};
use ifrt::{HostShards, Result, Status};

use crate::proto::xla::ifrt::proxy::ifrt_response::Response;
use crate::proto::xla::ifrt::proxy::make_arrays_from_host_buffer_shards_request::{
    MakeArraysFromHostBufferShardsSpec, ShardIndices,
};
use crate::proto::xla::ifrt::proxy::{
    CopyToHostBufferRequest, CopyToHostBufferResponse, MakeArrayFromHostBufferRequest,
    MakeArrayFromHostBufferResponse, MakeArraysFromHostBufferShardsRequest,
    MakeArraysFromHostBufferShardsResponse,
};
use crate::server::handlers::host_span::{content_bytes, host_buffer};
use crate::server::handlers::results;
use crate::server::handlers::{dtype, missing, shape, sharding};
use crate::server::session::context::{Failure, Outcome};
use crate::server::session::reply::Reply;
use crate::server::session::tables::check_client_handle;
use crate::server::session::{Call, Session};

/// The host buffers that a request uses. Those that it does not come to take are dropped, also if
/// their bytes arrive later.
struct Claims<'a> {
    session: &'a Session,
    left: HashSet<u64>,
    has_duplicates: bool,
}

impl<'a> Claims<'a> {
    fn new(session: &'a Session, handles: impl IntoIterator<Item = u64>) -> Self {
        let (mut left, mut count) = (HashSet::new(), 0_usize);
        for handle in handles {
            left.insert(handle);
            count += 1;
        }
        let has_duplicates = left.len() != count;
        Self {
            session,
            left,
            has_duplicates,
        }
    }

    /// Checks the handles before anything is waited for.
    fn check(&self) -> Outcome<()> {
        if self.has_duplicates {
            return Err(Status::invalid_argument(
                "the request names a host buffer twice; a buffer serves several shards by their \
                 indices",
            )
            .into());
        }
        self.left
            .iter()
            .try_for_each(|handle| check_client_handle(*handle))
    }

    /// Waits for the bytes of a buffer.
    fn take(&mut self, handle: u64) -> Result<bytes::Bytes> {
        self.left.remove(&handle);
        self.session.host_buffers.take(handle)
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        for handle in self.left.drain() {
            if check_client_handle(handle).is_ok() {
                self.session.host_buffers.abandon(handle);
            }
        }
    }
}

/// Makes an array of one host buffer.
pub(crate) fn make_array(
    call: &Call,
    request: MakeArrayFromHostBufferRequest,
) -> Outcome<MakeArrayFromHostBufferResponse> {
    let buffer_handle = request.host_buffer_handle;
    let mut claims = Claims::new(&call.session, [buffer_handle]);
    let array_handle = results::make_array(call, request.array_handle.unwrap_or_default(), || {
        claims.check()?;
        let dtype = dtype(request.dtype.as_ref())?;
        let shape = shape(request.shape.as_ref())?;
        let sharding = sharding(call, request.sharding.as_ref())?;
        let layout = request.layout.as_ref().map(layout_from_proto).transpose()?;
        let strides = request.byte_strides.as_ref().map(|s| &s.strides[..]);
        let buffer = host_buffer(dtype, shape, strides, claims.take(buffer_handle)?)?;
        Ok(call
            .client()
            .make_array_from_host_buffer(buffer, sharding, layout)?)
    })?;
    Ok(MakeArrayFromHostBufferResponse { array_handle })
}

/// Makes arrays of host buffers that hold their shards.
pub(crate) fn make_arrays_from_shards(
    call: &Call,
    request: MakeArraysFromHostBufferShardsRequest,
) -> Outcome<MakeArraysFromHostBufferShardsResponse> {
    let buffers = request.specs.iter().flat_map(|spec| &spec.host_buffers);
    let handles = buffers.map(|buffer| buffer.host_buffer_handle);
    let mut claims = Claims::new(&call.session, handles);
    let array_handles = results::make_arrays(call, &request.array_handles, || {
        claims.check()?;
        let arrays = request
            .specs
            .iter()
            .map(|spec| host_shards(call, spec, &mut claims))
            .collect::<Outcome<Vec<_>>>()?;
        Ok(call.client().make_arrays_from_host_buffer_shards(arrays)?)
    })?;
    Ok(MakeArraysFromHostBufferShardsResponse { array_handles })
}

fn host_shards(
    call: &Call,
    spec: &MakeArraysFromHostBufferShardsSpec,
    claims: &mut Claims<'_>,
) -> Outcome<HostShards<'static>> {
    let (indices, buffers) = (&spec.addressable_shard_indices, &spec.host_buffers);
    if indices.len() != buffers.len() {
        return Err(Status::invalid_argument(format!(
            "MakeArraysFromHostBufferShardsSpec has {} addressable_shard_indices but {} \
             host_buffers.",
            indices.len(),
            buffers.len()
        ))
        .into());
    }
    let array_spec = spec
        .array_spec
        .as_ref()
        .ok_or_else(|| missing("array spec"))?;
    let array_spec = array_spec_from_proto(array_spec, call.client())?;
    let buffers = indices
        .iter()
        .zip(buffers)
        .map(|(indices, buffer)| {
            let indices = shard_indices(indices)?;
            let dtype = dtype(buffer.dtype.as_ref())?;
            let shape = shape(buffer.shape.as_ref())?;
            let strides = buffer.byte_strides.as_ref().map(|s| &s.strides[..]);
            let bytes = claims.take(buffer.host_buffer_handle)?;
            Ok((indices, host_buffer(dtype, shape, strides, bytes)?))
        })
        .collect::<Result<_>>()?;
    Ok(HostShards {
        spec: array_spec,
        buffers,
    })
}

fn shard_indices(message: &ShardIndices) -> Result<Vec<usize>> {
    message
        .indices
        .iter()
        .map(|index| {
            usize::try_from(*index)
                .map_err(|_| Status::invalid_argument(format!("{index} is no index of a shard")))
        })
        .collect()
}

/// Reads an array into a host buffer, and answers when the client can fetch it.
pub(crate) fn copy_to_host_buffer(call: &Call, request: &CopyToHostBufferRequest, reply: Reply) {
    let started = call.isolated(|| {
        let known = call.session.tables.array(request.array_handle)?;
        call.session
            .host_buffers
            .check_new(request.host_buffer_handle)?;
        let strides = request.byte_strides.as_ref().map(|s| &s.strides[..]);
        if let Some(strides) = strides
            && strides.len() != known.array.shape().rank()
        {
            return Err(Status::invalid_argument(format!(
                "an array of shape {} is to be read with {} strides",
                known.array.shape(),
                strides.len()
            ))
            .into());
        }
        Ok((known.array.copy_to_host(strides), known.context))
    });
    let (copied, context) = match started {
        Ok(started) => started,
        Err(failure) => {
            reply.send(Err(failure.naming_cause()));
            return;
        }
    };
    let buffers = std::sync::Arc::clone(&call.session.host_buffers);
    let handle = request.host_buffer_handle;
    copied.on_ready(move |result| {
        let stored = match result {
            Ok(value) => buffers
                .put(handle, content_bytes(value.clone()))
                .map_err(Failure::from),
            Err(error) => Err(Failure::from(error.clone())
                .caused_by(context.as_ref())
                .naming_cause()),
        };
        reply
            .send(stored.map(|()| Response::CopyToHostBufferResponse(CopyToHostBufferResponse {})));
    });
}
