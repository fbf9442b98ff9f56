//! [`DeviceList`]: the ordered devices of a sharding or an executable.
//!
//! # Mirrors
//! `xla/python/ifrt/device_list.h`.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::device::{DeviceId, DeviceRef};

/// An immutable, ordered list of devices; duplicates are allowed. A cheap clone.
///
/// Lists compare by the ids of their devices, so compare only lists of one client.
#[derive(Clone)]
pub struct DeviceList(Arc<[DeviceRef]>);

impl DeviceList {
    /// A list of these devices.
    pub fn new(devices: impl Into<Arc<[DeviceRef]>>) -> Self {
        Self(devices.into())
    }

    /// The devices in order.
    pub fn devices(&self) -> &[DeviceRef] {
        &self.0
    }

    /// The number of devices.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without devices.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The devices in order.
    pub fn iter(&self) -> std::slice::Iter<'_, DeviceRef> {
        self.0.iter()
    }

    /// The ids in order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = DeviceId> {
        self.0.iter().map(|device| device.id())
    }

    /// True if this process can reach every device.
    pub fn is_fully_addressable(&self) -> bool {
        self.0.iter().all(|device| device.is_addressable())
    }

    /// The addressable devices in the same order; this very list if all are.
    #[must_use]
    pub fn addressable(&self) -> Self {
        if self.is_fully_addressable() {
            return self.clone();
        }
        self.0
            .iter()
            .filter(|device| device.is_addressable())
            .cloned()
            .collect()
    }
}

impl FromIterator<DeviceRef> for DeviceList {
    fn from_iter<I: IntoIterator<Item = DeviceRef>>(devices: I) -> Self {
        Self(devices.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a DeviceList {
    type Item = &'a DeviceRef;
    type IntoIter = std::slice::Iter<'a, DeviceRef>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for DeviceList {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.ids().eq(other.ids())
    }
}

impl Eq for DeviceList {}

impl Hash for DeviceList {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        for id in self.ids() {
            id.hash(state);
        }
    }
}

impl fmt::Debug for DeviceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids().map(|id| id.0)).finish()
    }
}
