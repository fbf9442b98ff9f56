//! Clients, options and programs.

use std::ffi::c_void;

use super::buffer::MemoryLayout;
use super::{
    Buffer, CBool, Client, Device, Event, ExtensionBase, FulfillAliasBufferCallback,
    LoadedExecutable, Memory,
};
use super::{Sized0, UnusedCallback};

/// What a [`NamedValue`] holds.
pub(crate) mod named_value_type {
    pub(crate) const STRING: i32 = 0;
    pub(crate) const INT64: i32 = 1;
    pub(crate) const INT64_LIST: i32 = 2;
    pub(crate) const FLOAT: i32 = 3;
    pub(crate) const BOOL: i32 = 4;
}

/// The value of a [`NamedValue`]; `type_` says which field.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union NamedValueUnion {
    pub(crate) string_value: *const u8,
    pub(crate) int64_value: i64,
    pub(crate) int64_array_value: *const i64,
    pub(crate) float_value: f32,
    pub(crate) bool_value: CBool,
}

/// A named option or attribute. A plugin aborts on a `type_` that it does not know.
#[repr(C)]
pub(crate) struct NamedValue {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut ExtensionBase,
    pub(crate) name: *const u8,
    pub(crate) name_size: usize,
    pub(crate) type_: i32,
    pub(crate) value: NamedValueUnion,
    /// The number of bytes or list elements; 1 for the rest.
    pub(crate) value_size: usize,
}

impl Sized0 for NamedValue {
    const STRUCT_SIZE: usize = 56;
    const GROWTH: &'static [(&'static str, i32)] = &[];
}

const _: () = {
    assert!(std::mem::offset_of!(NamedValue, name) == 16);
    assert!(std::mem::offset_of!(NamedValue, type_) == 32);
    assert!(std::mem::offset_of!(NamedValue, value) == 40);
    assert!(std::mem::offset_of!(NamedValue, value_size) == 48);
    assert!(size_of::<NamedValue>() == 56);
};

pjrt_struct! {
    /// Arguments of `PJRT_Client_Create`. The store callbacks serve clients of several processes.
    ClientCreateArgs: 88 {
        16 create_options: *const NamedValue,
        24 num_options: usize,
        32 kv_get_callback: UnusedCallback,
        40 kv_get_user_arg: *mut c_void,
        48 kv_put_callback: UnusedCallback,
        56 kv_put_user_arg: *mut c_void,
        64 client: *mut Client,
        72 kv_try_get_callback: UnusedCallback => 61,
        80 kv_try_get_user_arg: *mut c_void => 61,
    }

    /// Arguments of `PJRT_Client_Destroy`. Waits for running work; deadlocks inside a callback.
    ClientDestroyArgs: 24 {
        16 client: *mut Client,
    }

    /// Arguments of `PJRT_Client_PlatformName`.
    ClientPlatformNameArgs: 40 {
        16 client: *mut Client,
        24 platform_name: *const u8,
        32 platform_name_size: usize,
    }

    /// Arguments of `PJRT_Client_ProcessIndex`.
    ClientProcessIndexArgs: 28 {
        16 client: *mut Client,
        24 process_index: i32,
    }

    /// Arguments of `PJRT_Client_PlatformVersion`.
    ClientPlatformVersionArgs: 40 {
        16 client: *mut Client,
        24 platform_version: *const u8,
        32 platform_version_size: usize,
    }

    /// Arguments of `PJRT_Client_Devices`.
    ClientDevicesArgs: 40 {
        16 client: *mut Client,
        24 devices: *const *mut Device,
        32 num_devices: usize,
    }

    /// Arguments of `PJRT_Client_AddressableMemories`.
    ClientAddressableMemoriesArgs: 40 {
        16 client: *mut Client,
        24 addressable_memories: *const *mut Memory,
        32 num_addressable_memories: usize,
    }

    /// A program, to a plugin or from it. `code` is the caller's in both directions.
    Program: 48 {
        16 code: *mut u8,
        24 code_size: usize,
        32 format: *const u8,
        40 format_size: usize,
    }

    /// Arguments of `PJRT_Client_Compile`. Aborts if the options ask for no replica.
    ClientCompileArgs: 56 {
        16 client: *mut Client,
        24 program: *const Program,
        32 compile_options: *const u8,
        40 compile_options_size: usize,
        48 executable: *mut LoadedExecutable,
    }

    /// Arguments of `PJRT_Client_DefaultDeviceAssignment`. The caller owns the ids.
    ClientDefaultDeviceAssignmentArgs: 48 {
        16 client: *mut Client,
        24 num_replicas: i32,
        28 num_partitions: i32,
        32 default_assignment_size: usize,
        40 default_assignment: *mut i32,
    }

    /// Arguments of `PJRT_Client_BufferFromHostBuffer`. One of device and memory must be set.
    ClientBufferFromHostBufferArgs: 120 {
        16 client: *mut Client,
        24 data: *const c_void,
        32 type_: i32,
        40 dims: *const i64,
        48 num_dims: usize,
        56 byte_strides: *const i64,
        64 num_byte_strides: usize,
        72 host_buffer_semantics: i32,
        80 device: *mut Device,
        88 memory: *mut Memory,
        96 device_layout: *mut MemoryLayout,
        104 done_with_host_buffer: *mut Event,
        112 buffer: *mut Buffer,
    }

    /// Arguments of `PJRT_Client_CreateErrorBuffer`.
    ClientCreateErrorBufferArgs: 112 {
        16 client: *mut Client,
        24 error_code: i32,
        32 error_message: *const u8,
        40 error_message_size: usize,
        48 shape_dims: *const i64,
        56 shape_num_dims: usize,
        64 shape_element_type: i32,
        72 shape_layout: *mut MemoryLayout,
        80 memory: *mut Memory,
        88 buffer: *mut Buffer,
        96 payload: *const NamedValue => 103,
        104 num_payload: usize => 103,
    }

    /// Arguments of `PJRT_Client_CreateAliasBuffer`. Without a layout some plugins abort later.
    ClientCreateAliasBufferArgs: 80 {
        16 client: *mut Client,
        24 memory: *mut Memory,
        32 shape_dims: *const i64,
        40 shape_num_dims: usize,
        48 shape_element_type: i32,
        56 shape_layout: *mut MemoryLayout,
        64 alias_buffer: *mut Buffer,
        72 fulfill_alias_buffer_cb: *mut FulfillAliasBufferCallback,
    }

    /// Arguments of `PJRT_Client_FulfillAliasBuffer`: a buffer, which is consumed, or an error. The
    /// callback is consumed whatever the call answers.
    ClientFulfillAliasBufferArgs: 64 {
        16 client: *mut Client,
        24 buffer: *mut Buffer,
        32 status_code: i32,
        40 error_message: *const u8,
        48 error_message_size: usize,
        56 fulfill_alias_buffer_cb: *mut FulfillAliasBufferCallback,
    }
}
