//! Concrete shardings: shapes that were told.

use super::*;

fn concrete(array: &[i64], shards: &[&[i64]]) -> ShardingKind {
    ShardingKind::concrete(
        shape(array),
        shards.iter().map(|dims| shape(dims)).collect(),
    )
}

fn with_domains(array: &[i64], domains: &[IndexDomain]) -> ShardingKind {
    ShardingKind::Concrete {
        shape: shape(array),
        shard_shapes: domains
            .iter()
            .map(|domain| domain.shape().clone())
            .collect(),
        index_domains: Some(domains.to_vec()),
    }
}

fn even(array: &[i64], shard: &[i64], is_fully_replicated: bool) -> ShardingKind {
    ShardingKind::ConcreteEven {
        shape: shape(array),
        shard_shape: shape(shard),
        is_fully_replicated,
    }
}

fn halves() -> [IndexDomain; 2] {
    [domain(&[0], &[15]), domain(&[15], &[15])]
}

#[test]
fn shd_12_a_common_shape_or_none() {
    let uneven = sharding(concrete(&[30], &[&[10], &[20]]), two());
    assert!(!uneven.is_fully_replicated());
    invalid_with(
        uneven.shard_shape(&shape(&[30])),
        "ConcreteSharding does not have a fixed shard shape",
    );
    let same = sharding(concrete(&[30], &[&[30], &[30]]), two());
    assert!(!same.is_fully_replicated(), "nobody said so");
    assert_eq!(same.shard_shape(&shape(&[30])), Ok(shape(&[30])));
}

#[test]
fn shd_13_what_concrete_shardings_have_in_common() {
    let client = fixture(6, 4);
    let base = sharding(concrete(&[30], &[&[15], &[15]]), two());
    let other_devices = list(&client, 2..4);
    let known = with_domains(&[30], &halves());
    let [low, high] = halves();
    for (other, same) in [
        (sharding(base.kind().clone(), other_devices), true),
        (
            sharding(concrete(&[30], &[&[15], &[15], &[15]]), list(&client, 0..3)),
            false,
        ),
        (sharding(concrete(&[40], &[&[15], &[15]]), two()), false),
        (sharding(concrete(&[30], &[&[10], &[20]]), two()), false),
        (sharding(known.clone(), two()), false),
    ] {
        assert_eq!(base.has_same_partitioning(&other), same, "{other:?}");
        assert_eq!(other.has_same_partitioning(&base), same, "{other:?}");
    }
    let known = sharding(known, two());
    let again = sharding(with_domains(&[30], &halves()), two());
    let swapped = sharding(with_domains(&[30], &[high, low]), two());
    assert!(known.has_same_partitioning(&again));
    assert!(!known.has_same_partitioning(&swapped));
}

#[test]
fn shd_14_21_other_devices() {
    let client = fixture(6, 4);
    let to = list(&client, 0..2);
    for (kind, name) in [
        (concrete(&[30], &[&[10], &[20]]), "ConcreteSharding"),
        (with_domains(&[30], &halves()), "ConcreteSharding"),
        (even(&[30], &[15], false), "ConcreteEvenSharding"),
    ] {
        let from = sharding(kind.clone(), list(&client, 2..4));
        let moved = from.with_device_assignment(Some(to.clone()), None);
        assert_eq!(
            moved,
            Ok(Arc::new(sharding(kind, to.clone()))),
            "domains are kept"
        );
        invalid_with(
            from.with_device_assignment(Some(list(&client, 0..4)), None),
            &format!(
                "{name} should have the same number of devices as the current sharding, but was \
                 asked to have 4 devices"
            ),
        );
    }
}

const FOUR: [&[i64]; 4] = [&[3], &[7], &[3], &[7]];

#[test]
fn shd_15_17_shards_that_are_out_of_reach_are_not_listed() {
    let devices = six();
    let concrete = sharding(concrete(&[20], &FOUR), devices.clone());
    invalid_with(
        concrete.disassemble(&shape(&[20]), All),
        "SingleDeviceShardSemantics::kAllShards was requested, but the ConcreteSharding contains \
         non-addressable devices. Saw 6 devices, with 4 addressable devices",
    );
    let here = concrete.disassemble(&shape(&[20]), Addressable);
    check_shards(here, &devices, FOUR);
    invalid_with(
        concrete.disassemble(&shape(&[30]), Addressable),
        "ConcreteSharding can only disassemble",
    );
}

#[test]
fn lists_of_another_length_are_refused() {
    let short = sharding(concrete(&[20], &[&[3], &[7], &[3]]), six());
    invalid_with(
        short.disassemble(&shape(&[20]), Addressable),
        "ConcreteSharding must have the same number of shard shapes and addressable devices",
    );
}

