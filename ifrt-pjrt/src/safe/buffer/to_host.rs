//! Buffers to host memory.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use ifrt::dtype::DType;
use ifrt::{Completion, Result, Status};

use super::{Buffer, Pinned};
use crate::safe::bytes::lent;
use crate::safe::event::{Event, missing};
use crate::safe::layout::RawLayout;
use crate::sys::Function;
use crate::sys::api::{
    BufferDecreaseExternalReferenceCount, BufferIncreaseExternalReferenceCount,
    BufferOpaqueDeviceMemoryDataPointer, BufferToHostBuffer,
};
use crate::sys::buffer::{
    BufferDecreaseExternalReferenceCountArgs, BufferIncreaseExternalReferenceCountArgs,
    BufferOpaqueDeviceMemoryDataPointerArgs, BufferToHostBufferArgs,
};

/// Up to this size, data that lies in this process is copied by the reader. The plugin would do it
/// on another thread, and the way there and back takes longer.
const READ_IN_PLACE_BYTES: usize = 64 * 1024;

impl Buffer {
    /// The elements, dense and major to minor; types below a byte take one each, sign extended.
    ///
    /// The copy is under way when this returns; deleting the buffer then does not disturb it.
    pub(crate) fn to_host(&self) -> Completion<Bytes> {
        self.start_to_host()
            .unwrap_or_else(|status| Completion::ready(Err(status)))
    }

    fn start_to_host(&self) -> Result<Completion<Bytes>> {
        let dtype = self.spec.dtype;
        let item = dtype.host_byte_size().ok_or_else(|| {
            Status::invalid_argument(format!("an array of dtype {dtype} has no data on the host"))
        })?;
        let len = usize::try_from(self.spec.shape.num_elements())
            .ok()
            .and_then(|elements| elements.checked_mul(item))
            .ok_or_else(|| Status::resource_exhausted("the array exceeds the address space"))?;
        if len == 0 {
            return Ok(self
                .ready()
                .then(|ready| ready.clone().map(|()| Bytes::new())));
        }
        let pinned = self.pin()?;
        if let Some(bytes) = self.read_in_place(&pinned, len) {
            return Ok(Completion::ready(Ok(bytes)));
        }
        let mut dst: Vec<u8> = Vec::new();
        dst.try_reserve_exact(len).map_err(|error| {
            Status::resource_exhausted(format!("no {len} bytes of host memory: {error}"))
        })?;
        // Without a layout the bytes would come in the order that they have on the device.
        let layout = RawLayout::descending(self.spec.shape.rank());
        let mut layout = layout.raw();
        let api = self.client.api();
        let mut args = BufferToHostBufferArgs {
            src: pinned.raw(),
            host_layout: &raw mut layout,
            dst: dst.as_mut_ptr().cast(),
            dst_size: len,
            ..BufferToHostBufferArgs::NEW
        };
        // SAFETY: S3, S4 and S6; the destination has room for `len` bytes and is kept by the
        // callback below until the event ends the copy (S11).
        unsafe { api.call::<BufferToHostBuffer>(&mut args) }?;
        let event = Event::from_raw(api, args.event)
            .ok_or_else(|| missing(BufferToHostBuffer::NAME, "event"))?;
        let (promise, completion) = Completion::pair();
        event.on_ready(dst, move |dst| {
            promise.set(dst.map(|mut dst| {
                // SAFETY: S11; the event was ready without an error, so all bytes are written.
                unsafe { dst.set_len(len) };
                sign_extend(dtype, &mut dst);
                Bytes::from(dst)
            }));
        });
        Ok(completion)
    }

