//! SSP: the partitioning alone.

use super::*;

fn spec(kind: ShardingKind, num_shards: usize) -> ShardingSpec {
    ShardingSpec::new(kind, num_shards).unwrap()
}

#[test]
fn ssp_32_specs_become_shardings_over_as_many_devices() {
    let client = fixture(6, 4);
    for kind in every_kind() {
        let count = if kind == ShardingKind::SingleDevice {
            1
        } else {
            2
        };
        let spec = spec(kind, count);
        let devices = list(&client, 0..count);
        let sharding = spec
            .to_sharding(devices.clone(), MemoryKind::default())
            .unwrap();
        assert_eq!(
            (sharding.sharding_spec(), sharding.devices()),
            (&spec, &devices)
        );
        invalid_with(
            spec.to_sharding(list(&client, 0..3), MemoryKind::default()),
            "but received 3 devices",
        );
    }
}

#[test]
fn ssp_01_specs_need_shards() {
    for kind in every_kind() {
        let name = kind.name();
        let made = ShardingSpec::new(kind, 0);
        assert_eq!(made.unwrap_err().code(), Code::InvalidArgument, "{name}");
    }
    let tiles = ShardingKind::Hlo(HloSharding::tile([2, 3]).unwrap());
    invalid_with(
        ShardingSpec::new(tiles, 5),
        "tile count and device count does not match",
    );
    let listed = ShardingKind::concrete(shape(&[30]), vec![shape(&[10]), shape(&[20])]);
    invalid_with(
        ShardingSpec::new(listed, 3),
        "ConcreteShardingSpec lists 2 shards",
    );
}

#[test]
fn ssp_specs_answer_like_shardings_with_their_own_name() {
    let client = fixture(2, 2);
    let array = shape(&[30]);
    for kind in every_kind() {
        let count = if kind == ShardingKind::SingleDevice {
            1
        } else {
            2
        };
        let (spec, sharding) = (
            spec(kind.clone(), count),
            sharding(kind.clone(), list(&client, 0..count)),
        );
        assert_eq!(spec.is_fully_replicated(), sharding.is_fully_replicated());
        let same = |of_spec: Result<String>, of_sharding: Result<String>| match of_spec {
            Ok(found) => assert_eq!(Ok(found), of_sharding),
            Err(status) => {
                let text = status.message().replace("ShardingSpec", "Sharding");
                let expected = of_sharding.unwrap_err();
                assert_eq!(
                    (status.code(), text.as_str()),
                    (expected.code(), expected.message())
                );
            }
        };
        let text = |value: &dyn fmt::Debug| format!("{value:?}");
        same(
            spec.shard_shape(&array).map(|found| text(&found)),
            sharding.shard_shape(&array).map(|found| text(&found)),
        );
        same(
            spec.shard_shapes(&array).map(|found| text(&found)),
            sharding.shard_shapes(&array, All).map(|found| text(&found)),
        );
        same(
            spec.index_domains(&array).map(|found| text(&found)),
            sharding
                .index_domains(&array, All)
                .map(|found| text(&found)),
        );
    }
}

#[test]
fn ssp_even_specs_never_tell_index_domains() {
    let array = shape(&[10, 20]);
    let even = ShardingKind::ConcreteEven {
        shape: array.clone(),
        shard_shape: array.clone(),
        is_fully_replicated: true,
    };
    invalid_with(
        spec(even, 2).index_domains(&array),
        "ConcreteEvenShardingSpec does not have index domain information",
    );
}