#[test]
fn shd_16_bounded_dimensions() {
    let bounded = |dim| bounded(&[dim], &[true]);
    let devices = six();
    let dynamic = ShardingKind::ConcreteDynamic {
        shape: bounded(20),
        shard_shapes: FOUR.iter().map(|dims| bounded(dims[0])).collect(),
    };
    let dynamic = sharding(dynamic, devices.clone());
    invalid_with(
        dynamic.disassemble_dynamic(&bounded(20), All),
        "kAllShards was requested, but the ConcreteSharding contains non-addressable devices. Saw \
         6 devices, with 4 addressable devices",
    );
    let here = dynamic
        .disassemble_dynamic(&bounded(20), Addressable)
        .unwrap();
    assert_eq!(here.len(), 4);
    for ((found, single), (dims, device)) in here.iter().zip(FOUR.iter().zip(&devices)) {
        assert_eq!(*found, bounded(dims[0]));
        assert_eq!(single.devices(), &DeviceList::new([Arc::clone(device)]));
    }
    invalid_with(
        dynamic.disassemble(&shape(&[20]), Addressable),
        "ConcreteSharding holds dynamic shape",
    );
    invalid_with(
        dynamic.disassemble_dynamic(&bounded(30), Addressable),
        "ConcreteSharding can only disassemble",
    );
    let fixed = sharding(concrete(&[20], &FOUR), devices);
    invalid_with(
        fixed.disassemble_dynamic(&bounded(20), Addressable),
        "ConcreteSharding holds static shape",
    );
}

#[test]
fn shd_18_index_domains_that_were_told() {
    let client = fixture(6, 4);
    let domains: Vec<IndexDomain> = (0..5).map(|n| domain(&[n], &[1])).collect();
    let array = shape(&[5]);
    let here = sharding(with_domains(&[5], &domains[..4]), list(&client, 0..4));
    for shards in [Addressable, All] {
        assert_eq!(
            here.index_domains(&array, shards),
            Ok(domains[..4].to_vec())
        );
    }
    let partly = sharding(with_domains(&[5], &domains[..4]), six());
    invalid_with(
        partly.index_domains(&array, All),
        "contains index domains from non-addressable devices",
    );
    assert_eq!(
        partly.index_domains(&array, Addressable),
        Ok(domains[..4].to_vec())
    );
    let unknown = sharding(
        concrete(&[5], &[&[1], &[1], &[1], &[1]]),
        list(&client, 0..4),
    );
    invalid_with(
        unknown.index_domains(&array, All),
        "ConcreteSharding does not have index domain information",
    );
    let too_many = sharding(with_domains(&[5], &domains), list(&client, 0..5));
    invalid_with(
        too_many.index_domains(&array, Addressable),
        "ConcreteSharding must have the same number of index domains and addressable devices",
    );
}

#[test]
fn shd_19_even_shards_of_one_array() {
    for flag in [true, false] {
        let even = sharding(even(&[30], &[15], flag), two());
        assert_eq!(even.is_fully_replicated(), flag, "as told, right or not");
        assert_eq!(even.shard_shape(&shape(&[30])), Ok(shape(&[15])));
        invalid_with(
            even.shard_shape(&shape(&[45])),
            "ConcreteEvenSharding has a shard shape for shape [30], but was asked to get a shard \
             shape for shape [45]",
        );
    }
}

#[test]
fn shd_20_what_even_shardings_have_in_common() {
    let client = fixture(6, 4);
    let base = sharding(even(&[30], &[15], false), two());
    for (kind, positions, same) in [
        (even(&[30], &[15], false), vec![2, 3], true),
        (even(&[30], &[15], false), vec![0, 1, 2], false),
        (even(&[45], &[15], false), vec![0, 1], false),
        (even(&[30], &[10], false), vec![0, 1], false),
        (even(&[30], &[15], true), vec![0, 1], false),
    ] {
        let other = sharding(kind, list(&client, positions));
        assert_eq!(base.has_same_partitioning(&other), same, "{other:?}");
    }
}

#[test]
fn shd_22_even_shards_on_six_devices() {
    let devices = six();
    let even = sharding(even(&[30], &[5], false), devices.clone());
    check_shards(even.disassemble(&shape(&[30]), All), &devices, [[5]; 6]);
    check_shards(
        even.disassemble(&shape(&[30]), Addressable),
        &devices,
        [[5]; 4],
    );
    invalid_with(
        even.disassemble(&shape(&[40]), All),
        "ConcreteEvenSharding can only disassemble",
    );
}

#[test]
fn shd_23_even_index_domains_only_of_replicas() {
    let client = fixture(6, 4);
    let array = shape(&[10, 20]);
    let devices = list(&client, [0, 4]);
    let whole = IndexDomain::whole(array.clone());
    let replicated = sharding(even(&[10, 20], &[10, 20], true), devices.clone());
    assert_eq!(
        replicated.index_domains(&array, All),
        Ok(vec![whole.clone(), whole.clone()])
    );
    assert_eq!(
        replicated.index_domains(&array, Addressable),
        Ok(vec![whole])
    );
    for kind in [
        even(&[10, 20], &[10, 20], false),
        even(&[10, 20], &[5, 20], true),
    ] {
        invalid_with(
            sharding(kind, devices.clone()).index_domains(&array, All),
            "ConcreteEvenSharding does not have index domain information",
        );
    }
}
