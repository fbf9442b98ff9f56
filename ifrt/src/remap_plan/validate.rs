//! The rules of a remap plan, in the order in which the reference checks them.

use super::{Interval, Mapping, RemapPlan, devices};
use crate::array::ShardSemantics;
use crate::array_spec::ArraySpec;
use crate::device::DeviceId;
use crate::status::{Result, Status};

pub(super) fn validate(plan: &RemapPlan) -> Result<()> {
    if plan.input_specs.is_empty() {
        return Err(error("Must have at least one input"));
    }
    if plan.mappings.is_empty() {
        return Err(error("Must have at least one mapping"));
    }
    let mut used: Vec<Vec<bool>> = shard_flags(&plan.input_specs);
    let mut assigned: Vec<Vec<Option<DeviceId>>> = plan
        .output_specs
        .iter()
        .map(|spec| vec![None; shards(spec)])
        .collect();
    for (number, mapping) in plan.mappings.iter().enumerate() {
        let (input, output) = ends(plan, number, mapping)?;
        check_compatible(input, output)?;
        for (from, to) in mapping.from.iter().zip(&mapping.to) {
            check_interval(*from, shards(input))?;
            check_interval(*to, shards(output))?;
            if count(*from) != count(*to) {
                return Err(error(format!(
                    "mappings[{number}] maps an interval of {} shards to one of {}",
                    count(*from),
                    count(*to)
                )));
            }
            let devices: Vec<DeviceId> = input.sharding.devices().addressable().ids().collect();
            for (from, to) in from.shards().zip(to.shards()) {
                if std::mem::replace(&mut used[mapping.in_array][from], true) {
                    return Err(error(format!(
                        "Input array {} addressable shard {from} is already used",
                        mapping.in_array
                    )));
                }
                if assigned[mapping.out_array][to]
                    .replace(devices[from])
                    .is_some()
                {
                    return Err(error(format!(
                        "Output array {} addressable shard {to} is already assigned",
                        mapping.out_array
                    )));
                }
            }
        }
        check_shard_shapes(input, output)?;
    }
    devices::check(plan)?;
    for (number, (spec, assigned)) in plan.output_specs.iter().zip(&assigned).enumerate() {
        if let Some(shard) = assigned.iter().position(Option::is_none) {
            return Err(error(format!(
                "Output array {number} addressable shard {shard} is unassigned"
            )));
        }
        if !spec
            .sharding
            .devices()
            .addressable()
            .ids()
            .eq(assigned.iter().copied().flatten())
        {
            return Err(error(format!(
                "Output array {number} addressable devices and sharding devices do not match"
            )));
        }
    }
    Ok(())
}

fn error(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

fn shards(spec: &ArraySpec) -> usize {
    spec.sharding.devices().addressable().len()
}

fn shard_flags(specs: &[ArraySpec]) -> Vec<Vec<bool>> {
    specs.iter().map(|spec| vec![false; shards(spec)]).collect()
}

fn ends<'a>(
    plan: &'a RemapPlan,
    number: usize,
    mapping: &Mapping,
) -> Result<(&'a ArraySpec, &'a ArraySpec)> {
    let find = |specs: &'a [ArraySpec], name: &str, position: usize| {
        specs.get(position).ok_or_else(|| {
            error(format!(
                "mappings[{number}].{name} must be in [0, {}], but is {position}",
                i64::try_from(specs.len()).unwrap_or(i64::MAX) - 1
            ))
        })
    };
    let input = find(&plan.input_specs, "in_array", mapping.in_array)?;
    let output = find(&plan.output_specs, "out_array", mapping.out_array)?;
    if mapping.from.len() != mapping.to.len() {
        return Err(error(format!(
            "mappings[{number}].from and mappings[{number}].to must have the same number of \
             intervals, but has {} and {} intervals",
            mapping.from.len(),
            mapping.to.len()
        )));
    }
    Ok((input, output))
}

fn check_compatible(input: &ArraySpec, output: &ArraySpec) -> Result<()> {
    if input.dtype != output.dtype {
        return Err(error(format!(
            "Input and output must have the same dtype: {} vs. {}",
            input.dtype, output.dtype
        )));
    }
    if input.layout != output.layout {
        return Err(error(format!(
            "Input and output must have the same layout: {:?} vs. {:?}",
            input.layout, output.layout
        )));
    }
    Ok(())
}

/// Bounds everything that the loops over shards rely on.
fn check_interval(interval: Interval, shards: usize) -> Result<()> {
    let Interval { start, end, step } = interval;
    let shards = i64::try_from(shards).unwrap_or(i64::MAX);
    if start < 0 || start >= shards {
        return Err(error(format!(
            "start must be in [0, {}], but is {start}",
            shards - 1
        )));
    }
    if step <= 0 {
        return Err(error(format!("step must be positive, but is {step}")));
    }
    let limit = shards.saturating_add(step - 1);
    if end < 0 || end > limit {
        return Err(error(format!(
            "end must be in [0, {limit}] if step is {step}, but is {end}"
        )));
    }
    let last = start.saturating_add((count(interval) - 1).saturating_mul(step));
    if count(interval) > 0 && last >= shards {
        return Err(error(format!(
            "interval addresses shard {last}, which is out of range [0, {shards})"
        )));
    }
    Ok(())
}

/// The number of shards of an interval with a positive step.
fn count(interval: Interval) -> i64 {
    let Interval { start, end, step } = interval;
    if end <= start {
        0
    } else {
        (end - start - 1) / step + 1
    }
}

fn check_shard_shapes(input: &ArraySpec, output: &ArraySpec) -> Result<()> {
    let shapes = |spec: &ArraySpec| match spec.sharding.shard_shape(&spec.shape) {
        Ok(shape) => Ok(vec![shape]),
        Err(_) => spec
            .sharding
            .shard_shapes(&spec.shape, ShardSemantics::All)
            .map(|mut shapes| {
                shapes.dedup();
                shapes
            }),
    };
    let (from, to) = (shapes(input)?, shapes(output)?);
    if from == to {
        return Ok(());
    }
    Err(error(format!(
        "Input and output must have the same shard shape: {from:?} vs. {to:?}"
    )))
}

#[cfg(test)]
mod tests;
