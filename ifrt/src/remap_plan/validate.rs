//! The rules of a remap plan, in the order in which the reference checks them.
//!
//! Shards are counted among the addressable ones of their array.

use super::{Interval, Mapping, RemapPlan, devices};
use crate::array::ShardSemantics;
use crate::array_spec::ArraySpec;
use crate::device::DeviceId;
use crate::shape::Shape;
use crate::status::{Result, Status};

pub(super) fn validate(plan: &RemapPlan) -> Result<()> {
    if plan.input_specs.is_empty() {
        return Err(error("Must have at least one input"));
    }
    if plan.mappings.is_empty() {
        return Err(error("Must have at least one mapping"));
    }
    let mut shards = Shards::new(plan);
    for (number, mapping) in plan.mappings.iter().enumerate() {
        let (input, output) = ends(plan, number, mapping)?;
        check_compatible(mapping, input, output)?;
        shards.take(number, mapping, input, output)?;
    }
    devices::check(plan)?;
    shards.check_outputs(&plan.output_specs)
}

/// What the mappings so far did with the shards of each array.
struct Shards {
    used: Vec<Vec<bool>>,
    assigned: Vec<Vec<Option<DeviceId>>>,
}

impl Shards {
    fn new(plan: &RemapPlan) -> Self {
        let count = |spec: &ArraySpec| spec.sharding.devices().addressable().len();
        let inputs = plan.input_specs.iter();
        let outputs = plan.output_specs.iter();
        Self {
            used: inputs.map(|spec| vec![false; count(spec)]).collect(),
            assigned: outputs.map(|spec| vec![None; count(spec)]).collect(),
        }
    }

    fn take(
        &mut self,
        number: usize,
        mapping: &Mapping,
        input: &ArraySpec,
        output: &ArraySpec,
    ) -> Result<()> {
        let devices: Vec<DeviceId> = input.sharding.devices().addressable().ids().collect();
        let used = &mut self.used[mapping.in_array];
        let assigned = &mut self.assigned[mapping.out_array];
        let (from_shapes, to_shapes) = (ShardShapes::of(input)?, ShardShapes::of(output)?);
        for (position, (from, to)) in mapping.from.iter().zip(&mapping.to).enumerate() {
            check_interval(*from, used.len())?;
            check_interval(*to, assigned.len())?;
            if count(*from) != count(*to) {
                return Err(error(format!(
                    "mappings[{number}] maps an interval of {} shards to one of {}: number \
                     {position}, {from} vs. {to}",
                    count(*from),
                    count(*to)
                )));
            }
            for (from, to) in from.shards().zip(to.shards()) {
                if std::mem::replace(&mut used[from], true) {
                    return Err(error(format!(
                        "Input array {} addressable shard {from} is already used",
                        mapping.in_array
                    )));
                }
                if assigned[to].replace(devices[from]).is_some() {
                    return Err(error(format!(
                        "Output array {} addressable shard {to} is already assigned",
                        mapping.out_array
                    )));
                }
                let (from, new) = (from_shapes.get(from)?, to_shapes.get(to)?);
                if from != new {
                    return Err(error(format!(
                        "Input and output must have the same shard shape: {from} vs. {new} \
                         (output {}, addressable shard {to})",
                        mapping.out_array
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_outputs(&self, specs: &[ArraySpec]) -> Result<()> {
        for (number, (spec, assigned)) in specs.iter().zip(&self.assigned).enumerate() {
            let mut found = Vec::with_capacity(assigned.len());
            for (shard, device) in assigned.iter().enumerate() {
                found.push(device.ok_or_else(|| {
                    error(format!(
                        "Output array {number} addressable shard {shard} is unassigned"
                    ))
                })?);
            }
            let expected = spec.sharding.devices().addressable();
            if !expected.ids().eq(found.iter().copied()) {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                return Err(error(format!(
                    "Output array {number} addressable devices and sharding devices do not match: \
                     Expected {expected}, but got [{}]",
                    found.join(",")
                )));
            }
        }
        Ok(())
    }
}

/// The shapes of the addressable shards of an array.
enum ShardShapes {
    Same(Shape),
    Each(Vec<Shape>),
}

impl ShardShapes {
    fn of(spec: &ArraySpec) -> Result<Self> {
        // Of uneven tiles this is the largest, as in the reference. That a short shard does not
        // become a long one is left to the runtime, which knows the buffers.
        if let Ok(shape) = spec.sharding.shard_shape(&spec.shape) {
            return Ok(Self::Same(shape));
        }
        let shards = ShardSemantics::Addressable;
        let shapes = spec.sharding.shard_shapes(&spec.shape, shards)?;
        Ok(Self::Each(shapes))
    }

    fn get(&self, shard: usize) -> Result<&Shape> {
        match self {
            Self::Same(shape) => Ok(shape),
            Self::Each(shapes) => shapes
                .get(shard)
                .ok_or_else(|| error(format!("the addressable shard {shard} has no shape"))),
        }
    }
}

fn error(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
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

fn check_compatible(mapping: &Mapping, input: &ArraySpec, output: &ArraySpec) -> Result<()> {
    let (from, to) = (mapping.in_array, mapping.out_array);
    if input.dtype != output.dtype {
        return Err(error(format!(
            "Input and output must have the same dtype: {} (input {from}) vs. {} (output {to})",
            input.dtype, output.dtype
        )));
    }
    if input.layout != output.layout {
        let text = |spec: &ArraySpec| {
            let layout = spec.layout.as_ref();
            layout.map_or_else(|| "<nullptr>".to_owned(), ToString::to_string)
        };
        return Err(error(format!(
            "Input and output must have the same layout: {} (input {from}) vs. {} (output {to})",
            text(input),
            text(output)
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

#[cfg(test)]
mod tests;
