//! Buffers from host memory, and buffers that hold an error.

use std::sync::Arc;

use bytes::Bytes;
use ifrt::attribute_map::AttributeMap;
use ifrt::host_buffer::{HostBuffer, HostData};
use ifrt::layout::Layout;
use ifrt::{Result, Status};

use super::{Buffer, Placement, ShardSpec};
use crate::safe::client::Client;
use crate::safe::dtype;
use crate::safe::event::Event;
use crate::safe::layout::RawLayout;
use crate::safe::named_value::NamedValues;
use crate::sys::api::{ClientBufferFromHostBuffer, ClientCreateErrorBuffer};
use crate::sys::buffer::host_buffer_semantics as semantics;
use crate::sys::client::{ClientBufferFromHostBufferArgs, ClientCreateErrorBufferArgs};

/// The alignment that plugins need to use host memory in place.
const ZERO_COPY_ALIGNMENT: usize = 64;

/// Below this size a copy costs less than what comes with shared memory.
const ZERO_COPY_BYTES: usize = 64 * 1024;

/// The oldest minor version that was seen to honor a layout for data from the host. An older plugin
/// only labels the buffer with it, and computes with the wrong elements.
const LAYOUT_MINOR: i32 = 115;

/// The minor version that takes payloads of error buffers; older plugins ignore them.
const ERROR_PAYLOAD_MINOR: i32 = 103;

impl Buffer {
    /// Makes a buffer from host memory.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if an element lies outside the memory or the dtype has no buffers;
    /// UNIMPLEMENTED for a dtype or layout that the plugin is too old for; those of the plugin.
    pub(crate) fn from_host(
        client: &Client,
        spec: &Arc<ShardSpec>,
        placement: Placement,
        host: &HostBuffer<'_>,
    ) -> Result<Arc<Self>> {
        if (host.dtype, &host.shape) != (spec.dtype, &spec.shape) {
            return Err(Status::invalid_argument(format!(
                "a host buffer of shape {} and dtype {} was given for a shard of shape {} and dtype \
                 {}",
                host.shape, host.dtype, spec.shape, spec.dtype
            )));
        }
        let type_ = dtype::to_pjrt(spec.dtype, client.minor())?;
        // The check that makes the pointers below good: rank, strides, offset and size.
        let range = host.byte_range()?;
        let bytes: &[u8] = match &host.data {
            HostData::Borrowed(bytes) => bytes,
            HostData::Shared(bytes) => bytes,
            HostData::Strings(_) => {
                return Err(Status::invalid_argument(
                    "a buffer of strings has no elements of bytes",
                ));
            }
        };
        // For arrays without elements the pointer is not used; slices never give NULL.
        let data = bytes[host.offset_bytes..].as_ptr();
        let strides = host.byte_strides.as_deref();
        let shared = match &host.data {
            HostData::Shared(bytes)
                if strides.is_none()
                    && !spec.dtype.is_sub_byte()
                    && range.len() >= ZERO_COPY_BYTES
                    && data.addr().is_multiple_of(ZERO_COPY_ALIGNMENT) =>
            {
                Some(bytes.clone())
            }
            _ => None,
        };
        let dims = spec.shape.dims();
        let (device, memory) = target(client, placement)?;
        let layout = spec
            .layout
            .as_ref()
            .map(|layout| custom(client, layout, dims.len()))
            .transpose()?;
        let mut raw_layout = layout.as_ref().map(RawLayout::raw);
        let mut args = ClientBufferFromHostBufferArgs {
            client: client.raw(),
            data: data.cast(),
            type_,
            dims: dims.as_ptr(),
            num_dims: dims.len(),
            byte_strides: strides.map_or(std::ptr::null(), <[i64]>::as_ptr),
            num_byte_strides: strides.map_or(0, <[i64]>::len),
            host_buffer_semantics: match shared {
                Some(_) => semantics::IMMUTABLE_ZERO_COPY,
                None => semantics::IMMUTABLE_ONLY_DURING_CALL,
            },
            device,
            memory,
            device_layout: raw_layout
                .as_mut()
                .map_or(std::ptr::null_mut(), std::ptr::from_mut),
            ..ClientBufferFromHostBufferArgs::NEW
        };
        // SAFETY: S3 and S4 for the arguments; every element lies inside the memory, which is
        // borrowed for the call, and beyond it kept by the callback below (S11).
        unsafe { client.api().call::<ClientBufferFromHostBuffer>(&mut args) }?;
        if let Some(bytes) = shared {
            // The event ends the use of the memory: with the transfer, or with the buffer if the
            // plugin uses the memory in place.
            match Event::from_raw(client.api(), args.done_with_host_buffer) {
                Some(done) => done.on_ready(bytes, drop),
                None => keep_forever(bytes),
            }
        } else {
            // The data was copied before the call returned; the event has nothing to tell.
            drop(Event::from_raw(client.api(), args.done_with_host_buffer));
        }
        Self::from_raw::<ClientBufferFromHostBuffer>(
            client,
            args.buffer,
            Arc::clone(spec),
            placement,
        )
    }

