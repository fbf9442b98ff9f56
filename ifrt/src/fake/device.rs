//! The devices and memories of the fake.

use std::fmt;
use std::sync::{Arc, Weak};

use super::options::FakeOptions;
use crate::attribute_map::AttributeMap;
use crate::device::{Device, DeviceId, DeviceRef};
use crate::memory::{Memory, MemoryId, MemoryKind, MemoryRef};
use crate::status::{Result, Status};

struct FakeDevice {
    id: DeviceId,
    local_hardware_id: Option<i32>,
    process_index: i32,
    platform_name: Arc<str>,
    attributes: AttributeMap,
    memories: Vec<MemoryRef>,
}

struct FakeMemory {
    id: MemoryId,
    kind: MemoryKind,
    device_id: DeviceId,
    /// The device owns its memories, so that no cycle keeps both alive.
    device: Weak<FakeDevice>,
}

/// The devices that the options describe, by ascending id.
pub(super) fn make_devices(options: &FakeOptions) -> Vec<DeviceRef> {
    let platform_name: Arc<str> = options.platform_name.as_str().into();
    let kinds = i32::try_from(options.memory_kinds.len()).unwrap_or(i32::MAX);
    (0..options.num_devices)
        .zip(0_i32..)
        .map(|(position, number)| {
            let addressable = position < options.num_addressable;
            let id = DeviceId(options.first_device_id.saturating_add(number));
            let first_memory = options
                .first_device_id
                .saturating_add(number.saturating_mul(kinds));
            let device: DeviceRef = Arc::new_cyclic(|device| FakeDevice {
                id,
                local_hardware_id: addressable.then_some(number),
                process_index: options
                    .process_index
                    .saturating_add(i32::from(!addressable)),
                platform_name: Arc::clone(&platform_name),
                attributes: AttributeMap::new(),
                memories: make_memories(&options.memory_kinds, id, first_memory, device),
            });
            device
        })
        .collect()
}

fn make_memories(
    kinds: &[MemoryKind],
    device_id: DeviceId,
    first_memory: i32,
    device: &Weak<FakeDevice>,
) -> Vec<MemoryRef> {
    let make = |(kind, number): (&MemoryKind, i32)| -> MemoryRef {
        Arc::new(FakeMemory {
            id: MemoryId(first_memory.saturating_add(number)),
            kind: kind.clone(),
            device_id,
            device: device.clone(),
        })
    };
    kinds.iter().zip(0..).map(make).collect()
}

impl Device for FakeDevice {
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
        self.local_hardware_id.is_some()
    }

    fn platform_name(&self) -> &str {
        &self.platform_name
    }

    fn kind(&self) -> &str {
        "fake"
    }

    fn attributes(&self) -> &AttributeMap {
        &self.attributes
    }

    fn memories(&self) -> &[MemoryRef] {
        &self.memories
    }

    fn default_memory(&self) -> Result<MemoryRef> {
        self.memories.first().map(Arc::clone).ok_or_else(|| {
            Status::unimplemented(format!("device {} has no memories", self.to_text()))
        })
    }

    fn to_text(&self) -> String {
        format!("FakeDevice(id={})", self.id)
    }

    fn debug_string(&self) -> String {
        format!(
            "FakeDevice(id={}, process_index={})",
            self.id, self.process_index
        )
    }
}

impl Memory for FakeMemory {
    fn id(&self) -> MemoryId {
        self.id
    }

    fn kind(&self) -> &MemoryKind {
        &self.kind
    }

    fn devices(&self) -> Vec<DeviceRef> {
        let device = self.device.upgrade();
        device
            .map(|device| device as DeviceRef)
            .into_iter()
            .collect()
    }

    fn to_text(&self) -> String {
        format!("FakeMemory(kind={}, device={})", self.kind, self.device_id)
    }
}

impl fmt::Debug for FakeDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.debug_string())
    }
}

impl fmt::Debug for FakeMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}
