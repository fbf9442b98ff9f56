//! Subscriptions to changes of device attributes.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::attribute_map::AttributeMap;
use crate::device::DeviceId;
use crate::status::Result;

/// What is called when attributes of devices change, with those that changed. An error ends the
/// subscription.
pub type AttributeCallback =
    Box<dyn FnMut(&BTreeMap<DeviceId, AttributeMap>) -> Result<()> + Send + Sync>;

/// A running subscription. Dropping it ends it: no call begins after the drop has returned.
///
/// # Mirrors
/// `xla/python/ifrt/device.h`, `DeviceAttributeSubscription`.
pub trait AttributeSubscription: Send + Sync + Debug {}
