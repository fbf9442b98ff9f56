//! The map from outputs to the devices of their inputs: its making and its rule.

use std::collections::{BTreeMap, BTreeSet};

use super::{InputDevices, Mapping, RemapPlan};
use crate::device::{DeviceId, DeviceRef};
use crate::device_list::DeviceList;
use crate::status::{Result, Status};

/// The devices that the mappings take shards from, by output and input.
type Used = BTreeMap<usize, BTreeMap<usize, Vec<DeviceRef>>>;

/// The map for the mappings of a plan whose intervals are validated.
pub(super) fn compute(plan: &RemapPlan) -> BTreeMap<usize, Vec<InputDevices>> {
    let to_list = |output: usize, input: usize, used: Vec<DeviceRef>| {
        let whole = [plan.input_specs.get(input), plan.output_specs.get(output)];
        // An existing list is shared rather than built again.
        whole
            .into_iter()
            .flatten()
            .map(|spec| spec.sharding.devices())
            .find(|devices| devices.len() == used.len())
            .cloned()
            .unwrap_or_else(|| DeviceList::new(used))
    };
    let of_output = |(output, inputs): (usize, BTreeMap<usize, Vec<DeviceRef>>)| {
        let inputs = inputs.into_iter().map(|(in_array, used)| InputDevices {
            in_array,
            devices: to_list(output, in_array, used),
        });
        (output, inputs.collect())
    };
    used_devices(plan).into_iter().map(of_output).collect()
}

fn used_devices(plan: &RemapPlan) -> Used {
    let mut used = Used::new();
    for mapping in &plan.mappings {
        let Some(spec) = plan.input_specs.get(mapping.in_array) else {
            continue;
        };
        let devices = spec.sharding.devices().addressable();
        let of_input = used
            .entry(mapping.out_array)
            .or_default()
            .entry(mapping.in_array)
            .or_default();
        of_input.extend(shards(mapping).filter_map(|shard| devices.devices().get(shard).cloned()));
    }
    used
}

fn shards(mapping: &Mapping) -> impl Iterator<Item = usize> {
    mapping.from.iter().flat_map(|interval| interval.shards())
}

/// Checks the map, if there is one, against mappings whose intervals are validated.
pub(super) fn check(plan: &RemapPlan) -> Result<()> {
    if plan.input_devices_for_output_map.is_empty() {
        return Ok(());
    }
    let used = used_devices(plan);
    for (output, listed) in &plan.input_devices_for_output_map {
        let error = |what: String| {
            Status::invalid_argument(format!(
                "Output buffer index {output} in `input_devices_for_output_map` {what}"
            ))
        };
        let Some(inputs) = used.get(output) else {
            return Err(error("but not in `mappings`".into()));
        };
        for (input, devices) in inputs {
            let mut seen = BTreeSet::new();
            if let Some(device) = devices.iter().find(|device| !seen.insert(device.id())) {
                return Err(Status::invalid_argument(format!(
                    "Input device {} used more than once in mappings from input array {input} to \
                     output array {output}",
                    device.debug_string()
                )));
            }
        }
        if listed.len() != inputs.len() {
            return Err(error(format!(
                "has {} inputs, but `mappings` reference {} inputs",
                listed.len(),
                inputs.len()
            )));
        }
        for InputDevices { in_array, devices } in listed {
            let Some(used) = inputs.get(in_array) else {
                return Err(error(format!(
                    "references input array {in_array} that is not present in `mappings`"
                )));
            };
            let devices = devices.addressable();
            if devices.len() != used.len() {
                return Err(error(format!(
                    "uses {} addressable devices from input array {in_array}, but `mappings` \
                     contains {} addressable devices",
                    devices.len(),
                    used.len()
                )));
            }
            let used: BTreeSet<DeviceId> = used.iter().map(|device| device.id()).collect();
            if let Some(device) = devices.iter().find(|device| !used.contains(&device.id())) {
                return Err(error(format!(
                    "references device {} from input array {in_array}, but `mappings` does not \
                     reference that device",
                    device.debug_string()
                )));
            }
        }
    }
    Ok(())
}
