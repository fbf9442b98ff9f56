//! Single-device and opaque shardings.

use super::*;

fn single(position: usize) -> ShardingRef {
    let client = fixture(6, 4);
    Sharding::single_device(
        Arc::clone(&client.devices()[position]),
        MemoryKind::default(),
    )
}

#[test]
fn shd_02_single_is_the_whole_array() {
    let single = single(0);
    assert!(single.is_fully_replicated());
    assert_eq!(single.shard_shape(&shape(&[10, 20])), Ok(shape(&[10, 20])));
}

#[test]
fn shd_03_all_singles_split_alike() {
    let one = single(0);
    assert!(one.has_same_partitioning(&one));
    assert!(one.has_same_partitioning(&single(1)));
    assert_ne!(one, single(1));
}

#[test]
fn shd_04_single_moves_to_one_device() {
    let client = fixture(6, 4);
    let one = single(0);
    let moved = one.with_device_assignment(Some(list(&client, [1])), None);
    assert_eq!(moved, Ok(single(1)));
    invalid_with(
        one.with_device_assignment(Some(list(&client, 0..2)), None),
        "SingleDeviceSharding can only have one device, but was asked to have 2 devices",
    );
    let devices = list(&client, 0..2);
    invalid_with(
        Sharding::new(ShardingKind::SingleDevice, devices, MemoryKind::default()),
        "SingleDeviceSharding can only have one device, but was asked to have 2 devices",
    );
}

#[test]
fn shd_05_06_single_has_one_shard() {
    let one = single(0);
    let array = shape(&[10, 20]);
    let bounded = bounded(array.dims(), &[true, false]);
    for shards in [Addressable, All] {
        assert_eq!(
            one.index_domains(&array, shards),
            Ok(vec![IndexDomain::whole(array.clone())])
        );
        assert_eq!(
            one.disassemble(&array, shards),
            Ok(vec![(array.clone(), Arc::clone(&one))])
        );
        assert_eq!(
            one.disassemble_dynamic(&bounded, shards),
            Ok(vec![(bounded.clone(), Arc::clone(&one))])
        );
    }
    let away = single(5);
    assert_eq!(away.index_domains(&array, Addressable), Ok(vec![]));
    assert_eq!(away.disassemble(&array, Addressable), Ok(vec![]));
    assert_eq!(away.disassemble_dynamic(&bounded, Addressable), Ok(vec![]));
    assert_eq!(away.disassemble(&array, All).unwrap().len(), 1);
}

#[test]
fn shd_08_opaque_tells_nothing() {
    let opaque = sharding(ShardingKind::opaque(), two());
    assert!(!opaque.is_fully_replicated());
    invalid_with(
        opaque.shard_shape(&shape(&[30])),
        "OpaqueSharding does not have shard shape",
    );
}

#[test]
fn shd_09_opaque_is_equal_to_itself_only() {
    let opaque = sharding(ShardingKind::opaque(), two());
    assert!(opaque.has_same_partitioning(&opaque));
    assert!(!opaque.has_same_partitioning(&sharding(ShardingKind::opaque(), two())));
}

#[test]
fn shd_10_opaque_moves_to_as_many_devices() {
    let client = fixture(6, 4);
    let opaque = sharding(ShardingKind::opaque(), two());
    let to = list(&client, 2..4);
    let moved = opaque
        .with_device_assignment(Some(to.clone()), None)
        .unwrap();
    assert_eq!(moved.devices(), &to);
    assert_eq!(moved.kind(), opaque.kind());
    invalid_with(
        opaque.with_device_assignment(Some(list(&client, 0..4)), None),
        "OpaqueSharding should have the same number of devices as the current sharding, but was \
         asked to have 4 devices",
    );
    let kind = MemoryKind::new("pinned_host");
    let elsewhere = opaque
        .with_device_assignment(None, Some(kind.clone()))
        .unwrap();
    assert_eq!(elsewhere.memory_kind(), &kind);
    assert_eq!(elsewhere.devices(), opaque.devices());
}

#[test]
fn shd_11_opaque_has_no_known_shards() {
    let opaque = sharding(ShardingKind::opaque(), two());
    let bounded = bounded(&[30], &[true]);
    for shards in [Addressable, All] {
        let text = "OpaqueSharding does not have shard shape information";
        invalid_with(opaque.disassemble(&shape(&[30]), shards), text);
        invalid_with(opaque.disassemble_dynamic(&bounded, shards), text);
        invalid_with(
            opaque.index_domains(&shape(&[30]), shards),
            "OpaqueSharding does not have index domain information",
        );
    }
}
