//! [`PjrtArray`]: an array as a list of buffers, one per addressable device.
//!
//! Arrays share buffers: disassembling, assembling, remapping and copying to where the data already
//! is make new arrays over the same buffers. Deletion is a property of a buffer, so arrays that
//! share one die together.
//!
//! # Mirrors
//! `xla/python/pjrt_ifrt/pjrt_array.h`, `xla/python/pjrt_ifrt/basic_string_array.h`.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use ifrt::array::{Array, ArrayCopySemantics, ArrayRef, ShardSemantics};
use ifrt::array_spec::ArraySpec;
use ifrt::client::Client;
use ifrt::completion::{Completion, join_all};
use ifrt::dtype::DType;
use ifrt::host_buffer::HostValue;
use ifrt::layout::Layout;
use ifrt::shape::Shape;
use ifrt::sharding::{Sharding, ShardingRef};
use ifrt::user_context::{self, UserContextRef};
use ifrt::value::{READY_ON_DELETED, STRINGS_ON_DELETED, Value};
use ifrt::{Result, Status};

use crate::client::PjrtClient;
use crate::host_buffer;
use crate::messages::GONE;
use crate::safe::buffer::Buffer;

/// An array of a [`PjrtClient`].
pub struct PjrtArray {
    client: Arc<PjrtClient>,
    spec: Arc<ArraySpec>,
    /// `None` once the array was deleted or consumed.
    content: Mutex<Option<Content>>,
    user_context: Option<UserContextRef>,
}

/// What an array holds. A cheap clone.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// One buffer per addressable device, in the order of the sharding.
    Buffers(Shards),
    /// Strings stay on the host: their elements per addressable device.
    Strings(Arc<[Arc<[Bytes]>]>),
    /// Nothing but an error, for plugins that have no buffers that hold one.
    Failed(Status),
}

/// Buffers; most arrays have one.
#[derive(Clone, Debug)]
pub(crate) enum Shards {
    One(Arc<Buffer>),
    Many(Arc<[Arc<Buffer>]>),
}

impl Shards {
    pub(crate) fn as_slice(&self) -> &[Arc<Buffer>] {
        match self {
            Self::One(buffer) => std::slice::from_ref(buffer),
            Self::Many(buffers) => buffers,
        }
    }
}

impl From<Vec<Arc<Buffer>>> for Shards {
    fn from(buffers: Vec<Arc<Buffer>>) -> Self {
        match <[Arc<Buffer>; 1]>::try_from(buffers) {
            Ok([buffer]) => Self::One(buffer),
            Err(buffers) => Self::Many(buffers.into()),
        }
    }
}

impl FromIterator<Arc<Buffer>> for Shards {
    fn from_iter<I: IntoIterator<Item = Arc<Buffer>>>(buffers: I) -> Self {
        let mut buffers = buffers.into_iter();
        match (buffers.next(), buffers.next()) {
            (Some(only), None) => Self::One(only),
            (first, second) => Self::Many(first.into_iter().chain(second).chain(buffers).collect()),
        }
    }
}

impl Content {
    /// The number of shards; `None` if there are none to count.
    pub(crate) fn num_shards(&self) -> Option<usize> {
        match self {
            Self::Buffers(shards) => Some(shards.as_slice().len()),
            Self::Strings(shards) => Some(shards.len()),
            Self::Failed(_) => None,
        }
    }
}

impl PjrtArray {
    /// An array over `content`, made where the user is now.
    pub(crate) fn make(
        client: &Arc<PjrtClient>,
        spec: impl Into<Arc<ArraySpec>>,
        content: Content,
    ) -> ArrayRef {
        Arc::new(Self {
            client: Arc::clone(client),
            spec: spec.into(),
            content: Mutex::new(Some(content)),
            user_context: user_context::current(),
        })
    }

