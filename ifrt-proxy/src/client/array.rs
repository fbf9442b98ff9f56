//! Arrays: a handle on the server, and everything that can be known of it here.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client/array.cc`.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use ifrt::host_buffer::HostValue;
use ifrt::user_context::{self, UserContextRef};
use ifrt::{
    Array, ArrayCopySemantics, ArrayRef, ArraySpec, Client, Completion, DType, Layout, Result,
    Shape, ShardSemantics, ShardingRef, Status, Value,
};
use prost::Message;

use super::ProxyClient;
use super::host_transfer::Expected;
use super::life::Cells;
use super::response::body;
use super::to_wire::{copy_semantics, shard_semantics};
use crate::proto::xla::ifrt::proto::{ByteStrides, StringArrayContents};
use crate::proto::xla::ifrt::proxy::ifrt_request::Request;
use crate::proto::xla::ifrt::proxy::{
    CheckValueReadyRequest, CopyToHostBufferRequest, DisassembleIntoSingleDeviceArraysRequest,
    FullyReplicatedShardRequest,
};

/// An array of the server.
pub(super) struct ProxyArray {
    client: Arc<ProxyClient>,
    handle: u64,
    spec: ArraySpec,
    cells: Cells,
    /// Asked for once.
    ready: OnceLock<Completion>,
    user_context: Option<UserContextRef>,
}

impl ProxyArray {
    /// The array that the server has, or will have, under this handle.
    pub(super) fn make(
        client: &Arc<ProxyClient>,
        handle: u64,
        spec: ArraySpec,
        cells: Cells,
    ) -> ArrayRef {
        Self::with(client, handle, spec, cells, OnceLock::new())
    }

    /// As [`ProxyArray::make`], for an array of which it is known that it has failed.
    pub(super) fn make_failed(
        client: &Arc<ProxyClient>,
        handle: u64,
        spec: ArraySpec,
        cells: Cells,
        error: &Status,
    ) -> ArrayRef {
        let failed = Completion::ready(Err(error.clone()));
        Self::with(client, handle, spec, cells, OnceLock::from(failed))
    }

    fn with(
        client: &Arc<ProxyClient>,
        handle: u64,
        spec: ArraySpec,
        cells: Cells,
        ready: OnceLock<Completion>,
    ) -> ArrayRef {
        Arc::new(Self {
            client: Arc::clone(client),
            handle,
            cells: cells.holding(spec.dtype),
            spec,
            ready,
            user_context: user_context::current(),
        })
    }

