//! The first request: what the runtime is and which devices it has.

use std::collections::BTreeMap;

use ifrt::serdes::attribute_map_to_proto;
use ifrt::{AttributeMap, Client, Device, DeviceRef, Memory, MemoryId, MemoryRef, Result, Status};

use crate::proto::xla::ifrt::proxy::{InitResponse, init_response};
use crate::server::session::Call;
use crate::server::session::context::Outcome;

/// Describes the runtime.
pub(crate) fn init(call: &Call) -> Outcome<InitResponse> {
    let client = call.client();
    let platform_name = call.session.shared.platform_name.as_deref();
    let devices = client.all_devices();
    let process_index = u64::try_from(client.process_index()).map_err(|_| {
        Status::internal(format!(
            "the runtime has the process index {}",
            client.process_index()
        ))
    })?;
    Ok(InitResponse {
        platform_name: platform_name
            .unwrap_or_else(|| client.platform_name())
            .to_owned(),
        platform_version: client.platform_version().to_owned(),
        platform_id: client.platform_id(),
        process_index,
        runtime_type: client.runtime_type().to_owned(),
        all_devices: devices
            .iter()
            .map(|device| describe_device(&**device, platform_name))
            .collect(),
        addressable_device_ids: ids(client.addressable_devices()),
        session_id: call.session.secret,
        memories: memories(devices)?
            .values()
            .map(|memory| describe_memory(&**memory, devices))
            .collect(),
        primary_device_ids: ids(client.devices()),
        client_attributes: Some(attribute_map_to_proto(&client_attributes(client))),
    })
}

fn ids(devices: &[DeviceRef]) -> Vec<i32> {
    devices.iter().map(|device| device.id().0).collect()
}

/// The attributes of the runtime, with those that JAX needs.
///
/// JAX asks each client for these two and fails or warns without them. A client of a proxy cannot
/// serialize executables, whatever the runtime can.
fn client_attributes(client: &dyn Client) -> AttributeMap {
    let mut attributes = client.attributes().clone();
    attributes.set("supports_executable_serialization", false);
    if attributes.get("serialize_with_sdy").is_err() {
        attributes.set("serialize_with_sdy", true);
    }
    attributes
}

fn describe_device(device: &dyn Device, platform_name: Option<&str>) -> init_response::Device {
    init_response::Device {
        id: device.id().0,
        local_hardware_id: device.local_hardware_id().unwrap_or_default(),
        device_kind: device.kind().to_owned(),
        debug_string: device.debug_string(),
        to_string: device.to_text(),
        default_memory_id: device.default_memory().ok().map(|memory| memory.id().0),
        memory_ids: device
            .memories()
            .iter()
            .map(|memory| memory.id().0)
            .collect(),
        local_device_id: device.local_hardware_id().unwrap_or_default(),
        attributes: Some(attribute_map_to_proto(device.attributes())),
        platform_name: platform_name
            .unwrap_or_else(|| device.platform_name())
            .to_owned(),
    }
}

fn describe_memory(memory: &dyn Memory, devices: &[DeviceRef]) -> init_response::Memory {
    // A client that is told a device which it does not know cannot be made.
    let device_ids = memory
        .devices()
        .iter()
        .map(|device| device.id())
        .filter(|id| devices.iter().any(|device| device.id() == *id))
        .map(|id| id.0)
        .collect();
    init_response::Memory {
        id: memory.id().0,
        memory_space_kind: memory.kind().name().to_owned(),
        device_ids,
        debug_string: memory.debug_string(),
        to_string: memory.to_text(),
        kind_id: 0,
    }
}

/// All memories of the devices, each once.
fn memories(devices: &[DeviceRef]) -> Result<BTreeMap<MemoryId, MemoryRef>> {
    let mut memories: BTreeMap<MemoryId, MemoryRef> = BTreeMap::new();
    for device in devices {
        let default = device.default_memory().ok();
        for memory in device.memories().iter().chain(&default) {
            let known = memories
                .entry(memory.id())
                .or_insert_with(|| MemoryRef::clone(memory));
            if known.kind() != memory.kind() || known.to_text() != memory.to_text() {
                return Err(Status::failed_precondition(format!(
                    "the runtime has two memories with id {}: {} and {}",
                    memory.id(),
                    known.to_text(),
                    memory.to_text()
                )));
            }
        }
    }
    Ok(memories)
}