    /// The array behind a reference, if it belongs to this client.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an array of another client or runtime.
    pub(crate) fn of<'a>(array: &'a ArrayRef, client: &PjrtClient) -> Result<&'a Self> {
        let any: &dyn Any = &**array;
        match any.downcast_ref::<Self>() {
            Some(own) if std::ptr::eq(&*own.client, client) => Ok(own),
            _ => Err(Status::invalid_argument(format!(
                "the array {array:?} does not belong to this client"
            ))),
        }
    }

    /// What the array holds.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the array was deleted or donated; FAILED_PRECONDITION for strings.
    pub(crate) fn content(&self) -> Result<Content> {
        let content = self.lock().clone();
        let alive = content.filter(|content| match content {
            Content::Buffers(shards) => !shards.as_slice().iter().any(|b| b.is_deleted()),
            Content::Strings(_) | Content::Failed(_) => true,
        });
        alive.ok_or_else(|| self.gone())
    }

    /// What the array holds, without asking whether its buffers are alive: whoever uses them pins
    /// them and finds out.
    pub(crate) fn content_unchecked(&self) -> Option<Content> {
        self.lock().clone()
    }

    /// Ends the array without freeing what it held: an operation has taken it over.
    pub(crate) fn consume(&self) {
        let content = self.lock().take();
        // Dropped here and not under the lock: the last reference frees a buffer.
        drop(content);
    }

    /// The layout if it is not the default one.
    pub(crate) fn custom_layout(&self) -> Option<&Layout> {
        self.spec.layout.as_ref()
    }

    fn gone(&self) -> Status {
        match self.spec.dtype {
            DType::String => Status::failed_precondition(STRINGS_ON_DELETED),
            _ => Status::invalid_argument(GONE),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Content>> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new array on one device over one of the shards.
    fn single(&self, sharding: ShardingRef, shape: Shape, content: Content) -> ArrayRef {
        let spec = ArraySpec {
            dtype: self.spec.dtype,
            shape,
            sharding,
            layout: self.spec.layout.clone(),
        };
        Self::make(&self.client, spec, content)
    }

    fn start_copy_to_host(&self, byte_strides: Option<&[i64]>) -> Result<Completion<HostValue>> {
        let content = self.content()?;
        if content.num_shards().is_some_and(|n| n != 1) && !self.spec.sharding.is_fully_replicated()
        {
            return Err(Status::invalid_argument(format!(
                "only an array on one device or a fully replicated one can be copied to the host; \
                 this one is spread over {} devices",
                self.spec.sharding.devices().len()
            )));
        }
        let no_shard =
            || Status::invalid_argument("an array without shards in this process cannot be copied");
        match content {
            Content::Buffers(shards) => {
                let buffer = shards.as_slice().first().ok_or_else(no_shard)?;
                let reorder = match byte_strides {
                    None => None,
                    Some(strides) => {
                        let item = self.spec.dtype.host_byte_size().ok_or_else(|| {
                            Status::invalid_argument(format!(
                                "an array of dtype {} has no data on the host",
                                self.spec.dtype
                            ))
                        })?;
                        host_buffer::Reorder::new(&buffer.spec().shape, item, strides)?
                    }
                };
                let bytes = buffer.to_host();
                Ok(bytes.then(move |bytes| {
                    let bytes = bytes.clone()?;
                    Ok(HostValue::Bytes(match &reorder {
                        Some(reorder) => reorder.apply(&bytes)?,
                        None => bytes,
                    }))
                }))
            }
            Content::Strings(_) if byte_strides.is_some() => Err(Status::invalid_argument(
                "an array of strings has no strides",
            )),
            Content::Strings(shards) => {
                let strings = shards.first().cloned().ok_or_else(no_shard)?;
                Ok(Completion::ready(Ok(HostValue::Strings(strings))))
            }
            Content::Failed(status) => Err(status),
        }
    }
}

impl Value for PjrtArray {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.client) as _
    }

    fn into_array(self: Arc<Self>) -> Option<ArrayRef> {
        Some(self)
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.user_context.clone()
    }

    fn byte_size(&self) -> Result<Option<u64>> {
        let Some(bits) = self
            .spec
            .dtype
            .bit_size()
            .and_then(|bits| u64::try_from(bits).ok())
        else {
            return Ok(None);
        };
        // Only a plugin with tiled layouts takes more than the packed elements.
        if !self.client.is_cpu()
            && let Some(Content::Buffers(shards)) = self.content_unchecked()
            && let Some(buffer) = shards.as_slice().first()
            && let Ok(bytes) = buffer.on_device_bytes()
        {
            return Ok(Some(bytes));
        }
        let Ok(shape) = self.spec.sharding.shard_shape(&self.spec.shape) else {
            return Ok(None);
        };
        let elements = u64::try_from(shape.num_elements()).unwrap_or(0);
        Ok(elements.checked_mul(bits).map(|bits| bits.div_ceil(8)))
    }

    fn ready(&self) -> Completion {
        match self.content_unchecked() {
            Some(Content::Buffers(Shards::One(buffer))) => buffer.ready(),
            Some(Content::Buffers(Shards::Many(buffers))) => {
                join_all(buffers.iter().map(|buffer| buffer.ready()))
            }
            Some(Content::Strings(_)) => Completion::done(),
            Some(Content::Failed(status)) => Completion::ready(Err(status)),
            None if self.spec.dtype == DType::String => Completion::ready(Err(self.gone())),
            None => Completion::ready(Err(Status::invalid_argument(READY_ON_DELETED))),
        }
    }

    fn delete(&self) -> Completion {
        let content = self.lock().take();
        if let Some(Content::Buffers(shards)) = content {
            shards.as_slice().iter().for_each(|buffer| buffer.delete());
        }
        Completion::done()
    }

    fn is_deleted(&self) -> bool {
        match self.content_unchecked() {
            Some(Content::Buffers(shards)) => shards.as_slice().iter().any(|b| b.is_deleted()),
            Some(Content::Strings(_) | Content::Failed(_)) => false,
            None => true,
        }
    }
}