    /// The array behind a reference, if it belongs to `client`.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an array of another client or another runtime.
    pub(super) fn of<'a>(client: &ProxyClient, array: &'a ArrayRef) -> Result<&'a Self> {
        let any: &dyn Any = &**array;
        any.downcast_ref::<Self>()
            .filter(|array| std::ptr::eq(&*array.client, client))
            .ok_or_else(|| Status::invalid_argument("the array belongs to another client"))
    }

    /// As [`ProxyArray::of`], for several.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if one belongs to another client.
    pub(super) fn all_of<'a>(
        client: &ProxyClient,
        arrays: &'a [ArrayRef],
    ) -> Result<Vec<&'a Self>> {
        arrays.iter().map(|array| Self::of(client, array)).collect()
    }

    pub(super) const fn handle(&self) -> u64 {
        self.handle
    }

    pub(super) const fn spec(&self) -> &ArraySpec {
        &self.spec
    }

    pub(super) const fn cells(&self) -> &Cells {
        &self.cells
    }

    fn check_live(&self, operation: &str) -> Result<()> {
        if self.cells.is_dead() {
            return Err(self.cells.dead(operation, 0));
        }
        Ok(())
    }

    /// An array on one device that shares a buffer of this one.
    fn piece(&self, handle: u64, shape: Shape, sharding: ShardingRef, shard: usize) -> ArrayRef {
        let spec = ArraySpec {
            dtype: self.spec.dtype,
            shape,
            sharding,
            layout: self.spec.layout.clone(),
        };
        let cell = self.cells.get(shard).map(super::life::Cell::share);
        let cells = Cells::of(cell.into_iter().collect());
        Self::make(&self.client, handle, spec, cells)
    }

    /// The bytes that a read gives.
    fn expected(&self) -> Result<Expected> {
        let sharding = &self.spec.sharding;
        if sharding.devices().len() != 1 && !sharding.is_fully_replicated() {
            return Err(Status::invalid_argument(format!(
                "only arrays with one shard and fully replicated ones can be read, but this one \
                 has {} different shards; read each shard of Array::disassemble",
                sharding.devices().len()
            )));
        }
        let Some(item) = self.spec.dtype.host_byte_size() else {
            return Ok(Expected::Unknown);
        };
        let shape = match sharding.is_fully_replicated() {
            true => None,
            false => sharding.shard_shape(&self.spec.shape).ok(),
        };
        let elements = shape.as_ref().unwrap_or(&self.spec.shape).num_elements();
        usize::try_from(elements)
            .ok()
            .and_then(|elements| elements.checked_mul(item))
            .map(Expected::Exactly)
            .ok_or_else(|| Status::invalid_argument("the array is larger than any memory"))
    }

    fn read(&self, byte_strides: Option<&[i64]>) -> Result<Completion<HostValue>> {
        self.check_live("CopyToHostBuffer")?;
        let dtype = self.spec.dtype;
        if dtype == DType::Token {
            let empty = HostValue::Bytes(bytes::Bytes::new());
            return Ok(self.ready().then(|ready| ready.clone().map(|()| empty)));
        }
        let expected = self.expected()?;
        if byte_strides.is_some_and(|strides| strides.len() != self.spec.shape.rank()) {
            return Err(Status::invalid_argument(format!(
                "strides {byte_strides:?} are not for shape {}",
                self.spec.shape
            )));
        }
        let session = self.client.session();
        let handle = session.new_handle();
        let request = Request::CopyToHostBufferRequest(CopyToHostBufferRequest {
            host_buffer_handle: handle,
            array_handle: self.handle,
            byte_strides: byte_strides.map(|strides| ByteStrides {
                strides: strides.to_vec(),
            }),
        });
        let (promise, bytes) = Completion::pair();
        // The client must live until the bytes are here, whatever becomes of the array.
        let client = Arc::clone(&self.client);
        session.send(request, move |answer| {
            match answer.and_then(|response| body!(response, CopyToHostBufferResponse)) {
                Ok(_) => {
                    let fetched = client.transfer().fetch(handle, expected);
                    fetched.on_ready(move |result| {
                        promise.set(result.clone());
                        drop(client);
                    });
                }
                Err(status) => promise.set(Err(status)),
            }
        });
        let elements = self.spec.shape.num_elements();
        Ok(bytes.then(move |bytes| {
            let bytes = bytes.clone()?;
            if dtype == DType::String {
                return strings(bytes, elements);
            }
            Ok(HostValue::Bytes(bytes))
        }))
    }
}

fn strings(bytes: bytes::Bytes, elements: i64) -> Result<HostValue> {
    let contents = StringArrayContents::decode(bytes)
        .map_err(|error| Status::internal(format!("the server sent malformed strings: {error}")))?;
    if i64::try_from(contents.strings.len()) != Ok(elements) {
        return Err(Status::internal(format!(
            "the server sent {} strings for an array of {elements}",
            contents.strings.len()
        )));
    }
    Ok(HostValue::Strings(contents.strings.into()))
}

impl Value for ProxyArray {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.client) as Arc<dyn Client>
    }

    fn into_array(self: Arc<Self>) -> Option<ArrayRef> {
        Some(self)
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.user_context.clone()
    }

    fn byte_size(&self) -> Result<Option<u64>> {
        self.spec.shard_byte_size(&*self.client)
    }

    fn ready(&self) -> Completion {
        if self.cells.is_dead() {
            return Completion::ready(Err(self.cells.dead("GetReadyFuture", 0)));
        }
        let ask = || {
            let request = CheckValueReadyRequest {
                value_handles: vec![self.handle],
            };
            self.client
                .session()
                .request(Request::CheckValueReadyRequest(request), |response| {
                    body!(response, CheckValueReadyResponse).map(drop)
                })
        };
        self.ready.get_or_init(ask).clone()
    }

    /// The server is told soon, and nobody is told what it makes of it: the array is deleted.
    fn delete(&self) -> Completion {
        if self.cells.kill() {
            self.client.session().delete(self.handle);
        }
        Completion::done()
    }

    fn is_deleted(&self) -> bool {
        self.cells.is_dead()
    }
}

