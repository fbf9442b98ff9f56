//! [`FakeOptions`]: what a fake runtime looks like.

use super::fault::FaultPlan;
use crate::memory::MemoryKind;

/// What a [`super::FakeClient`] looks like.
///
/// # Examples
/// ```
/// use ifrt::Client;
/// use ifrt::fake::{FakeClient, FakeOptions};
///
/// let client = FakeClient::new(FakeOptions { num_devices: 8, ..FakeOptions::default() });
/// assert_eq!(client.devices().len(), 8);
/// ```
#[derive(Clone, Debug)]
pub struct FakeOptions {
    /// The number of devices.
    pub num_devices: usize,
    /// How many of them, from the first, this process can reach.
    pub num_addressable: usize,
    /// The id of the first device; the others follow.
    pub first_device_id: i32,
    /// The memories of each device, the default first.
    pub memory_kinds: Vec<MemoryKind>,
    /// See [`crate::Client::platform_name`]. JAX lowers for `cpu`, `cuda` and the like.
    pub platform_name: String,
    /// See [`crate::Client::process_index`].
    pub process_index: i32,
    /// The memory of all devices together, in bytes. Allocations beyond it fail as they do on
    /// devices.
    pub memory_bytes: u64,
    /// What goes wrong.
    pub faults: FaultPlan,
}

/// Four devices with the memories of XLA's CPU runtime, all addressable, without faults.
impl Default for FakeOptions {
    fn default() -> Self {
        Self {
            num_devices: 4,
            num_addressable: usize::MAX,
            first_device_id: 0,
            memory_kinds: ["device", "pinned_host", "unpinned_host"]
                .map(MemoryKind::new)
                .into(),
            platform_name: "fake".to_owned(),
            process_index: 0,
            memory_bytes: 4 << 30,
            faults: FaultPlan::new(),
        }
    }
}

impl FakeOptions {
    /// The devices that the tests of values use: ids from 10, one memory each, the first
    /// `num_addressable` addressable.
    pub fn fixture(num_devices: usize, num_addressable: usize) -> Self {
        Self {
            num_devices,
            num_addressable,
            first_device_id: 10,
            memory_kinds: vec![MemoryKind::default()],
            ..Self::default()
        }
    }
}