    /// The elements of a small array that is ready and lies in the memory of this process.
    fn read_in_place(&self, pinned: &Pinned<'_>, len: usize) -> Option<Bytes> {
        if !self.client.is_cpu()
            || len > READ_IN_PLACE_BYTES
            // The default of this platform is dense and major to minor.
            || self.spec.layout.is_some()
            || self.spec.dtype.is_sub_byte()
            || self.ready().peek() != Some(Ok(()))
        {
            return None;
        }
        let reference = Reference::take(pinned)?;
        let data = reference.data()?;
        // SAFETY: S9 and S12; the reference keeps the memory and the pin keeps others from donating
        // it. The array is ready, dense, and takes `len` bytes.
        Some(Bytes::copy_from_slice(unsafe { lent(data, len) }))
    }
}

/// An external reference: the memory of a buffer stays while it is held. There is one per buffer at
/// a time, since the C API does not allow calls on them at once (S12).
struct Reference<'a>(&'a Pinned<'a>);

impl<'a> Reference<'a> {
    /// `None` if another thread holds it, or the plugin gives none.
    fn take(pinned: &'a Pinned<'_>) -> Option<Self> {
        if pinned.buffer.is_referenced.swap(true, Ordering::Acquire) {
            return None;
        }
        let mut args = BufferIncreaseExternalReferenceCountArgs {
            buffer: pinned.raw(),
            ..BufferIncreaseExternalReferenceCountArgs::NEW
        };
        let api = pinned.buffer.client.api();
        // SAFETY: S3, S4, S6 and S12.
        match unsafe { api.call::<BufferIncreaseExternalReferenceCount>(&mut args) } {
            Ok(()) => Some(Self(pinned)),
            Err(_) => {
                pinned.buffer.is_referenced.store(false, Ordering::Release);
                None
            }
        }
    }

    fn data(&self) -> Option<*const u8> {
        let mut args = BufferOpaqueDeviceMemoryDataPointerArgs {
            buffer: self.0.raw(),
            ..BufferOpaqueDeviceMemoryDataPointerArgs::NEW
        };
        let api = self.0.buffer.client.api();
        // SAFETY: S3, S4, S6 and S12.
        unsafe { api.call::<BufferOpaqueDeviceMemoryDataPointer>(&mut args) }.ok()?;
        let data = args.device_memory_ptr.cast_const().cast();
        (!args.device_memory_ptr.is_null()).then_some(data)
    }
}

impl Drop for Reference<'_> {
    fn drop(&mut self) {
        let mut args = BufferDecreaseExternalReferenceCountArgs {
            buffer: self.0.raw(),
            ..BufferDecreaseExternalReferenceCountArgs::NEW
        };
        let api = self.0.buffer.client.api();
        // SAFETY: S3, S4, S6 and S12.
        let released = unsafe { api.call::<BufferDecreaseExternalReferenceCount>(&mut args) };
        if let Err(status) = released {
            tracing::warn!(%status, "an external reference cannot be released");
        }
        self.0.buffer.is_referenced.store(false, Ordering::Release);
    }
}

/// Fills the upper bits of signed elements that are smaller than a byte: a plugin leaves them zero.
fn sign_extend(dtype: DType, bytes: &mut [u8]) {
    let bits = match dtype {
        DType::S1 => 1,
        DType::S2 => 2,
        DType::S4 => 4,
        _ => return,
    };
    let sign = 1_u8 << (bits - 1);
    let mask = sign | (sign - 1);
    for byte in bytes {
        // Flipping the sign bit and subtracting it carries it into all bits above.
        *byte = ((*byte & mask) ^ sign).wrapping_sub(sign);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_extended() {
        for (dtype, raw, extended) in [
            (DType::S4, [0, 1, 7, 8, 14, 15], [0_i8, 1, 7, -8, -2, -1]),
            (DType::S2, [0, 1, 2, 3, 2, 1], [0, 1, -2, -1, -2, 1]),
            (DType::S1, [0, 1, 0, 1, 1, 0], [0, -1, 0, -1, -1, 0]),
            (DType::U4, [0, 1, 7, 8, 14, 15], [0, 1, 7, 8, 14, 15]),
        ] {
            let mut bytes = raw;
            sign_extend(dtype, &mut bytes);
            assert_eq!(bytes.map(u8::cast_signed), extended, "{dtype}");
        }
    }
}