impl Array for ProxyArray {
    fn dtype(&self) -> DType {
        self.spec.dtype
    }

    fn shape(&self) -> &Shape {
        &self.spec.shape
    }

    fn sharding(&self) -> &ShardingRef {
        &self.spec.sharding
    }

    fn layout(&self) -> Result<Option<Layout>> {
        Ok(self.spec.layout.clone())
    }

    fn disassemble(
        &self,
        copy: ArrayCopySemantics,
        shards: ShardSemantics,
    ) -> Result<Vec<ArrayRef>> {
        let sharding = &self.spec.sharding;
        if shards == ShardSemantics::All && !sharding.devices().is_fully_addressable() {
            return Err(Status::invalid_argument(
                "there are no arrays for shards on devices that the server cannot reach; ask for \
                 the addressable shards",
            ));
        }
        self.check_live("DisassembleIntoSingleDeviceArrays")?;
        let pieces = sharding.disassemble(&self.spec.shape, shards)?;
        let session = self.client.session();
        let handles: Vec<u64> = pieces.iter().map(|_| session.new_handle()).collect();
        if handles.is_empty() {
            return Ok(Vec::new());
        }
        let request = DisassembleIntoSingleDeviceArraysRequest {
            array_handle: self.handle,
            copy_semantics: copy_semantics(copy),
            single_device_shard_semantics: Some(shard_semantics(shards)),
            result_handles: handles.clone(),
        };
        session.send_ignored(
            "taking an array apart",
            Request::DisassembleIntoSingleDeviceArraysRequest(request),
        );
        let pieces = pieces.into_iter().zip(handles).enumerate();
        Ok(pieces
            .map(|(shard, ((shape, sharding), handle))| self.piece(handle, shape, sharding, shard))
            .collect())
    }

    fn fully_replicated_shard(&self, copy: ArrayCopySemantics) -> Result<ArrayRef> {
        let sharding = &self.spec.sharding;
        if !sharding.is_fully_replicated() {
            return Err(Status::invalid_argument(
                "FullyReplicatedShard() called on an array that is not fully replicated",
            ));
        }
        self.check_live("FullyReplicatedShard")?;
        let devices = sharding.devices().addressable();
        let device = devices.devices().first().cloned().ok_or_else(|| {
            Status::failed_precondition(
                "the array has no shard on a device that the server can reach",
            )
        })?;
        let session = self.client.session();
        let handle = session.new_handle();
        let request = FullyReplicatedShardRequest {
            array_handle: self.handle,
            copy_semantics: copy_semantics(copy),
            result_handle: handle,
        };
        session.send_ignored(
            "taking a shard of an array",
            Request::FullyReplicatedShardRequest(request),
        );
        let single = ifrt::Sharding::single_device(device, sharding.memory_kind().clone());
        Ok(self.piece(handle, self.spec.shape.clone(), single, 0))
    }

    fn copy_to_host(&self, byte_strides: Option<&[i64]>) -> Completion<HostValue> {
        self.read(byte_strides)
            .unwrap_or_else(|status| Completion::ready(Err(status)))
    }
}

impl Drop for ProxyArray {
    fn drop(&mut self) {
        let owns_buffers = self.cells.are_owned();
        self.client.session().destruct(self.handle, owns_buffers);
    }
}

/// Says what the array is; never its contents, and without waiting.
impl fmt::Debug for ProxyArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_deleted() { "deleted" } else { "live" };
        write!(
            f,
            "ProxyArray({}{}, {:?}, {state})",
            self.spec.dtype, self.spec.shape, self.spec.sharding
        )
    }
}
