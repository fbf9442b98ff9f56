//! The devices and memories of a client.
//!
//! They are plain values: keeping one keeps no client.
//!
//! # Mirrors
//! `xla/python/pjrt_ifrt/pjrt_device.h`, `xla/python/pjrt_ifrt/pjrt_memory.h`.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use ifrt::attribute_map::AttributeMap;
use ifrt::device::{Device, DeviceId, DeviceRef, find_memory};
use ifrt::memory::{Memory, MemoryId, MemoryKind, MemoryRef};
use ifrt::{Result, Status};

use crate::safe::buffer::Placement;
use crate::safe::client::{Client, DeviceData, MemoryData};

/// Which client a device belongs to. Ids of devices repeat from client to client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientId(pub(crate) u64);

/// A device of a [`PjrtClient`](crate::PjrtClient).
pub struct PjrtDevice {
    client: ClientId,
    /// Where it stands in the plugin's list.
    position: usize,
    data: Arc<DeviceData>,
    platform_name: Arc<str>,
    memories: Vec<MemoryRef>,
    default_memory: Option<MemoryRef>,
}

/// A memory of a [`PjrtClient`](crate::PjrtClient).
pub struct PjrtMemory {
    kind: MemoryKind,
    source: Source,
    devices: OnceLock<Vec<Weak<PjrtDevice>>>,
}

enum Source {
    /// A memory of the plugin and where it stands in its list.
    Plugin(usize, Arc<MemoryData>),
    /// A memory of a device that this process cannot reach. The plugin does not tell them, so they
    /// are taken to be those of the devices that it can.
    Assumed,
}

/// The devices and memories of a client, by ascending device id.
pub(crate) fn of_client(id: ClientId, client: &Client) -> Vec<Arc<PjrtDevice>> {
    let memories: Vec<Arc<PjrtMemory>> = client
        .memories()
        .iter()
        .enumerate()
        .map(|(position, data)| {
            Arc::new(PjrtMemory {
                kind: MemoryKind::new(&data.kind),
                source: Source::Plugin(position, Arc::clone(data)),
                devices: OnceLock::new(),
            })
        })
        .collect();
    let platform_name: Arc<str> = client.platform_name().into();
    let known_kinds: Vec<MemoryKind> = client
        .devices()
        .iter()
        .find(|device| device.is_addressable)
        .into_iter()
        .flat_map(|device| &device.memories)
        .filter_map(|position| memories.get(*position))
        .map(|memory| memory.kind.clone())
        .collect();
    let make = |(position, data): (usize, &Arc<DeviceData>)| {
        let of_plugin = |position: &usize| memories.get(*position).map(Arc::clone);
        let own: Vec<Arc<PjrtMemory>> = match data.is_addressable {
            true => data.memories.iter().filter_map(of_plugin).collect(),
            false => known_kinds.iter().map(PjrtMemory::assumed).collect(),
        };
        let default_memory = match data.is_addressable {
            true => data.default_memory.as_ref().and_then(of_plugin),
            false => own.first().cloned(),
        };
        let device = Arc::new(PjrtDevice {
            client: id,
            position,
            data: Arc::clone(data),
            platform_name: Arc::clone(&platform_name),
            memories: own
                .iter()
                .map(|memory| -> MemoryRef { Arc::clone(memory) as _ })
                .collect(),
            default_memory: default_memory.map(|memory| -> MemoryRef { memory }),
        });
        for memory in own
            .iter()
            .filter(|memory| matches!(memory.source, Source::Assumed))
        {
            memory.devices.get_or_init(|| vec![Arc::downgrade(&device)]);
        }
        device
    };
    let mut devices: Vec<Arc<PjrtDevice>> = client.devices().iter().enumerate().map(make).collect();
    for memory in &memories {
        if let Source::Plugin(_, data) = &memory.source {
            let of = |position: &usize| devices.get(*position).map(Arc::downgrade);
            memory
                .devices
                .get_or_init(|| data.devices.iter().filter_map(of).collect());
        }
    }
    devices.sort_by_key(|device| device.data.id);
    devices
}

