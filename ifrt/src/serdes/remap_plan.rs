//! [`RemapPlan`] as `xla.ifrt.RemapPlanProto`.
//!
//! The optional map of input devices per output only saves work; it is not read.

use super::{SerDesVersion, array_spec_from_proto, array_spec_to_proto, check_version};
use crate::array_spec::ArraySpec;
use crate::client::Client;
use crate::proto::xla::ifrt::remap_plan_proto::MappingProto;
use crate::proto::xla::ifrt::{ArraySpecProto, RemapPlanProto};
use crate::remap_plan::{Interval, Mapping, RemapPlan};
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
    })
}

fn mapping_from_proto(proto: &MappingProto) -> Result<Mapping> {
    let position = |position: i32| {
        usize::try_from(position)
            .map_err(|_| Status::invalid_argument(format!("a mapping names the array {position}")))
    };
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
/// INVALID_ARGUMENT for positions beyond 32 bits; FAILED_PRECONDITION if a part needs a newer
/// version.
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
        ..RemapPlanProto::default()
    })
}

fn mapping_to_proto(mapping: &Mapping) -> Result<MappingProto> {
    let position = |position: usize| {
        i32::try_from(position)
            .map_err(|_| Status::invalid_argument("a mapping names too many arrays"))
    };
    let part = |intervals: &[Interval], part: fn(&Interval) -> i64| {
        intervals.iter().map(part).collect::<Vec<_>>()
    };
    Ok(MappingProto {
        in_array: position(mapping.in_array)?,
        out_array: position(mapping.out_array)?,
        from_start: part(&mapping.from, |interval| interval.start),
        from_end: part(&mapping.from, |interval| interval.end),
        from_step: part(&mapping.from, |interval| interval.step),
        to_start: part(&mapping.to, |interval| interval.start),
        to_end: part(&mapping.to, |interval| interval.end),
        to_step: part(&mapping.to, |interval| interval.step),
    })
}