    /// Makes a buffer that is ready with an error.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the plugin has no such buffers, or none in a memory.
    pub(crate) fn from_error(
        client: &Client,
        spec: &Arc<ShardSpec>,
        placement: Placement,
        error: &Status,
    ) -> Result<Arc<Self>> {
        let shape_element_type = dtype::to_pjrt(spec.dtype, client.minor())?;
        let (_, memory) = target(client, placement)?;
        if memory.is_null() {
            return Err(Status::unimplemented(
                "a plugin without memories has no error buffers",
            ));
        }
        let dims = spec.shape.dims();
        // Without a layout one released plugin aborts later.
        let layout = RawLayout::descending(dims.len());
        let mut layout = layout.raw();
        let payloads: AttributeMap = error
            .payloads()
            .map(|(key, value)| (key, value.clone()))
            .collect();
        let payloads = NamedValues::new(&payloads);
        let takes_payloads = client.minor() >= ERROR_PAYLOAD_MINOR;
        let mut args = ClientCreateErrorBufferArgs {
            client: client.raw(),
            error_code: error.code().number(),
            error_message: error.message().as_ptr(),
            error_message_size: error.message().len(),
            shape_dims: dims.as_ptr(),
            shape_num_dims: dims.len(),
            shape_element_type,
            shape_layout: &raw mut layout,
            memory,
            payload: if takes_payloads {
                payloads.as_ptr()
            } else {
                std::ptr::null()
            },
            num_payload: if takes_payloads { payloads.len() } else { 0 },
            ..ClientCreateErrorBufferArgs::NEW
        };
        // SAFETY: S3 and S4.
        unsafe { client.api().call::<ClientCreateErrorBuffer>(&mut args) }?;
        Self::from_raw::<ClientCreateErrorBuffer>(client, args.buffer, Arc::clone(spec), placement)
    }
}

pub(super) type Target = (*mut crate::sys::Device, *mut crate::sys::Memory);

/// The device or, where the plugin knows memories, the memory; never both and never neither.
pub(super) fn target(client: &Client, placement: Placement) -> Result<Target> {
    Ok(match placement.memory {
        Some(memory) => (std::ptr::null_mut(), client.memory_at(memory)?.raw.as_ptr()),
        None => (
            client.device_at(placement.device)?.raw.as_ptr(),
            std::ptr::null_mut(),
        ),
    })
}

/// Memory of which nobody will say when the plugin is done with it (S11).
fn keep_forever(bytes: Bytes) {
    tracing::warn!(
        bytes = bytes.len(),
        "the plugin does not say when it is done with host memory"
    );
    let _kept: &'static Bytes = Box::leak(Box::new(bytes));
}

/// The struct form of a layout that is not the default.
pub(super) fn custom(client: &Client, layout: &Layout, rank: usize) -> Result<RawLayout> {
    if layout.minor_to_major().len() != rank {
        return Err(Status::invalid_argument(format!(
            "the layout {layout} is not for an array with {rank} dimensions"
        )));
    }
    if client.minor() < LAYOUT_MINOR || !layout.properties().is_empty() {
        return Err(Status::unimplemented(format!(
            "arrays cannot be made with the layout {layout} by this plugin (PJRT C API 0.{}); use \
             the default layout",
            client.minor()
        )));
    }
    Ok(RawLayout::new(layout))
}
