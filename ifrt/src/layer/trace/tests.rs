use super::*;
use crate::fake::{FakeClient, FakeOptions};

fn compacted(num_devices: usize, positions: &[usize]) -> String {
    let client = FakeClient::new(FakeOptions {
        num_devices,
        ..FakeOptions::default()
    });
    let device = |position: &usize| Arc::clone(&client.devices()[*position]);
    compact(&positions.iter().map(device).collect())
}

#[test]
fn devices_are_listed_as_ranges() {
    assert_eq!(compacted(8, &[0, 1, 2, 3]), "0..4");
    assert_eq!(compacted(8, &[7]), "7");
    assert_eq!(compacted(8, &[0, 1, 5, 4, 6, 7]), "0..2,5,4,6..8");
    assert_eq!(compacted(8, &[]), "");
}

#[test]
fn long_lists_are_cut() {
    assert_eq!(hexadecimal(&[1, 255]), "0x1,0xff");
    let long: Vec<u64> = (1..100).collect();
    assert!(hexadecimal(&long).ends_with(",0x10,…"));
}
