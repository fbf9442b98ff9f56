//! [`Memory`] and [`MemoryKind`].
//!
//! # Mirrors
//! `xla/python/ifrt/memory.h`.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

use crate::device::DeviceRef;

/// The number of a memory, unique in its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryId(pub i32);

impl fmt::Display for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A shared [`Memory`].
pub type MemoryRef = Arc<dyn Memory>;

/// A memory that devices can address. All methods answer from local state.
pub trait Memory: Any + Send + Sync + Debug {
    /// The number of the memory, unique in its client.
    fn id(&self) -> MemoryId;

    /// The kind, for example `device` or `pinned_host`.
    fn kind(&self) -> &MemoryKind;

    /// The devices that can address it.
    fn devices(&self) -> Vec<DeviceRef>;

    /// A short name for people; Python shows it as `repr(memory)`.
    fn to_text(&self) -> String;

    /// A long name for people.
    fn debug_string(&self) -> String {
        self.to_text()
    }
}

/// The kind of a memory; the default stands for the default memory of a device.
///
/// Newer XLA takes an absent kind and `device` for the same value; so do we. Kinds compare by
/// their text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MemoryKind(Option<Arc<str>>);

impl MemoryKind {
    /// The name of the default kind.
    pub const DEFAULT_NAME: &'static str = "device";

    /// The kind with this name.
    pub fn new(name: &str) -> Self {
        if name == Self::DEFAULT_NAME {
            Self(None)
        } else {
            Self(Some(name.into()))
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.0.as_deref().unwrap_or(Self::DEFAULT_NAME)
    }

    /// True for the default kind.
    pub const fn is_default(&self) -> bool {
        self.0.is_none()
    }
}

/// The default kind.
impl Default for MemoryKind {
    fn default() -> Self {
        Self(None)
    }
}

impl From<Option<&str>> for MemoryKind {
    fn from(name: Option<&str>) -> Self {
        name.map_or_else(Self::default, Self::new)
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Debug for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryKind({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_device() {
        assert_eq!(MemoryKind::default(), MemoryKind::new("device"));
        assert_eq!(MemoryKind::default(), MemoryKind::from(None));
        assert!(MemoryKind::new("device").is_default());
        assert_eq!(MemoryKind::default().to_string(), "device");
        assert!(!MemoryKind::new("").is_default());
        assert_ne!(MemoryKind::new(""), MemoryKind::default());
        assert_eq!(
            MemoryKind::new("abc"),
            MemoryKind::new(&String::from("abc"))
        );
    }
}
