//! Extensions of the function table that this crate knows.

use std::ffi::c_void;

use super::{Client, Deleter, Executable, LayoutsMemoryLayout};

/// The numbers under which extensions stand in the chain.
pub(crate) mod extension_type {
    pub(crate) const LAYOUTS: i32 = 4;
    pub(crate) const FFI: i32 = 5;
    pub(crate) const SHARDINGS: i32 = 19;
}

pjrt_struct! {
    /// Arguments of `PJRT_Layouts_MemoryLayout_Destroy`.
    LayoutsMemoryLayoutDestroyArgs: 24 {
        16 layout: *mut LayoutsMemoryLayout,
    }

    /// Arguments of `PJRT_Layouts_MemoryLayout_Serialize`. The bytes are text such as `{1,0}`.
    LayoutsMemoryLayoutSerializeArgs: 56 {
        16 layout: *mut LayoutsMemoryLayout,
        24 serialized_bytes: *const u8,
        32 serialized_bytes_size: usize,
        40 serialized_layout: *mut c_void,
        48 serialized_layout_deleter: Deleter,
    }

    /// Arguments of `PJRT_Layouts_PJRT_Client_GetDefaultLayout`. The caller owns the layout.
    LayoutsClientGetDefaultLayoutArgs: 56 {
        16 client: *mut Client,
        24 type_: i32,
        32 dims: *const i64,
        40 num_dims: usize,
        48 layout: *mut LayoutsMemoryLayout,
    }

    /// Arguments of `PJRT_Layouts_PJRT_Executable_GetOutputLayouts`. The executable owns the list.
    LayoutsExecutableGetOutputLayoutsArgs: 40 {
        16 executable: *mut Executable,
        24 num_outputs: usize,
        32 layouts: *mut *mut LayoutsMemoryLayout,
    }

    /// Arguments of `PJRT_Layouts_PJRT_Executable_GetParameterLayouts`. The executable owns the list.
    LayoutsExecutableGetParameterLayoutsArgs: 40 {
        16 executable: *mut Executable,
        24 num_parameters: usize,
        32 layouts: *mut *mut LayoutsMemoryLayout,
    }

    /// Arguments of `PJRT_Shardings_PJRT_Executable_ParameterShardings`. A NULL list means that
    /// the program carries no shardings.
    ShardingsExecutableParameterShardingsArgs: 48 {
        16 executable: *mut Executable,
        24 num_parameters: usize,
        32 shardings: *const *const u8,
        40 sharding_sizes: *const usize,
    }

    /// Arguments of `PJRT_Shardings_PJRT_Executable_OutputShardings`.
    ShardingsExecutableOutputShardingsArgs: 48 {
        16 executable: *mut Executable,
        24 num_outputs: usize,
        32 shardings: *const *const u8,
        40 sharding_sizes: *const usize,
    }
}

pjrt_table! {
    /// Extension 4: layouts as XLA's text.
    Layouts: 24..80, LAYOUTS {
        24 "PJRT_Layouts_MemoryLayout_Destroy" 0
            => LayoutsMemoryLayoutDestroy(LayoutsMemoryLayoutDestroyArgs);
        32 "PJRT_Layouts_MemoryLayout_Serialize" 0
            => LayoutsMemoryLayoutSerialize(LayoutsMemoryLayoutSerializeArgs);
        40 "PJRT_Layouts_PJRT_Client_GetDefaultLayout" 0
            => LayoutsClientGetDefaultLayout(LayoutsClientGetDefaultLayoutArgs);
        48 "PJRT_Layouts_PJRT_Buffer_MemoryLayout" 0;
        56 "PJRT_Layouts_PJRT_Topology_GetDefaultLayout" 0;
        64 "PJRT_Layouts_PJRT_Executable_GetOutputLayouts" 81
            => LayoutsExecutableGetOutputLayouts(LayoutsExecutableGetOutputLayoutsArgs);
        72 "PJRT_Layouts_PJRT_Executable_GetParameterLayouts" 93
            => LayoutsExecutableGetParameterLayouts(LayoutsExecutableGetParameterLayoutsArgs);
    }
}

pjrt_table! {
    /// Extension 19: shardings of executables as serialized `OpSharding`.
    Shardings: 24..40, SHARDINGS {
        24 "PJRT_Shardings_PJRT_Executable_ParameterShardings" 91
            => ShardingsExecutableParameterShardings(ShardingsExecutableParameterShardingsArgs);
        32 "PJRT_Shardings_PJRT_Executable_OutputShardings" 91
            => ShardingsExecutableOutputShardings(ShardingsExecutableOutputShardingsArgs);
    }
}

pjrt_table! {
    /// Extension 5: handlers and state of custom calls.
    Ffi: 24..48, FFI {
        24 "PJRT_FFI_Type_Register" 0;
        32 "PJRT_FFI_UserData_Add" 0;
        40 "PJRT_FFI_Register_Handler" 0
            => FFIRegisterHandler(super::ffi::RegisterHandlerArgs);
    }
}
