//! [`DeviceList`]: the ordered devices of a sharding or an executable.
//!
//! # Mirrors
//! `xla/python/ifrt/device_list.h`, `xla/python/ifrt/basic_device_list.h`.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use highway::{HighwayHash, HighwayHasher, Key};

use crate::device::{DeviceId, DeviceRef};

/// An immutable, ordered list of devices; duplicates are allowed. A cheap clone.
///
/// Lists compare by the ids of their devices, so compare only lists of one client.
#[derive(Clone)]
pub struct DeviceList(Arc<Inner>);

struct Inner {
    devices: Arc<[DeviceRef]>,
    /// The addressable devices; `None` inside if that is the whole list, so that no list holds
    /// itself.
    addressable: OnceLock<Option<DeviceList>>,
    hash: OnceLock<u64>,
    fingerprint: OnceLock<u64>,
}

/// The key that the reference uses for fingerprints, so that processes of both agree.
const FINGERPRINT_KEY: Key = Key([
    0x4ea9_929a_25d5_61c6,
    0x9847_0d18_7b52_3e8f,
    0x5920_40a2_da3c_4b53,
    0xbff8_b246_e3c5_87a2,
]);

impl DeviceList {
    /// A list of these devices.
    pub fn new(devices: impl Into<Arc<[DeviceRef]>>) -> Self {
        Self(Arc::new(Inner {
            devices: devices.into(),
            addressable: OnceLock::new(),
            hash: OnceLock::new(),
            fingerprint: OnceLock::new(),
        }))
    }

    /// The devices in order.
    pub fn devices(&self) -> &[DeviceRef] {
        &self.0.devices
    }

    /// The number of devices.
    pub fn len(&self) -> usize {
        self.0.devices.len()
    }

    /// True without devices.
    pub fn is_empty(&self) -> bool {
        self.0.devices.is_empty()
    }

    /// The devices in order.
    pub fn iter(&self) -> std::slice::Iter<'_, DeviceRef> {
        self.0.devices.iter()
    }

    /// The ids in order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = DeviceId> {
        self.0.devices.iter().map(|device| device.id())
    }

    /// True if this process can reach every device.
    pub fn is_fully_addressable(&self) -> bool {
        self.addressable_part().is_none()
    }

    /// The addressable devices in the same order; this very list if all are.
    #[must_use]
    pub fn addressable(&self) -> Self {
        self.addressable_part().unwrap_or(self).clone()
    }

    /// The addressable devices if some are not.
    fn addressable_part(&self) -> Option<&Self> {
        let part = self.0.addressable.get_or_init(|| {
            let is_addressable = |device: &&DeviceRef| device.is_addressable();
            if self.iter().all(|device| device.is_addressable()) {
                return None;
            }
            Some(self.iter().filter(is_addressable).cloned().collect())
        });
        part.as_ref()
    }

    /// A number that is equal for equal lists in this process, and never 0.
    pub fn stable_hash(&self) -> u64 {
        *self.0.hash.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            self.len().hash(&mut hasher);
            self.ids().for_each(|id| id.hash(&mut hasher));
            hasher.finish().max(1)
        })
    }

    /// A number that is equal for equal lists in every process, also in processes that run the
    /// reference. JAX makes launch ids of it when several processes run one program.
    ///
    /// It is the 64-bit HighwayHash of the ids as decimal text, with nothing between them.
    pub fn fingerprint(&self) -> u64 {
        *self.0.fingerprint.get_or_init(|| {
            let mut hasher = HighwayHasher::new(FINGERPRINT_KEY);
            for id in self.ids() {
                hasher.append(id.to_string().as_bytes());
            }
            hasher.finalize64()
        })
    }

    /// Where the lists differ, for messages; empty if they are equal. Names at most
    /// `max_differences` positions.
    ///
    /// # Mirrors
    /// `DeviceListDifferencesString`.
    pub fn differences(&self, other: &Self, max_differences: usize) -> String {
        let mut parts = Vec::new();
        if self.len() != other.len() {
            parts.push(format!("sizes: {} vs. {}", self.len(), other.len()));
        }
        let mut differing = self.ids().zip(other.ids()).enumerate();
        let mut differing = differing.by_ref().filter(|(_, (a, b))| a != b);
        parts.extend(
            differing
                .by_ref()
                .take(max_differences)
                .map(|(position, (a, b))| format!("device #{position}: {a} vs. {b}")),
        );
        match differing.count() {
            0 => parts.join("; "),
            more => format!("{} (and {more} more)", parts.join("; ")),
        }
    }
}

impl FromIterator<DeviceRef> for DeviceList {
    fn from_iter<I: IntoIterator<Item = DeviceRef>>(devices: I) -> Self {
        Self::new(devices.into_iter().collect::<Arc<[DeviceRef]>>())
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
        state.write_u64(self.stable_hash());
    }
}

/// `[0,1]`: the ids in order.
impl fmt::Display for DeviceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (position, id) in self.ids().enumerate() {
            let separator = if position > 0 { "," } else { "" };
            write!(f, "{separator}{id}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for DeviceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids().map(|id| id.0)).finish()
    }
}
