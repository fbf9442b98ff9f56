//! [`RemapPlan`] as `xla.ifrt.RemapPlanProto`.

use std::collections::BTreeMap;

use super::{
    SerDesVersion, array_spec_from_proto, array_spec_to_proto, check_version,
    device_list_from_proto, device_list_to_proto, missing,
};
use crate::array_spec::ArraySpec;
use crate::client::Client;
use crate::proto::xla::ifrt::remap_plan_proto::{
    InputDevices as InputDevicesProto, InputDevicesForOutput, MappingProto,
};
use crate::proto::xla::ifrt::{ArraySpecProto, RemapPlanProto};
use crate::remap_plan::{InputDevices, Interval, Mapping, RemapPlan};
use crate::status::{Result, Status};

/// Reads a plan over devices of `client`. The plan still has to be validated.
///
/// # Errors
/// INVALID_ARGUMENT for malformed parts; INTERNAL for interval lists of different lengths, as the
/// reference has it; FAILED_PRECONDITION for a newer format.
pub fn remap_plan_from_proto(proto: &RemapPlanProto, client: &dyn Client) -> Result<RemapPlan> {
    check_version(proto.version_number, 0, "RemapPlan")?;
    let specs = |specs: &[ArraySpecProto]| {
        specs
            .iter()
            .map(|spec| array_spec_from_proto(spec, client))
            .collect::<Result<_>>()
    };
    Ok(RemapPlan {
        input_specs: specs(&proto.input_specs)?,
        output_specs: specs(&proto.output_specs)?,
        mappings: proto
            .mappings
            .iter()
            .map(mapping_from_proto)
            .collect::<Result<_>>()?,
        input_devices_for_output_map: map_from_proto(proto, client)?,
    })
}

/// Several entries for one output are taken together, as in the reference.
fn map_from_proto(
    proto: &RemapPlanProto,
    client: &dyn Client,
) -> Result<BTreeMap<usize, Vec<InputDevices>>> {
    let mut map: BTreeMap<usize, Vec<InputDevices>> = BTreeMap::new();
    for output in &proto.input_devices_for_output {
        let inputs = map.entry(position(output.out_array)?).or_default();
        for input in &output.input_devices {
            let devices = input.device_list.as_ref();
            let devices = devices.ok_or_else(|| missing("InputDevices", "device_list"))?;
            inputs.push(InputDevices {
                in_array: position(input.in_array)?,
                devices: device_list_from_proto(devices, client)?,
            });
        }
    }
    Ok(map)
}

fn position(position: i32) -> Result<usize> {
    usize::try_from(position)
        .map_err(|_| Status::invalid_argument(format!("a mapping names the array {position}")))
}

fn mapping_from_proto(proto: &MappingProto) -> Result<Mapping> {
    if proto.from_start.len() != proto.to_start.len() {
        return Err(Status::internal(format!(
            "a mapping has {} intervals of the input and {} of the output",
            proto.from_start.len(),
            proto.to_start.len()
        )));
    }
    Ok(Mapping {
        in_array: position(proto.in_array)?,
        out_array: position(proto.out_array)?,
        from: intervals(&proto.from_start, &proto.from_end, &proto.from_step)?,
        to: intervals(&proto.to_start, &proto.to_end, &proto.to_step)?,
    })
}

fn intervals(starts: &[i64], ends: &[i64], steps: &[i64]) -> Result<Vec<Interval>> {
    if starts.len() != ends.len() || starts.len() != steps.len() {
        return Err(Status::internal(format!(
            "a mapping has {} starts, {} ends and {} steps",
            starts.len(),
            ends.len(),
            steps.len()
        )));
    }
    let ranges = starts.iter().zip(ends).zip(steps);
    Ok(ranges
        .map(|((&start, &end), &step)| Interval { start, end, step })
        .collect())
}

/// Writes a plan for a reader that knows `version`.
///
/// # Errors
/// INVALID_ARGUMENT for positions beyond 32 bits; INTERNAL for a mapping with different numbers of
/// intervals; FAILED_PRECONDITION if a part needs a newer version.
pub fn remap_plan_to_proto(plan: &RemapPlan, version: SerDesVersion) -> Result<RemapPlanProto> {
    let specs = |specs: &[ArraySpec]| {
        specs
            .iter()
            .map(|spec| array_spec_to_proto(spec, version))
            .collect::<Result<_>>()
    };
    Ok(RemapPlanProto {
        input_specs: specs(&plan.input_specs)?,
        output_specs: specs(&plan.output_specs)?,
        mappings: plan
            .mappings
            .iter()
            .map(mapping_to_proto)
            .collect::<Result<_>>()?,
        version_number: 0,
        input_devices_for_output: plan
            .input_devices_for_output_map
            .iter()
            .map(devices_to_proto)
            .collect::<Result<_>>()?,
    })
}

fn devices_to_proto(entry: (&usize, &Vec<InputDevices>)) -> Result<InputDevicesForOutput> {
    let input = |input: &InputDevices| {
        Ok(InputDevicesProto {
            in_array: number(input.in_array)?,
            device_list: Some(device_list_to_proto(&input.devices)),
        })
    };
    Ok(InputDevicesForOutput {
        out_array: number(*entry.0)?,
        input_devices: entry.1.iter().map(input).collect::<Result<_>>()?,
    })
}

fn number(position: usize) -> Result<i32> {
    i32::try_from(position).map_err(|_| Status::invalid_argument("a mapping names too many arrays"))
}

fn mapping_to_proto(mapping: &Mapping) -> Result<MappingProto> {
    if mapping.from.len() != mapping.to.len() {
        return Err(Status::internal(format!(
            "a mapping has {} intervals of the input and {} of the output",
            mapping.from.len(),
            mapping.to.len()
        )));
    }
    let part = |intervals: &[Interval], part: fn(&Interval) -> i64| {
        intervals.iter().map(part).collect::<Vec<_>>()
    };
    Ok(MappingProto {
        in_array: number(mapping.in_array)?,
        out_array: number(mapping.out_array)?,
        from_start: part(&mapping.from, |interval| interval.start),
        from_end: part(&mapping.from, |interval| interval.end),
        from_step: part(&mapping.from, |interval| interval.step),
        to_start: part(&mapping.to, |interval| interval.start),
        to_end: part(&mapping.to, |interval| interval.end),
        to_step: part(&mapping.to, |interval| interval.step),
    })
}
