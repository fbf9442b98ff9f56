//! Shardings, sharding specs and the array specs that contain them.

use prost::Message;

use super::{Kept, accepted, check, choose, client, serialized};
use crate::array::ShardSemantics;
use crate::device_list::DeviceList;
use crate::index::IndexDomain;
use crate::memory::MemoryKind;
use crate::proto::xla::OpSharding;
use crate::proto::xla::ifrt::{ShardingProto, ShardingSpecProto};
use crate::serdes::{
    SerDesVersion, abstract_array_spec_from_proto, abstract_array_spec_to_proto,
    array_spec_from_proto, array_spec_to_proto, sharding_from_proto, sharding_spec_from_proto,
    sharding_spec_to_proto, sharding_to_proto,
};
use crate::shape::Shape;
use crate::sharding::{Sharding, ShardingKind, ShardingSpec};
use crate::xla::HloSharding;

const NAMES: [&str; 6] = [
    "SingleDeviceSharding",
    "OpaqueSharding",
    "ConcreteSharding",
    "ConcreteEvenSharding",
    "ShardingParamSharding",
    "HloSharding",
];

/// More shards than this are not asked for their parts, which would only take time.
const MAX_ASKED: usize = 64;

/// A sharding over eight devices.
///
/// # Panics
/// If it does not survive being written and read again, or its answers contradict each other.
pub fn sharding(data: &[u8]) {
    let Some((name, data)) = choose(data, &NAMES) else {
        return;
    };
    let client = client();
    let proto = ShardingProto {
        serialized_sharding: Some(serialized(name, data)),
    };
    let Ok(sharding) = sharding_from_proto(&proto, &*client) else {
        return;
    };
    assert!(!sharding.devices().is_empty());
    let written = sharding_to_proto(&sharding, SerDesVersion::CURRENT);
    let again = sharding_from_proto(&accepted(written, "a sharding"), &*client);
    let again = accepted(again, "a written sharding");
    if !matches!(sharding.kind(), ShardingKind::Opaque(_)) {
        assert_eq!(again, sharding);
    }
    check_answers(&sharding);
}

/// Shapes and parts agree, and the addressable ones are some of all.
fn check_answers(sharding: &Sharding) {
    let own = match sharding.kind() {
        ShardingKind::Concrete { shape, .. } | ShardingKind::ConcreteEven { shape, .. } => {
            Some(shape.clone())
        }
        _ => None,
    };
    let shapes = [&[][..], &[6], &[5, 7], &[0, 3]].map(|dims| Shape::new(dims).ok());
    for shape in shapes.into_iter().chain([own]).flatten() {
        for shards in [ShardSemantics::All, ShardSemantics::Addressable] {
            let devices = match shards {
                ShardSemantics::All => sharding.devices().clone(),
                ShardSemantics::Addressable => sharding.devices().addressable(),
            };
            let shard_shapes = sharding.shard_shapes(&shape, shards);
            if let Ok(shard_shapes) = &shard_shapes {
                assert_eq!(shard_shapes.len(), devices.len());
            }
            if let Ok(domains) = sharding.index_domains(&shape, shards) {
                check_parts(&shape, &domains, &devices);
                assert!(shard_shapes.is_ok_and(|shapes| {
                    shapes.iter().eq(domains.iter().map(IndexDomain::shape))
                }));
            }
        }
        if sharding.is_fully_replicated()
            && !matches!(sharding.kind(), ShardingKind::ConcreteEven { .. })
            && let Ok(shard) = sharding.shard_shape(&shape)
        {
            assert_eq!(shard, shape);
        }
    }
}

/// One part per device, each inside the array.
fn check_parts(shape: &Shape, domains: &[IndexDomain], devices: &DeviceList) {
    assert_eq!(domains.len(), devices.len());
    for domain in domains {
        let parts = domain.origin().iter().zip(domain.shape().dims());
        for ((start, extent), dim) in parts.zip(shape.dims()) {
            assert!(*start >= 0 && start.checked_add(*extent).is_some_and(|end| end <= *dim));
        }
    }
}

