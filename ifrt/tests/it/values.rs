//! The values of the contract: what they are, what they refuse, what they print.
//!
//! The devices are the fixture of the conformance list: ids from 10, the first ones addressable.
//!
//! The ids SHD, HSH and RP have their tests beside the code. These ids of the list have none,
//! because the types leave nothing to test:
//! - DT-02: there is no invalid dtype; an unspecified kind is an error (DT-01).
//! - IX-02 and IX-06, assigning forms: the operations are fallible, so they are methods.
//! - SHD-01 and HSH-01, null pointers: a device list or sharding cannot be null. Empty lists are.
//! - UC-09: only a context can be registered. UC-16, UC-19, UC-22: a status is always an error.

mod attributes;
mod device_lists;
mod devices;
mod dtypes;
mod hlo_shardings;
mod indices;
mod layouts;
mod memory_kinds;
mod remap_plans;
mod shapes;
mod sharding_specs;
mod user_contexts;

use std::fmt::Debug;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;

use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::{Client, Code, DeviceList, DeviceRef, Result, Shape};

/// A client with `num_devices` devices, ids from 10, the first `num_addressable` addressable.
pub(crate) fn fixture(num_devices: usize, num_addressable: usize) -> Arc<FakeClient> {
    FakeClient::new(FakeOptions::fixture(num_devices, num_addressable))
}

pub(crate) fn device(client: &FakeClient, position: usize) -> DeviceRef {
    Arc::clone(&client.devices()[position])
}

pub(crate) fn list(client: &FakeClient, positions: &[usize]) -> DeviceList {
    positions.iter().map(|p| device(client, *p)).collect()
}

pub(crate) fn shape(dims: &[i64]) -> Shape {
    Shape::new(dims).unwrap()
}

/// The message of an INVALID_ARGUMENT.
#[track_caller]
pub(crate) fn invalid<T: Debug>(result: Result<T>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    error.message().to_owned()
}

/// Checks that an INVALID_ARGUMENT says `part`.
#[track_caller]
pub(crate) fn assert_invalid<T: Debug>(result: Result<T>, part: &str) {
    let message = invalid(result);
    assert!(message.contains(part), "{message:?} does not say {part:?}");
}

/// Checks that equal values have equal hashes, and that the values at different positions of
/// `values` differ. `again` makes the same values another time.
#[track_caller]
pub(crate) fn assert_hash_is_consistent<T: Hash + Eq + Debug>(values: &[T], again: &[T]) {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    assert_eq!(values.len(), again.len());
    for (i, one) in values.iter().enumerate() {
        for (k, other) in again.iter().enumerate() {
            assert_eq!(one == other, i == k, "{one:?} and {other:?}");
            if i == k {
                assert_eq!(hasher.hash_one(one), hasher.hash_one(other), "{one:?}");
            }
        }
    }
}
