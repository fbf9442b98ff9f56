//! Devices and memories. Their strings and lists live as long as the client.

use super::client::NamedValue;
use super::{CBool, Device, DeviceDescription, Memory};

pjrt_struct! {
    /// Arguments of `PJRT_DeviceDescription_Id`.
    DeviceDescriptionIdArgs: 28 {
        16 device_description: *mut DeviceDescription,
        24 id: i32,
    }

    /// Arguments of `PJRT_DeviceDescription_ProcessIndex`.
    DeviceDescriptionProcessIndexArgs: 28 {
        16 device_description: *mut DeviceDescription,
        24 process_index: i32,
    }

    /// Arguments of `PJRT_DeviceDescription_Attributes`.
    DeviceDescriptionAttributesArgs: 40 {
        16 device_description: *mut DeviceDescription,
        24 num_attributes: usize,
        32 attributes: *const NamedValue,
    }

    /// Arguments of `PJRT_DeviceDescription_Kind`.
    DeviceDescriptionKindArgs: 40 {
        16 device_description: *mut DeviceDescription,
        24 device_kind: *const u8,
        32 device_kind_size: usize,
    }

    /// Arguments of `PJRT_DeviceDescription_DebugString`.
    DeviceDescriptionDebugStringArgs: 40 {
        16 device_description: *mut DeviceDescription,
        24 debug_string: *const u8,
        32 debug_string_size: usize,
    }

    /// Arguments of `PJRT_DeviceDescription_ToString`.
    DeviceDescriptionToStringArgs: 40 {
        16 device_description: *mut DeviceDescription,
        24 to_string: *const u8,
        32 to_string_size: usize,
    }

    /// Arguments of `PJRT_Device_GetDescription`.
    DeviceGetDescriptionArgs: 32 {
        16 device: *mut Device,
        24 device_description: *mut DeviceDescription,
    }

    /// Arguments of `PJRT_Device_IsAddressable`.
    DeviceIsAddressableArgs: 25 {
        16 device: *mut Device,
        24 is_addressable: CBool,
    }

    /// Arguments of `PJRT_Device_LocalHardwareId`.
    DeviceLocalHardwareIdArgs: 28 {
        16 device: *mut Device,
        24 local_hardware_id: i32,
    }

    /// Arguments of `PJRT_Device_AddressableMemories`.
    DeviceAddressableMemoriesArgs: 40 {
        16 device: *mut Device,
        24 memories: *const *mut Memory,
        32 num_memories: usize,
    }

    /// Arguments of `PJRT_Device_DefaultMemory`.
    DeviceDefaultMemoryArgs: 32 {
        16 device: *mut Device,
        24 memory: *mut Memory,
    }

    /// Arguments of `PJRT_Memory_Id`.
    MemoryIdArgs: 28 {
        16 memory: *mut Memory,
        24 id: i32,
    }

    /// Arguments of `PJRT_Memory_Kind`.
    MemoryKindArgs: 40 {
        16 memory: *mut Memory,
        24 kind: *const u8,
        32 kind_size: usize,
    }

    /// Arguments of `PJRT_Memory_DebugString`.
    MemoryDebugStringArgs: 40 {
        16 memory: *mut Memory,
        24 debug_string: *const u8,
        32 debug_string_size: usize,
    }

    /// Arguments of `PJRT_Memory_ToString`.
    MemoryToStringArgs: 40 {
        16 memory: *mut Memory,
        24 to_string: *const u8,
        32 to_string_size: usize,
    }

    /// Arguments of `PJRT_Memory_AddressableByDevices`.
    MemoryAddressableByDevicesArgs: 40 {
        16 memory: *mut Memory,
        24 devices: *const *mut Device,
        32 num_devices: usize,
    }
}
