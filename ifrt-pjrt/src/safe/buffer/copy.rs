//! Buffers from buffers: to another device or memory, or seen as another type.

use std::sync::Arc;

use ifrt::Result;

use super::{Buffer, Placement, ShardSpec};
use crate::safe::dtype;
use crate::safe::layout::RawLayout;
use crate::sys::api::{BufferBitcast, BufferCopyToDevice, BufferCopyToMemory};
use crate::sys::buffer::{BufferBitcastArgs, BufferCopyToDeviceArgs, BufferCopyToMemoryArgs};

impl Buffer {
    /// Copies the buffer, also to where it already is.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the buffer is gone; those of the plugin.
    pub(crate) fn copy_to(&self, placement: Placement) -> Result<Arc<Self>> {
        let spec = Arc::clone(&self.spec);
        let pinned = self.pin()?;
        match placement.memory {
            Some(memory) => {
                let mut args = BufferCopyToMemoryArgs {
                    buffer: pinned.raw(),
                    dst_memory: self.client.memory_at(memory)?.raw.as_ptr(),
                    ..BufferCopyToMemoryArgs::NEW
                };
                // SAFETY: S3, S4 and S6.
                unsafe { self.client.api().call::<BufferCopyToMemory>(&mut args) }?;
                let raw = args.dst_buffer;
                Self::from_raw::<BufferCopyToMemory>(&self.client, raw, spec, placement)
            }
            None => {
                let mut args = BufferCopyToDeviceArgs {
                    buffer: pinned.raw(),
                    dst_device: self.client.device_at(placement.device)?.raw.as_ptr(),
                    ..BufferCopyToDeviceArgs::NEW
                };
                // SAFETY: S3, S4 and S6.
                unsafe { self.client.api().call::<BufferCopyToDevice>(&mut args) }?;
                let raw = args.dst_buffer;
                Self::from_raw::<BufferCopyToDevice>(&self.client, raw, spec, placement)
            }
        }
    }

    /// Gives the bytes of the buffer another dtype and shape. The buffer is consumed on success.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the plugin has no such function; INVALID_ARGUMENT if the buffer is gone;
    /// those of the plugin.
    pub(crate) fn bitcast(&self, spec: &Arc<ShardSpec>) -> Result<Arc<Self>> {
        let element_type = dtype::to_pjrt(spec.dtype, self.client.minor())?;
        let dims = spec.shape.dims();
        let layout = RawLayout::descending(dims.len());
        let mut layout = layout.raw();
        let mut pinned = self.pin_exclusively()?;
        let mut args = BufferBitcastArgs {
            buffer: pinned.raw(),
            element_type,
            dims: dims.as_ptr(),
            num_dims: dims.len(),
            device_layout: &raw mut layout,
            ..BufferBitcastArgs::NEW
        };
        // SAFETY: S3, S4 and S6.
        unsafe { self.client.api().call::<BufferBitcast>(&mut args) }?;
        pinned.note_donation();
        let (raw, spec) = (args.out_buffer, Arc::clone(spec));
        Self::from_raw::<BufferBitcast>(&self.client, raw, spec, self.placement)
    }
}
