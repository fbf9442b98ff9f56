//! Reading the devices and memories of a client, once, while it is being made.

use std::sync::Arc;

use ifrt::attribute_map::AttributeMap;
use ifrt::{Code, Result, Status};

use super::{DeviceData, MemoryData};
use crate::safe::api::Api;
use crate::safe::bytes::{lent_list, lent_text};
use crate::safe::handle::Handle;
use crate::safe::named_value;
use crate::sys::api::*;
use crate::sys::client::{ClientAddressableMemoriesArgs, ClientDevicesArgs};
use crate::sys::device::*;
use crate::sys::{self, Function};

type Raw<T> = Handle<T>;

/// All devices in the order of the plugin, and all memories.
type Lists = (Vec<Arc<DeviceData>>, Vec<Arc<MemoryData>>);

/// All devices in the order of the plugin, and the memories that they refer to.
pub(super) fn devices_and_memories(api: &'static Api, client: Raw<sys::Client>) -> Result<Lists> {
    let raw_devices = raw_devices(api, client)?;
    let raw_memories = absent_if_unimplemented(raw_memories(api, client))?.unwrap_or_default();
    let devices = raw_devices
        .iter()
        .map(|device| read_device(api, *device, &raw_memories).map(Arc::new))
        .collect::<Result<Vec<_>>>()?;
    let memories = raw_memories
        .iter()
        .map(|memory| read_memory(api, *memory, &raw_devices).map(Arc::new))
        .collect::<Result<Vec<_>>>()?;
    Ok((devices, memories))
}

fn raw_devices(api: &'static Api, client: Raw<sys::Client>) -> Result<Vec<Raw<sys::Device>>> {
    let mut args = ClientDevicesArgs {
        client: client.as_ptr(),
        ..ClientDevicesArgs::NEW
    };
    // SAFETY: S3 and S4.
    unsafe { api.call::<ClientDevices>(&mut args) }?;
    // SAFETY: S5 and S9.
    let list = unsafe { lent_list(args.devices, args.num_devices) };
    list.iter()
        .map(|device| Handle::new(*device, ClientDevices::NAME))
        .collect()
}

fn raw_memories(api: &'static Api, client: Raw<sys::Client>) -> Result<Vec<Raw<sys::Memory>>> {
    let mut args = ClientAddressableMemoriesArgs {
        client: client.as_ptr(),
        ..ClientAddressableMemoriesArgs::NEW
    };
    // SAFETY: S3 and S4.
    unsafe { api.call::<ClientAddressableMemories>(&mut args) }?;
    // SAFETY: S5 and S9.
    let list = unsafe { lent_list(args.addressable_memories, args.num_addressable_memories) };
    list.iter()
        .map(|memory| Handle::new(*memory, ClientAddressableMemories::NAME))
        .collect()
}

fn read_device(
    api: &'static Api,
    raw: Raw<sys::Device>,
    all_memories: &[Raw<sys::Memory>],
) -> Result<DeviceData> {
    let mut args = DeviceGetDescriptionArgs {
        device: raw.as_ptr(),
        ..DeviceGetDescriptionArgs::NEW
    };
    // SAFETY: S3 to S5.
    unsafe { api.call::<DeviceGetDescription>(&mut args) }?;
    let description = Description {
        api,
        raw: args.device_description,
    };
    let is_addressable = is_addressable(api, raw)?;
    let memories = absent_if_unimplemented(memories_of(api, raw, all_memories))?;
    let default_memory = match is_addressable {
        true => absent_if_unimplemented(default_memory(api, raw, all_memories))?,
        false => None,
    };
    Ok(DeviceData {
        raw,
        id: description.id()?,
        process_index: description.process_index()?,
        local_hardware_id: match is_addressable {
            true => absent_if_unimplemented(local_hardware_id(api, raw))?,
            false => None,
        },
        is_addressable,
        kind: description.kind()?,
        to_text: description.to_text()?,
        debug_string: description.debug_string()?,
        attributes: absent_if_unimplemented(description.attributes())?.unwrap_or_default(),
        memories: memories.unwrap_or_default(),
        default_memory,
    })
}

/// The static part of a device, which lives as long as the client.
struct Description {
    api: &'static Api,
    raw: *mut sys::DeviceDescription,
}

impl Description {
    fn id(&self) -> Result<i32> {
        let mut args = DeviceDescriptionIdArgs {
            device_description: self.raw,
            ..DeviceDescriptionIdArgs::NEW
        };
        // SAFETY: S3 to S5.
        unsafe { self.api.call::<DeviceDescriptionId>(&mut args) }?;
        Ok(args.id)
    }

    fn process_index(&self) -> Result<i32> {
        let mut args = DeviceDescriptionProcessIndexArgs {
            device_description: self.raw,
            ..DeviceDescriptionProcessIndexArgs::NEW
        };
        // SAFETY: S3 to S5.
        unsafe { self.api.call::<DeviceDescriptionProcessIndex>(&mut args) }?;
        Ok(args.process_index)
    }

    fn kind(&self) -> Result<String> {
        let mut args = DeviceDescriptionKindArgs {
            device_description: self.raw,
            ..DeviceDescriptionKindArgs::NEW
        };
        // SAFETY: S3 to S5.
        unsafe { self.api.call::<DeviceDescriptionKind>(&mut args) }?;
        // SAFETY: S5 and S9.
        Ok(unsafe { lent_text(args.device_kind, args.device_kind_size) })
    }

    fn to_text(&self) -> Result<String> {
        let mut args = DeviceDescriptionToStringArgs {
            device_description: self.raw,
            ..DeviceDescriptionToStringArgs::NEW
        };
        // SAFETY: S3 to S5.
        unsafe { self.api.call::<DeviceDescriptionToString>(&mut args) }?;
        // SAFETY: S5 and S9.
        Ok(unsafe { lent_text(args.to_string, args.to_string_size) })
    }

