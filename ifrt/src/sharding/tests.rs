//! SHD and HSH: shardings over six devices, of which the first four are addressable.

mod basic;
mod concrete;
mod hlo;
mod param;
mod spec;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::*;
use crate::Client;
use crate::array::ShardSemantics::{Addressable, All};
use crate::fake::{FakeClient, FakeOptions};
use crate::shape::BoundedDynamicShapeTag;
use crate::status::{Code, Status};

/// Devices with the ids from 10.
fn fixture(num_devices: usize, num_addressable: usize) -> Arc<FakeClient> {
    FakeClient::new(FakeOptions::fixture(num_devices, num_addressable))
}

fn list(client: &FakeClient, positions: impl IntoIterator<Item = usize>) -> DeviceList {
    let devices = client.devices();
    positions
        .into_iter()
        .map(|position| Arc::clone(&devices[position]))
        .collect()
}

fn six() -> DeviceList {
    list(&fixture(6, 4), 0..6)
}

fn two() -> DeviceList {
    list(&fixture(6, 4), 0..2)
}

fn shape(dims: &[i64]) -> Shape {
    Shape::new(dims).unwrap()
}

fn sharding(kind: ShardingKind, devices: DeviceList) -> Sharding {
    Sharding::new(kind, devices, MemoryKind::default()).unwrap()
}

/// Only the marked dimensions are bounded.
fn bounded(dims: &[i64], dynamic: &[bool]) -> DynamicShape {
    let tag = BoundedDynamicShapeTag::new(dynamic).unwrap();
    DynamicShape::new(shape(dims), tag).unwrap()
}

fn domain(origin: &[i64], extent: &[i64]) -> IndexDomain {
    IndexDomain::new(origin, shape(extent))
}

#[track_caller]
fn invalid_with<T: fmt::Debug>(result: Result<T>, text: &str) {
    let status: Status = result.expect_err("the call should have been refused");
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(
        status.message().contains(text),
        "{status} does not contain {text:?}"
    );
}

/// Checks the shapes of the shards and that each is on the right device, in order.
#[track_caller]
fn check_shards(
    found: Result<Vec<(Shape, ShardingRef)>>,
    devices: &DeviceList,
    shapes: impl IntoIterator<Item: AsRef<[i64]>>,
) {
    let found = found.unwrap();
    let found_shapes: Vec<&Shape> = found.iter().map(|(shape, _)| shape).collect();
    let shapes: Vec<Shape> = shapes
        .into_iter()
        .map(|dims| shape(dims.as_ref()))
        .collect();
    assert_eq!(found_shapes, shapes.iter().collect::<Vec<_>>());
    for ((_, single), device) in found.iter().zip(devices) {
        let expected = Sharding::single_device(Arc::clone(device), MemoryKind::default());
        assert_eq!(*single, expected);
    }
}

/// One sharding of each kind, for two devices.
fn every_kind() -> Vec<ShardingKind> {
    let param = ShardingParam::new(vec![2, 1], vec![0], vec![2], vec![]).unwrap();
    vec![
        ShardingKind::SingleDevice,
        ShardingKind::opaque(),
        ShardingKind::concrete(shape(&[30]), vec![shape(&[10]), shape(&[20])]),
        ShardingKind::ConcreteEven {
            shape: shape(&[30]),
            shard_shape: shape(&[15]),
            is_fully_replicated: false,
        },
        ShardingKind::Param(param),
        ShardingKind::Hlo(HloSharding::tile([2, 1]).unwrap()),
        ShardingKind::Hlo(HloSharding::Replicated),
    ]
}

#[test]
fn shd_01_no_sharding_without_devices() {
    let none = list(&fixture(6, 4), []);
    for kind in every_kind() {
        let name = kind.name();
        let made = Sharding::new(kind, none.clone(), MemoryKind::default());
        assert_eq!(made.unwrap_err().code(), Code::InvalidArgument, "{name}");
    }
}

#[test]
fn shd_07_18_equality_and_hashes_agree() {
    let client = fixture(6, 4);
    let hasher = RandomState::new();
    let mut shardings = Vec::new();
    for kind in every_kind() {
        let counts: &[&[usize]] = match kind {
            ShardingKind::SingleDevice => &[&[0], &[1]],
            _ => &[&[0, 1], &[1, 0]],
        };
        for positions in counts {
            for memory in ["device", "pinned_host"] {
                let devices = list(&client, positions.iter().copied());
                let memory = MemoryKind::new(memory);
                shardings.push(Sharding::new(kind.clone(), devices, memory).unwrap());
            }
        }
    }
    for (i, one) in shardings.iter().enumerate() {
        for (j, other) in shardings.iter().enumerate() {
            assert_eq!(one == other, i == j, "{one:?} {other:?}");
        }
        let copy = Sharding::new(
            one.kind().clone(),
            one.devices().iter().cloned().collect(),
            one.memory_kind().clone(),
        )
        .unwrap();
        assert_eq!(*one, copy);
        assert_eq!(hasher.hash_one(one), hasher.hash_one(&copy), "{one:?}");
    }
}

#[test]
fn shd_31_a_spec_is_the_partitioning() {
    let client = fixture(6, 4);
    for kind in every_kind() {
        let count = if kind == ShardingKind::SingleDevice {
            1
        } else {
            2
        };
        let sharding = sharding(kind.clone(), list(&client, 0..count));
        let spec = sharding.sharding_spec();
        assert_eq!((spec.kind(), spec.num_shards()), (&kind, count));
        assert_eq!(*spec, ShardingSpec::new(kind, count).unwrap());
    }
}
