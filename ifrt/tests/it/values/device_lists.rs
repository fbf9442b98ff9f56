//! Device lists as lists, whatever devices are in them.

use ifrt::serdes::{device_list_from_proto, device_list_to_proto};
use ifrt::{DeviceId, DeviceList};
use proptest::prelude::*;

use super::{fixture, list};

/// Of six devices four can be reached.
const REACHABLE: usize = 4;

fn positions() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..6_usize, 0..10)
}

proptest! {
    #[test]
    fn a_list_is_its_devices_in_order(positions in positions()) {
        let client = fixture(6, REACHABLE);
        let devices = list(&client, &positions);
        let ids: Vec<DeviceId> = positions
            .iter()
            .map(|position| DeviceId(10 + i32::try_from(*position).unwrap()))
            .collect();
        prop_assert_eq!(devices.len(), positions.len());
        prop_assert_eq!(devices.is_empty(), positions.is_empty());
        prop_assert_eq!(devices.ids().collect::<Vec<_>>(), ids);

        let reachable: Vec<usize> = positions.iter().copied().filter(|p| *p < REACHABLE).collect();
        prop_assert_eq!(devices.addressable(), list(&client, &reachable));
        prop_assert_eq!(devices.addressable().addressable(), devices.addressable());
        prop_assert_eq!(devices.is_fully_addressable(), reachable.len() == positions.len());
        prop_assert!(devices.addressable().is_fully_addressable());

        let read = device_list_from_proto(&device_list_to_proto(&devices), &*client);
        prop_assert_eq!(read, Ok(devices));
    }

    #[test]
    fn lists_are_equal_if_their_devices_are(one in positions(), other in positions(), same: bool) {
        let client = fixture(6, REACHABLE);
        let other = if same { one.clone() } else { other };
        let (a, b): (DeviceList, DeviceList) = (list(&client, &one), list(&client, &other));
        prop_assert_eq!(a == b, one == other);
        prop_assert_eq!(a.differences(&b, 3).is_empty(), one == other);
        if one == other {
            prop_assert_eq!(a.stable_hash(), b.stable_hash());
            prop_assert_eq!(a.fingerprint(), b.fingerprint());
        }
        prop_assert_ne!(a.stable_hash(), 0);
    }
}
