//! The devices and memories that the server told of.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client/device.cc`, `memory.cc`, `client.cc`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Weak};

use ifrt::serdes::attribute_map_from_proto;
use ifrt::{
    AttributeMap, Device, DeviceId, DeviceRef, Memory, MemoryId, MemoryKind, MemoryRef, Result,
    Status,
};

use crate::proto::xla::ifrt::proxy::{InitResponse, init_response};

struct ProxyDevice {
    id: DeviceId,
    local_hardware_id: Option<i32>,
    process_index: i32,
    is_addressable: bool,
    platform_name: String,
    kind: String,
    attributes: AttributeMap,
    memories: Vec<MemoryRef>,
    default_memory: Option<MemoryRef>,
    text: String,
    debug_string: String,
}

/// The devices by id. They own their memories, which must not own them.
type Roster = Arc<std::sync::OnceLock<HashMap<DeviceId, Weak<ProxyDevice>>>>;

struct ProxyMemory {
    id: MemoryId,
    kind: MemoryKind,
    device_ids: Vec<DeviceId>,
    roster: Roster,
    text: String,
    debug_string: String,
}

/// The devices of a client.
#[derive(Debug)]
pub(super) struct Devices {
    /// Every device, in the order of the server.
    pub(super) all: Vec<DeviceRef>,
    /// Those for computing.
    pub(super) primary: Vec<DeviceRef>,
    /// Those of them that can be reached.
    pub(super) addressable: Vec<DeviceRef>,
    by_id: HashMap<DeviceId, DeviceRef>,
}

impl Devices {
    /// # Errors
    /// NOT_FOUND if the server mentions a device or memory that it does not describe;
    /// FAILED_PRECONDITION if it describes one twice; INVALID_ARGUMENT for malformed attributes.
    pub(super) fn new(init: &InitResponse) -> Result<Self> {
        let roster = Roster::default();
        let process_index = i32::try_from(init.process_index).map_err(|_| {
            Status::internal(format!(
                "the server has the process index {}",
                init.process_index
            ))
        })?;
        let known: BTreeSet<i32> = init.all_devices.iter().map(|device| device.id).collect();
        if known.len() != init.all_devices.len() {
            return Err(Status::failed_precondition(
                "the server describes two devices with one id",
            ));
        }
        let memories = memories(init, &known, &roster)?;
        let addressable: BTreeSet<i32> = init.addressable_device_ids.iter().copied().collect();
        let hardware_ids = hardware_ids(init, &addressable);
        let (mut all, mut weak) = (Vec::new(), HashMap::new());
        for message in &init.all_devices {
            let device = Arc::new(ProxyDevice {
                id: DeviceId(message.id),
                local_hardware_id: hardware_ids.get(&message.id).copied(),
                process_index,
                is_addressable: addressable.contains(&message.id),
                // Servers before protocol 22 do not tell.
                platform_name: match message.platform_name.as_str() {
                    "" => init.platform_name.clone(),
                    name => name.to_owned(),
                },
                kind: message.device_kind.clone(),
                attributes: match &message.attributes {
                    Some(attributes) => attribute_map_from_proto(attributes)?,
                    None => AttributeMap::new(),
                },
                memories: message
                    .memory_ids
                    .iter()
                    .map(|id| find(&memories, *id))
                    .collect::<Result<_>>()?,
                default_memory: message
                    .default_memory_id
                    .map(|id| find(&memories, id))
                    .transpose()?,
                text: message.to_string.clone(),
                debug_string: message.debug_string.clone(),
            });
            weak.insert(device.id, Arc::downgrade(&device));
            all.push(device as DeviceRef);
        }
        roster.get_or_init(|| weak);
        let by_id: HashMap<DeviceId, DeviceRef> = all
            .iter()
            .map(|device| (device.id(), Arc::clone(device)))
            .collect();
        let pick = |ids: &[i32]| -> Result<Vec<DeviceRef>> {
            let device = |id: &i32| {
                by_id
                    .get(&DeviceId(*id))
                    .cloned()
                    .ok_or_else(|| no_device(*id))
            };
            ids.iter().map(device).collect()
        };
        let primary = pick(&init.primary_device_ids)?;
        let mut addressable = pick(&init.addressable_device_ids)?;
        let is_primary: BTreeSet<DeviceId> = primary.iter().map(|device| device.id()).collect();
        addressable.retain(|device| is_primary.contains(&device.id()));
        Ok(Self {
            all,
            primary,
            addressable,
            by_id,
        })
    }