    fn debug_string(&self) -> Result<String> {
        let mut args = DeviceDescriptionDebugStringArgs {
            device_description: self.raw,
            ..DeviceDescriptionDebugStringArgs::NEW
        };
        // SAFETY: S3 to S5.
        unsafe { self.api.call::<DeviceDescriptionDebugString>(&mut args) }?;
        // SAFETY: S5 and S9.
        Ok(unsafe { lent_text(args.debug_string, args.debug_string_size) })
    }

    fn attributes(&self) -> Result<AttributeMap> {
        let mut args = DeviceDescriptionAttributesArgs {
            device_description: self.raw,
            ..DeviceDescriptionAttributesArgs::NEW
        };
        // SAFETY: S3 to S5.
        unsafe { self.api.call::<DeviceDescriptionAttributes>(&mut args) }?;
        // SAFETY: S5 and S9.
        Ok(unsafe { named_value::read(args.attributes, args.num_attributes) })
    }
}

fn is_addressable(api: &'static Api, raw: Raw<sys::Device>) -> Result<bool> {
    let mut args = DeviceIsAddressableArgs {
        device: raw.as_ptr(),
        ..DeviceIsAddressableArgs::NEW
    };
    // SAFETY: S3 to S5.
    unsafe { api.call::<DeviceIsAddressable>(&mut args) }?;
    Ok(args.is_addressable.get())
}

fn local_hardware_id(api: &'static Api, raw: Raw<sys::Device>) -> Result<i32> {
    let mut args = DeviceLocalHardwareIdArgs {
        device: raw.as_ptr(),
        ..DeviceLocalHardwareIdArgs::NEW
    };
    // SAFETY: S3 to S5.
    unsafe { api.call::<DeviceLocalHardwareId>(&mut args) }?;
    Ok(args.local_hardware_id)
}

fn memories_of(
    api: &'static Api,
    raw: Raw<sys::Device>,
    all: &[Raw<sys::Memory>],
) -> Result<Vec<usize>> {
    let mut args = DeviceAddressableMemoriesArgs {
        device: raw.as_ptr(),
        ..DeviceAddressableMemoriesArgs::NEW
    };
    // SAFETY: S3 to S5.
    unsafe { api.call::<DeviceAddressableMemories>(&mut args) }?;
    // SAFETY: S5 and S9.
    let list = unsafe { lent_list(args.memories, args.num_memories) };
    list.iter()
        .map(|memory| position_of(*memory, all, "memory"))
        .collect()
}

fn default_memory(
    api: &'static Api,
    raw: Raw<sys::Device>,
    all: &[Raw<sys::Memory>],
) -> Result<usize> {
    let mut args = DeviceDefaultMemoryArgs {
        device: raw.as_ptr(),
        ..DeviceDefaultMemoryArgs::NEW
    };
    // SAFETY: S3 to S5.
    unsafe { api.call::<DeviceDefaultMemory>(&mut args) }?;
    position_of(args.memory, all, "memory")
}

fn read_memory(
    api: &'static Api,
    raw: Raw<sys::Memory>,
    all_devices: &[Raw<sys::Device>],
) -> Result<MemoryData> {
    let mut id = MemoryIdArgs {
        memory: raw.as_ptr(),
        ..MemoryIdArgs::NEW
    };
    // SAFETY: S3 to S5.
    unsafe { api.call::<MemoryId>(&mut id) }?;
    let mut kind = MemoryKindArgs {
        memory: raw.as_ptr(),
        ..MemoryKindArgs::NEW
    };
    // SAFETY: S3 to S5.
    unsafe { api.call::<MemoryKind>(&mut kind) }?;
    let mut text = MemoryToStringArgs {
        memory: raw.as_ptr(),
        ..MemoryToStringArgs::NEW
    };
    // SAFETY: S3 to S5.
    unsafe { api.call::<MemoryToString>(&mut text) }?;
    let mut debug = MemoryDebugStringArgs {
        memory: raw.as_ptr(),
        ..MemoryDebugStringArgs::NEW
    };
    // SAFETY: S3 to S5.
    unsafe { api.call::<MemoryDebugString>(&mut debug) }?;
    let mut devices = MemoryAddressableByDevicesArgs {
        memory: raw.as_ptr(),
        ..MemoryAddressableByDevicesArgs::NEW
    };
    // SAFETY: S3 to S5.
    unsafe { api.call::<MemoryAddressableByDevices>(&mut devices) }?;
    // SAFETY: S5 and S9.
    let list = unsafe { lent_list(devices.devices, devices.num_devices) };
    Ok(MemoryData {
        raw,
        id: id.id,
        // SAFETY: S5 and S9.
        kind: unsafe { lent_text(kind.kind, kind.kind_size) },
        // SAFETY: S5 and S9.
        to_text: unsafe { lent_text(text.to_string, text.to_string_size) },
        // SAFETY: S5 and S9.
        debug_string: unsafe { lent_text(debug.debug_string, debug.debug_string_size) },
        devices: list
            .iter()
            .map(|device| position_of(*device, all_devices, "device"))
            .collect::<Result<_>>()?,
    })
}

fn position_of<T: crate::safe::handle::Opaque>(
    raw: *mut T,
    all: &[Handle<T>],
    what: &str,
) -> Result<usize> {
    all.iter()
        .position(|known| known.as_ptr() == raw)
        .ok_or_else(|| Status::internal(format!("the plugin named a {what} that it did not list")))
}

fn absent_if_unimplemented<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(status) if status.code() == Code::Unimplemented => Ok(None),
        result => result.map(Some),
    }
}
