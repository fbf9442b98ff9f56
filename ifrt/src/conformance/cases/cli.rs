//! CLI: clients and their devices.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Case, case};
use crate::conformance::check::{Check, check, equal, refused};
use crate::conformance::fixture::Fixture;
use crate::device::{DeviceId, DeviceRef};
use crate::status::Code;

pub(super) const CASES: &[Case] = &[
    case("CLI-01", "platform", cli_01),
    case("CLI-02", "devices", cli_02),
    case("CLI-03", "all_devices", cli_03),
    case("CLI-04", "default_compiler", cli_04),
    case("CLI-05", "default_device_assignment", cli_05),
];

fn cli_01(fx: &Fixture) -> Check {
    let client = &fx.client;
    check(!client.runtime_type().is_empty(), "the runtime has a type")?;
    check(
        !client.platform_name().is_empty(),
        "the platform has a name",
    )?;
    check(
        !client.platform_version().is_empty(),
        "the platform has a version",
    )?;
    let other = fx.another()?;
    let (id, again) = (client.platform_id(), other.client.platform_id());
    equal(id, again, "the number of the same platform")
}

fn is_found(fx: &Fixture, device: &DeviceRef) -> Check {
    let found = fx.client.lookup_device(device.id())?;
    check(
        Arc::ptr_eq(&found, device),
        &format!("device {} is found by its id", device.id()),
    )
}

fn cli_02(fx: &Fixture) -> Check {
    let client = &fx.client;
    for device in client.devices() {
        is_found(fx, device)?;
        check(!device.to_text().is_empty(), "a device has a short name")?;
        check(
            !device.debug_string().is_empty(),
            "a device has a long name",
        )?;
        check(!device.kind().is_empty(), "a device has a kind")?;
    }
    for device in client.addressable_devices() {
        is_found(fx, device)?;
        check(device.is_addressable(), "an addressable device says so")?;
        let default = device.default_memory()?;
        let ids = device.memories().iter().map(|memory| memory.id());
        check(
            ids.into_iter().any(|id| id == default.id()),
            "the default memory is one of the memories",
        )?;
        if let Some(number) = device.local_hardware_id() {
            let found = client.lookup_addressable_device(number)?;
            equal(found.id(), device.id(), "the device of a hardware number")?;
        }
    }
    let reachable = client
        .devices()
        .iter()
        .filter(|device| device.is_addressable());
    equal(
        reachable.count(),
        client.addressable_devices().len(),
        "the number of addressable devices",
    )?;
    check(client.process_index() >= 0, "the process has a number")?;
    let unknown = client.lookup_device(DeviceId(-12345));
    refused(unknown, Code::InvalidArgument, "looking for no device")?;
    Ok(())
}

fn cli_03(fx: &Fixture) -> Check {
    let all = fx.client.all_devices();
    check(
        all.len() >= fx.client.devices().len(),
        "all devices include the devices",
    )?;
    let ids: HashSet<DeviceId> = all.iter().map(|device| device.id()).collect();
    equal(ids.len(), all.len(), "the number of different ids")?;
    for device in fx.client.devices() {
        check(ids.contains(&device.id()), "a device is one of all devices")?;
    }
    all.iter().try_for_each(|device| is_found(fx, device))
}

fn cli_04(fx: &Fixture) -> Check {
    let compiler = fx.client.default_compiler();
    check(
        !format!("{compiler:?}").is_empty(),
        "the compiler describes itself",
    )
}

fn cli_05(fx: &Fixture) -> Check {
    let count = fx.client.devices().len();
    for (replicas, partitions) in [(count, 1), (1, count)] {
        let what = format!("the assignment of {replicas} replicas and {partitions} partitions");
        let assignment = fx.client.default_device_assignment(replicas, partitions)?;
        equal(assignment.len(), replicas, &what)?;
        for row in &assignment {
            equal(row.len(), partitions, &what)?;
            for id in row {
                fx.client.lookup_device(*id)?;
            }
        }
    }
    Ok(())
}