    /// The device with this id.
    pub(super) fn get(&self, id: DeviceId) -> Option<&DeviceRef> {
        self.by_id.get(&id)
    }
}

/// The numbers that the hardware has in its process. Servers that do not know them say 0 for each.
fn hardware_ids(init: &InitResponse, addressable: &BTreeSet<i32>) -> BTreeMap<i32, i32> {
    let devices = init.all_devices.iter();
    let devices = devices.filter(|device| addressable.contains(&device.id));
    let ids: BTreeMap<i32, i32> = devices
        .map(|device| (device.id, device.local_hardware_id))
        .collect();
    let distinct: BTreeSet<i32> = ids.values().copied().collect();
    if distinct.len() == ids.len() {
        ids
    } else {
        BTreeMap::new()
    }
}

fn memories(
    init: &InitResponse,
    known: &BTreeSet<i32>,
    roster: &Roster,
) -> Result<BTreeMap<MemoryId, MemoryRef>> {
    let mut memories: BTreeMap<MemoryId, MemoryRef> = BTreeMap::new();
    for message in &init.memories {
        if let Some(unknown) = message.device_ids.iter().find(|id| !known.contains(id)) {
            return Err(no_device(*unknown));
        }
        let memory = memory(message, roster);
        if memories.insert(memory.id(), memory).is_some() {
            return Err(Status::failed_precondition(format!(
                "the server describes two memories with id {}",
                message.id
            )));
        }
    }
    Ok(memories)
}

fn memory(message: &init_response::Memory, roster: &Roster) -> MemoryRef {
    Arc::new(ProxyMemory {
        id: MemoryId(message.id),
        kind: MemoryKind::new(&message.memory_space_kind),
        device_ids: message.device_ids.iter().copied().map(DeviceId).collect(),
        roster: Arc::clone(roster),
        text: message.to_string.clone(),
        debug_string: message.debug_string.clone(),
    })
}

fn find(memories: &BTreeMap<MemoryId, MemoryRef>, id: i32) -> Result<MemoryRef> {
    let memory = memories.get(&MemoryId(id)).cloned();
    memory.ok_or_else(|| {
        Status::not_found(format!(
            "Memory {id} not found: the server mentions it but does not describe it"
        ))
    })
}

fn no_device(id: i32) -> Status {
    Status::not_found(format!(
        "Device {id} not found: the server mentions it but does not describe it"
    ))
}

impl Device for ProxyDevice {
    fn id(&self) -> DeviceId {
        self.id
    }

    fn local_hardware_id(&self) -> Option<i32> {
        self.local_hardware_id
    }

    fn process_index(&self) -> i32 {
        self.process_index
    }

    fn is_addressable(&self) -> bool {
        self.is_addressable
    }

    fn platform_name(&self) -> &str {
        &self.platform_name
    }

    fn kind(&self) -> &str {
        &self.kind
    }

    fn attributes(&self) -> &AttributeMap {
        &self.attributes
    }

    fn memories(&self) -> &[MemoryRef] {
        &self.memories
    }

    fn default_memory(&self) -> Result<MemoryRef> {
        self.default_memory
            .clone()
            .ok_or_else(|| Status::unimplemented("Device does not support default_memory"))
    }

    fn to_text(&self) -> String {
        self.text.clone()
    }

    fn debug_string(&self) -> String {
        self.debug_string.clone()
    }
}

impl Memory for ProxyMemory {
    fn id(&self) -> MemoryId {
        self.id
    }

    fn kind(&self) -> &MemoryKind {
        &self.kind
    }

    fn devices(&self) -> Vec<DeviceRef> {
        let Some(devices) = self.roster.get() else {
            return Vec::new();
        };
        let device = |id| devices.get(id).and_then(Weak::upgrade);
        let devices = self.device_ids.iter().filter_map(device);
        devices.map(|device| device as DeviceRef).collect()
    }

    fn to_text(&self) -> String {
        self.text.clone()
    }

    fn debug_string(&self) -> String {
        self.debug_string.clone()
    }
}

impl fmt::Debug for ProxyDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ProxyMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
