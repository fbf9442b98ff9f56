//! Buffers and layouts.

use std::ffi::c_void;

use super::{Buffer, CBool, Device, Event, Memory};

/// What [`MemoryLayout`] holds.
pub(crate) mod layout_type {
    pub(crate) const TILED: i32 = 0;
}

/// When the caller's host bytes may change or go.
pub(crate) mod host_buffer_semantics {
    pub(crate) const IMMUTABLE_ONLY_DURING_CALL: i32 = 0;
    pub(crate) const IMMUTABLE_ZERO_COPY: i32 = 2;
}

pjrt_struct! {
    /// Dimension order and tiles.
    MemoryLayoutTiled: 56 {
        16 minor_to_major: *const i64,
        24 minor_to_major_size: usize,
        32 tile_dims: *const i64,
        40 tile_dim_sizes: *const usize,
        48 num_tiles: usize,
    }

    /// A layout. In C its third member is a union of the tiled form, which is the larger one, and
    /// a strided form that is never used here.
    MemoryLayout: 76 {
        16 tiled: MemoryLayoutTiled,
        72 type_: i32,
    }
}

pjrt_struct! {
    /// Arguments of `PJRT_Buffer_Destroy`.
    BufferDestroyArgs: 24 {
        16 buffer: *mut Buffer,
    }

    /// Arguments of `PJRT_Buffer_OnDeviceSizeInBytes`.
    BufferOnDeviceSizeInBytesArgs: 32 {
        16 buffer: *mut Buffer,
        24 on_device_size_in_bytes: usize,
    }

    /// Arguments of `PJRT_Buffer_IsDeleted`.
    BufferIsDeletedArgs: 25 {
        16 buffer: *mut Buffer,
        24 is_deleted: CBool,
    }

    /// Arguments of `PJRT_Buffer_CopyToDevice`.
    BufferCopyToDeviceArgs: 40 {
        16 buffer: *mut Buffer,
        24 dst_device: *mut Device,
        32 dst_buffer: *mut Buffer,
    }

    /// Arguments of `PJRT_Buffer_CopyToMemory`.
    BufferCopyToMemoryArgs: 40 {
        16 buffer: *mut Buffer,
        24 dst_memory: *mut Memory,
        32 dst_buffer: *mut Buffer,
    }

    /// Arguments of `PJRT_Buffer_ToHostBuffer`. Without a layout the bytes come in the buffer's own.
    BufferToHostBufferArgs: 56 {
        16 src: *mut Buffer,
        24 host_layout: *mut MemoryLayout,
        32 dst: *mut c_void,
        40 dst_size: usize,
        48 event: *mut Event,
    }

    /// Arguments of `PJRT_Buffer_ReadyEvent`.
    BufferReadyEventArgs: 32 {
        16 buffer: *mut Buffer,
        24 event: *mut Event,
    }

    /// Arguments of `PJRT_Buffer_IncreaseExternalReferenceCount`.
    BufferIncreaseExternalReferenceCountArgs: 24 {
        16 buffer: *mut Buffer,
    }

    /// Arguments of `PJRT_Buffer_DecreaseExternalReferenceCount`.
    BufferDecreaseExternalReferenceCountArgs: 24 {
        16 buffer: *mut Buffer,
    }

    /// Arguments of `PJRT_Buffer_OpaqueDeviceMemoryDataPointer`.
    BufferOpaqueDeviceMemoryDataPointerArgs: 32 {
        16 buffer: *mut Buffer,
        24 device_memory_ptr: *mut c_void,
    }

    /// Arguments of `PJRT_Buffer_Bitcast`.
    BufferBitcastArgs: 64 {
        16 buffer: *mut Buffer,
        24 element_type: i32,
        32 dims: *const i64,
        40 num_dims: usize,
        48 device_layout: *mut MemoryLayout,
        56 out_buffer: *mut Buffer,
    }
}
