use std::collections::HashSet;
use std::thread;

use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::serdes::{device_list_from_proto, device_list_to_proto};
use ifrt::{DeviceId, DeviceList};

use super::{assert_hash_is_consistent, assert_invalid, fixture, list};

const CASES: [(usize, usize); 2] = [(2, 1), (2, 2)];

#[test]
fn dlt_01_and_dlt_03_addressable_devices() {
    for (devices, addressable) in CASES {
        let client = fixture(devices, addressable);
        let all = list(&client, &[0, 1]);
        let expected: Vec<DeviceId> = [10, 11][..addressable]
            .iter()
            .map(|id| DeviceId(*id))
            .collect();
        assert!(all.addressable().ids().eq(expected));
        assert_eq!(all.is_fully_addressable(), devices == addressable);
        // The list of the addressable devices is made once, or is the list itself.
        let (one, two) = (all.addressable(), all.addressable());
        assert!(std::ptr::eq(one.devices(), two.devices()));
        assert_eq!(
            std::ptr::eq(one.devices(), all.devices()),
            devices == addressable
        );
    }
}

#[test]
fn dlt_02_and_dlt_04_many_threads_see_one_list_and_one_hash() {
    for (devices, addressable) in CASES {
        let client = fixture(devices, addressable);
        let all = list(&client, &[0, 1]);
        let seen: HashSet<(DeviceList, u64, u64)> = thread::scope(|scope| {
            let ask = || (all.addressable(), all.stable_hash(), all.fingerprint());
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(seen.len(), 1);
        assert!(seen.iter().all(|(_, hash, _)| *hash != 0));
    }
}

#[test]
fn dlt_05_equality() {
    let client = fixture(2, 2);
    let both = list(&client, &[0, 1]);
    assert_eq!(both, list(&client, &[0, 1]));
    assert_eq!(both, both.clone());
    let make = || [&[][..], &[0], &[0, 1], &[1, 0], &[0, 0]].map(|ids| list(&client, ids));
    assert_hash_is_consistent(&make(), &make());
}

#[test]
fn dlt_06_differences() {
    let client = fixture(9, 9);
    let text = |a: &[usize], b: &[usize]| list(&client, a).differences(&list(&client, b), 5);
    assert_eq!(text(&[0, 1], &[0, 1]), "");
    assert_eq!(text(&[0, 1], &[0]), "sizes: 2 vs. 1");
    assert_eq!(
        text(&[0, 1], &[1, 0]),
        "device #0: 10 vs. 11; device #1: 11 vs. 10"
    );
    assert_eq!(
        text(&[0, 1, 2, 3, 4, 5, 6, 7, 8], &[1, 2, 3, 4, 5, 6, 7, 8]),
        "sizes: 9 vs. 8; device #0: 10 vs. 11; device #1: 11 vs. 12; device #2: 12 vs. 13; \
         device #3: 13 vs. 14; device #4: 14 vs. 15 (and 3 more)"
    );
}

#[test]
fn dlt_07_round_trip() {
    for (devices, addressable) in CASES {
        let client = fixture(devices, addressable);
        let all = list(&client, &[0, 1]);
        let mut proto = device_list_to_proto(&all);
        assert_eq!(proto.device_ids, [10, 11]);
        assert_eq!(device_list_from_proto(&proto, &*client), Ok(all));
        proto.device_ids.push(99);
        assert_invalid(device_list_from_proto(&proto, &*client), "device_id 99");
    }
}

#[test]
fn long_lists_are_read_like_short_ones() {
    let client = fixture(40, 40);
    let positions: Vec<usize> = (0..40).rev().collect();
    let all = list(&client, &positions);
    let mut proto = device_list_to_proto(&all);
    assert_eq!(device_list_from_proto(&proto, &*client), Ok(all));
    proto.device_ids.push(99);
    assert_invalid(device_list_from_proto(&proto, &*client), "device_id 99");
}

/// Computed with Google's own highwayhash, from the ids as decimal text without separators.
const FINGERPRINTS: [(&[usize], u64); 5] = [
    (&[], 0x75d1_c799_270f_6945),
    (&[0], 0x14a6_1c0a_a59a_2a17),
    (&[0, 1], 0xab7e_8286_9aca_d4ce),
    (&[10, 11], 0x3845_b50b_b797_fc48),
    (
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        0x08af_c5e9_e621_d7c5,
    ),
];

#[test]
fn fingerprints_are_those_of_the_reference() {
    let client = FakeClient::new(FakeOptions {
        num_devices: 12,
        ..FakeOptions::default()
    });
    for (ids, fingerprint) in FINGERPRINTS {
        assert_eq!(list(&client, ids).fingerprint(), fingerprint, "{ids:?}");
    }
}