impl PjrtDevice {
    /// Where the device stands in the plugin's list, if it belongs to this client.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a device of another client or runtime.
    pub(crate) fn position_of(device: &DeviceRef, client: ClientId) -> Result<usize> {
        let any: &dyn Any = &**device;
        match any.downcast_ref::<Self>() {
            Some(own) if own.client == client => Ok(own.position),
            _ => Err(Status::invalid_argument(format!(
                "device {} ({}) does not belong to this client",
                device.id(),
                device.to_text()
            ))),
        }
    }

    /// Where an array with this memory kind lives on the device.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a device of another client, one that this process cannot reach, or an
    /// unknown memory kind.
    pub(crate) fn placement(
        device: &DeviceRef,
        kind: &MemoryKind,
        client: ClientId,
    ) -> Result<Placement> {
        let position = Self::position_of(device, client)?;
        if !device.is_addressable() {
            return Err(Status::invalid_argument(format!(
                "device {} ({}) cannot be reached from this process",
                device.id(),
                device.to_text()
            )));
        }
        if device.memories().is_empty() && kind.is_default() {
            return Ok(Placement {
                device: position,
                memory: None,
            });
        }
        let memory = find_memory(&**device, kind)?;
        let any: &dyn Any = &*memory;
        match any
            .downcast_ref::<PjrtMemory>()
            .map(|memory| &memory.source)
        {
            Some(Source::Plugin(memory, _)) => Ok(Placement {
                device: position,
                memory: Some(*memory),
            }),
            _ => Err(Status::internal(
                "a device lists a memory of another runtime",
            )),
        }
    }
}

impl Device for PjrtDevice {
    fn id(&self) -> DeviceId {
        DeviceId(self.data.id)
    }

    fn local_hardware_id(&self) -> Option<i32> {
        self.data.local_hardware_id
    }

    fn process_index(&self) -> i32 {
        self.data.process_index
    }

    fn is_addressable(&self) -> bool {
        self.data.is_addressable
    }

    fn platform_name(&self) -> &str {
        &self.platform_name
    }

    fn kind(&self) -> &str {
        &self.data.kind
    }

    fn attributes(&self) -> &AttributeMap {
        &self.data.attributes
    }

    fn memories(&self) -> &[MemoryRef] {
        &self.memories
    }

    fn default_memory(&self) -> Result<MemoryRef> {
        self.default_memory.clone().ok_or_else(|| {
            Status::unimplemented(format!(
                "the plugin tells no memory of device {}",
                self.data.id
            ))
        })
    }

    fn to_text(&self) -> String {
        self.data.to_text.clone()
    }

    fn debug_string(&self) -> String {
        self.data.debug_string.clone()
    }
}

impl fmt::Debug for PjrtDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PjrtDevice")
            .field("id", &self.data.id)
            .field("kind", &self.data.kind)
            .field("addressable", &self.data.is_addressable)
            .finish_non_exhaustive()
    }
}

impl PjrtMemory {
    fn assumed(kind: &MemoryKind) -> Arc<Self> {
        let (kind, devices) = (kind.clone(), OnceLock::new());
        Arc::new(Self {
            kind,
            source: Source::Assumed,
            devices,
        })
    }
}

impl Memory for PjrtMemory {
    fn id(&self) -> MemoryId {
        match &self.source {
            Source::Plugin(_, data) => MemoryId(data.id),
            Source::Assumed => MemoryId(-1),
        }
    }

    fn kind(&self) -> &MemoryKind {
        &self.kind
    }

    fn devices(&self) -> Vec<DeviceRef> {
        let devices = self.devices.get().into_iter().flatten();
        devices
            .filter_map(Weak::upgrade)
            .map(|device| -> DeviceRef { device })
            .collect()
    }

    fn to_text(&self) -> String {
        match &self.source {
            Source::Plugin(_, data) => data.to_text.clone(),
            Source::Assumed => format!("Unreachable({})", self.kind),
        }
    }

    fn debug_string(&self) -> String {
        match &self.source {
            Source::Plugin(_, data) => data.debug_string.clone(),
            Source::Assumed => self.to_text(),
        }
    }
}

impl fmt::Debug for PjrtMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PjrtMemory")
            .field("id", &self.id())
            .field("kind", &self.kind)
            .finish()
    }
}