impl Array for PjrtArray {
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
        _copy: ArrayCopySemantics,
        shards: ShardSemantics,
    ) -> Result<Vec<ArrayRef>> {
        let devices = self.spec.sharding.devices();
        if shards == ShardSemantics::All && !devices.is_fully_addressable() {
            return Err(Status::invalid_argument(
                "an array with shards that this process cannot reach was asked for all of them",
            ));
        }
        let devices = devices.addressable();
        let kind = self.spec.sharding.memory_kind();
        let shardings = devices
            .iter()
            .map(|device| Sharding::single_device(Arc::clone(device), kind.clone()));
        Ok(match self.content()? {
            Content::Buffers(buffers) => shardings
                .zip(buffers.as_slice())
                .map(|(sharding, buffer)| {
                    let content = Content::Buffers(Shards::One(Arc::clone(buffer)));
                    self.single(sharding, buffer.spec().shape.clone(), content)
                })
                .collect(),
            Content::Strings(strings) => {
                let shapes = self
                    .spec
                    .sharding
                    .shard_shapes(&self.spec.shape, ShardSemantics::Addressable)?;
                shardings
                    .zip(&*strings)
                    .zip(shapes)
                    .map(|((sharding, strings), shape)| {
                        let content = Content::Strings(Arc::new([Arc::clone(strings)]));
                        self.single(sharding, shape, content)
                    })
                    .collect()
            }
            Content::Failed(status) => {
                let shapes = self
                    .spec
                    .sharding
                    .shard_shapes(&self.spec.shape, ShardSemantics::Addressable)?;
                shardings
                    .zip(shapes)
                    .map(|(sharding, shape)| {
                        self.single(sharding, shape, Content::Failed(status.clone()))
                    })
                    .collect()
            }
        })
    }

    fn fully_replicated_shard(&self, copy: ArrayCopySemantics) -> Result<ArrayRef> {
        if !self.spec.sharding.is_fully_replicated() {
            return Err(Status::invalid_argument(format!(
                "FullyReplicatedShard() was called on an array that is not fully replicated: {:?}",
                self.spec.sharding
            )));
        }
        let shards = self.disassemble(copy, ShardSemantics::Addressable)?;
        shards.into_iter().next().ok_or_else(|| {
            Status::failed_precondition("FullyReplicatedShard() found no shard in this process")
        })
    }

    fn copy_to_host(&self, byte_strides: Option<&[i64]>) -> Completion<HostValue> {
        self.start_copy_to_host(byte_strides)
            .unwrap_or_else(|status| Completion::ready(Err(status)))
    }
}

impl fmt::Debug for PjrtArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &*self.lock() {
            Some(Content::Buffers(_)) => "live",
            Some(Content::Strings(_)) => "strings",
            Some(Content::Failed(_)) => "failed",
            None => "deleted",
        };
        f.debug_struct("PjrtArray")
            .field("dtype", &self.spec.dtype)
            .field("shape", &self.spec.shape)
            .field("sharding", &self.spec.sharding)
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
