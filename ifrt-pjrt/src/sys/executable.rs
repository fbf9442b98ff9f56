//! Executables: queries, serialization, execution.
//!
//! The lists and strings of queries live as long as the executable. An executable got from a
//! loaded one must not be queried once the loaded one is gone.

use std::ffi::c_void;

use super::LoadedExecutable;
use super::client::{NamedValue, Program};
use super::{Buffer, CBool, Client, Deleter, Device, Event, Executable, ExecuteContext};

pjrt_struct! {
    /// Arguments of `PJRT_Executable_Destroy`.
    ExecutableDestroyArgs: 24 {
        16 executable: *mut Executable,
    }

    /// Arguments of `PJRT_Executable_Name`.
    ExecutableNameArgs: 40 {
        16 executable: *mut Executable,
        24 executable_name: *const u8,
        32 executable_name_size: usize,
    }

    /// Arguments of `PJRT_Executable_NumReplicas`.
    ExecutableNumReplicasArgs: 32 {
        16 executable: *mut Executable,
        24 num_replicas: usize,
    }

    /// Arguments of `PJRT_Executable_NumPartitions`.
    ExecutableNumPartitionsArgs: 32 {
        16 executable: *mut Executable,
        24 num_partitions: usize,
    }

    /// Arguments of `PJRT_Executable_NumOutputs`.
    ExecutableNumOutputsArgs: 32 {
        16 executable: *mut Executable,
        24 num_outputs: usize,
    }

    /// Arguments of `PJRT_Executable_SizeOfGeneratedCodeInBytes`.
    ExecutableSizeOfGeneratedCodeInBytesArgs: 32 {
        16 executable: *mut Executable,
        24 size_in_bytes: i64,
    }

    /// Arguments of `PJRT_Executable_GetCostAnalysis`.
    ExecutableGetCostAnalysisArgs: 40 {
        16 executable: *mut Executable,
        24 num_properties: usize,
        32 properties: *const NamedValue,
    }

    /// Arguments of `PJRT_Executable_OutputMemoryKinds`.
    ExecutableOutputMemoryKindsArgs: 48 {
        16 executable: *mut Executable,
        24 num_outputs: usize,
        32 memory_kinds: *const *const u8,
        40 memory_kind_sizes: *const usize,
    }

    /// Arguments of `PJRT_Executable_OptimizedProgram`. Called twice: for the sizes, for the bytes.
    ExecutableOptimizedProgramArgs: 32 {
        16 executable: *mut Executable,
        24 program: *mut Program,
    }

    /// Arguments of `PJRT_Executable_Serialize`.
    ExecutableSerializeArgs: 56 {
        16 executable: *mut Executable,
        24 serialized_bytes: *const u8,
        32 serialized_bytes_size: usize,
        40 serialized_executable: *mut c_void,
        48 serialized_executable_deleter: Deleter,
    }

    /// Arguments of `PJRT_LoadedExecutable_Destroy`.
    LoadedExecutableDestroyArgs: 24 {
        16 executable: *mut LoadedExecutable,
    }

    /// Arguments of `PJRT_LoadedExecutable_GetExecutable`. The result must not outlive the argument.
    LoadedExecutableGetExecutableArgs: 32 {
        16 loaded_executable: *mut LoadedExecutable,
        24 executable: *mut Executable,
    }

    /// Arguments of `PJRT_LoadedExecutable_AddressableDevices`.
    LoadedExecutableAddressableDevicesArgs: 40 {
        16 executable: *mut LoadedExecutable,
        24 addressable_devices: *const *mut Device,
        32 num_addressable_devices: usize,
    }

    /// Options of an execution, checked for their size like arguments.
    ExecuteOptions: 144 {
        16 send_callbacks: *mut *mut c_void,
        24 recv_callbacks: *mut *mut c_void,
        32 num_send_ops: usize,
        40 num_recv_ops: usize,
        48 launch_id: i32,
        56 non_donatable_input_indices: *const i64,
        64 num_non_donatable_input_indices: usize,
        72 context: *mut ExecuteContext => 64,
        80 call_location: *const u8 => 76,
        88 num_tasks: usize => 78,
        96 task_ids: *mut i32 => 78,
        104 incarnation_ids: *mut i64 => 78,
        112 multi_slice_config: *mut c_void => 97,
        120 use_major_to_minor_data_layout_for_callbacks: CBool => 108,
        128 hlo_output_callbacks: *mut c_void => 112,
        136 num_hlo_output_callbacks: usize => 112,
    }

    /// Arguments of `PJRT_LoadedExecutable_Execute`. A NULL buffer crashes the process; dtypes are not
    /// checked.
    LoadedExecutableExecuteArgs: 80 {
        16 executable: *mut LoadedExecutable,
        24 options: *mut ExecuteOptions,
        32 argument_lists: *const *const *mut Buffer,
        40 num_devices: usize,
        48 num_args: usize,
        56 output_lists: *const *mut *mut Buffer,
        64 device_complete_events: *mut *mut Event,
        72 execute_device: *mut Device,
    }

    /// Arguments of `PJRT_Executable_DeserializeAndLoad`.
    ExecutableDeserializeAndLoadArgs: 72 {
        16 client: *mut Client,
        24 serialized_executable: *const u8,
        32 serialized_executable_size: usize,
        40 loaded_executable: *mut LoadedExecutable,
        48 overridden_serialized_compile_options: *const u8 => 71,
        56 overridden_serialized_compile_options_size: usize => 71,
        64 load_options: *mut c_void => 111,
    }

    /// Arguments of `PJRT_Executable_OutputElementTypes`.
    ExecutableOutputElementTypesArgs: 40 {
        16 executable: *mut Executable,
        24 output_types: *mut i32,
        32 num_output_types: usize,
    }

    /// Arguments of `PJRT_Executable_OutputDimensions`.
    ExecutableOutputDimensionsArgs: 48 {
        16 executable: *mut Executable,
        24 num_outputs: usize,
        32 dims: *const i64,
        40 dim_sizes: *const usize,
    }

    /// Arguments of `PJRT_Executable_Fingerprint`.
    ExecutableFingerprintArgs: 40 {
        16 executable: *mut Executable,
        24 executable_fingerprint: *const u8,
        32 executable_fingerprint_size: usize,
    }

    /// Arguments of `PJRT_Executable_GetCompiledMemoryStats`.
    ExecutableGetCompiledMemoryStatsArgs: 144 {
        16 executable: *mut Executable,
        24 generated_code_size_in_bytes: i64,
        32 argument_size_in_bytes: i64,
        40 output_size_in_bytes: i64,
        48 alias_size_in_bytes: i64,
        56 temp_size_in_bytes: i64,
        64 host_generated_code_size_in_bytes: i64 => 43,
        72 host_argument_size_in_bytes: i64 => 43,
        80 host_output_size_in_bytes: i64 => 43,
        88 host_alias_size_in_bytes: i64 => 43,
        96 host_temp_size_in_bytes: i64 => 43,
        104 peak_memory_in_bytes: i64 => 72,
        112 total_size_in_bytes: i64 => 90,
        120 total_allocation_bytes: i64 => 104,
        128 indefinite_allocations: i64 => 104,
        136 peak_unpadded_heap_bytes: i64 => 104,
    }

    /// Arguments of `PJRT_LoadedExecutable_GetDeviceAssignment`.
    LoadedExecutableGetDeviceAssignmentArgs: 56 {
        16 executable: *mut LoadedExecutable,
        24 serialized_bytes: *const u8,
        32 serialized_bytes_size: usize,
        40 serialized_device_assignment: *mut c_void,
        48 serialized_device_assignment_deleter: Deleter,
    }
}