/// A sharding spec.
///
/// # Panics
/// If it does not survive being written and read again, or its answers contradict each other.
pub fn sharding_spec(data: &[u8]) {
    let Some((name, data)) = choose(data, &NAMES) else {
        return;
    };
    let proto = ShardingSpecProto {
        serialized_sharding_spec: Some(serialized(&format!("{name}Spec"), data)),
    };
    let Ok(spec) = sharding_spec_from_proto(&proto) else {
        return;
    };
    let written = sharding_spec_to_proto(&spec, SerDesVersion::CURRENT);
    let again = sharding_spec_from_proto(&accepted(written, "a sharding spec"));
    let again = accepted(again, "a written sharding spec");
    assert_eq!(again.num_shards(), spec.num_shards());
    if !matches!(spec.kind(), ShardingKind::Opaque(_)) {
        assert_eq!(again, spec);
    }
    check_spec(&spec);
}

fn check_spec(spec: &ShardingSpec) {
    if spec.num_shards() > MAX_ASKED {
        return;
    }
    for dims in [&[][..], &[6], &[5, 7]] {
        if let Ok(shape) = Shape::new(dims)
            && let Ok(shapes) = spec.shard_shapes(&shape)
        {
            assert_eq!(shapes.len(), spec.num_shards());
        }
    }
    let devices: DeviceList = crate::Client::devices(&*client())
        .iter()
        .take(spec.num_shards())
        .cloned()
        .collect();
    if devices.len() == spec.num_shards() {
        let sharding = spec.to_sharding(devices, MemoryKind::default());
        let sharding = accepted(sharding, "a spec with as many devices");
        assert_eq!(sharding.sharding_spec(), spec);
    }
}

/// An array spec with devices, or one without.
///
/// # Panics
/// If it does not survive being written and read again.
pub fn array_spec(data: &[u8]) {
    let client = client();
    let version = SerDesVersion::CURRENT;
    match choose(data, &[true, false]) {
        None => {}
        // Opaque shardings are equal to themselves only, so texts are compared.
        Some((true, data)) => check(
            data,
            |proto| array_spec_from_proto(proto, &*client).map(|s| (s.to_string(), Kept(s))),
            |(_, spec)| array_spec_to_proto(&spec.0, version),
        ),
        Some((false, data)) => check(
            data,
            |proto| abstract_array_spec_from_proto(proto).map(|s| (s.to_string(), Kept(s))),
            |(_, spec)| abstract_array_spec_to_proto(&spec.0, version),
        ),
    }
}

/// XLA's message of a sharding, over as many devices as it has tiles.
///
/// # Panics
/// If it does not survive being written and read again, or its answers contradict each other.
pub fn hlo_sharding(data: &[u8]) {
    check::<OpSharding, HloSharding>(data, HloSharding::from_proto, |hlo| Ok(hlo.to_proto()));
    let Ok(proto) = OpSharding::decode(data) else {
        return;
    };
    let Ok(hlo) = HloSharding::from_proto(&proto) else {
        return;
    };
    let count = match &hlo {
        HloSharding::Tiled(tiles) => usize::try_from(tiles.num_devices()).unwrap_or(usize::MAX),
        _ => 2,
    };
    if count > MAX_ASKED {
        return;
    }
    let rank = match &hlo {
        HloSharding::Tiled(tiles) => tiles.data_dims().len(),
        _ => 2,
    };
    let Ok(shape) = Shape::new(vec![5; rank.min(20)]) else {
        return;
    };
    if let Ok(domains) = hlo.index_domains(&shape, count) {
        assert_eq!(domains.len(), count);
        let shapes = accepted(hlo.shard_shapes(&shape, count), "a sharding with parts");
        assert!(shapes.iter().eq(domains.iter().map(IndexDomain::shape)));
    }
}
