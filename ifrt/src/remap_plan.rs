//! [`RemapPlan`]: which shard of which output is which shard of which input.
//!
//! # Mirrors
//! `xla/python/ifrt/remap_plan.h`.

mod devices;
mod text;
mod validate;

use std::collections::BTreeMap;

use crate::array::ArrayCopySemantics;
use crate::array_spec::ArraySpec;
use crate::device_list::DeviceList;
use crate::status::{Result, Status};

/// The shards `start`, `start + step`, … below `end`, like a slice in Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the sentence above names them")]
pub struct Interval {
    pub start: i64,
    pub end: i64,
    pub step: i64,
}

impl Interval {
    /// The shards in order; none if the interval runs backwards or its length exceeds 64 bits.
    pub fn shards(self) -> impl Iterator<Item = usize> {
        let count = match self.end.checked_sub(self.start) {
            Some(length) if length > 0 && self.step > 0 => (length - 1) / self.step + 1,
            _ => 0,
        };
        (0..count).filter_map(move |n| usize::try_from(self.start + n * self.step).ok())
    }
}

/// The shards of an input that become shards of an output, in equal order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The input, by position.
    pub in_array: usize,
    /// The output, by position.
    pub out_array: usize,
    /// Addressable shards of the input.
    pub from: Vec<Interval>,
    /// Addressable shards of the output, as many.
    pub to: Vec<Interval>,
}

/// The devices from which an output takes shards of one input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InputDevices {
    /// The input, by position.
    pub in_array: usize,
    /// The devices that the shards are on.
    pub devices: DeviceList,
}

/// Which shard of which output is which shard of which input.
///
/// A plan is data until it is validated: [`RemapPlan::create_optimized`] does so at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RemapPlan {
    /// What the inputs must be.
    pub input_specs: Vec<ArraySpec>,
    /// What the outputs will be.
    pub output_specs: Vec<ArraySpec>,
    /// The moves; together they give each output shard once.
    pub mappings: Vec<Mapping>,
    /// For some outputs, by position, the devices that each input gives shards from. It says
    /// nothing that the mappings do not say, but saves a runtime from working it out.
    pub input_devices_for_output_map: BTreeMap<usize, Vec<InputDevices>>,
}

impl RemapPlan {
    /// A plan that still has to be validated.
    pub const fn new(
        input_specs: Vec<ArraySpec>,
        output_specs: Vec<ArraySpec>,
        mappings: Vec<Mapping>,
    ) -> Self {
        Self {
            input_specs,
            output_specs,
            mappings,
            input_devices_for_output_map: BTreeMap::new(),
        }
    }

    /// A validated plan that also says which devices each output takes shards from.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming the first rule that is broken, as [`RemapPlan::validate`].
    ///
    /// # Mirrors
    /// `RemapPlan::CreateOptimized`.
    pub fn create_optimized(
        input_specs: Vec<ArraySpec>,
        output_specs: Vec<ArraySpec>,
        mappings: Vec<Mapping>,
    ) -> Result<Self> {
        let mut plan = Self::new(input_specs, output_specs, mappings);
        plan.validate()?;
        plan.input_devices_for_output_map = devices::compute(&plan);
        devices::check(&plan)?;
        Ok(plan)
    }

    /// Checks that the plan gives each output shard exactly one fitting input shard.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming the first rule that is broken.
    pub fn validate(&self) -> Result<()> {
        validate::validate(self)
    }

    /// Checks that the inputs may be used as `copy` says.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if an output takes shards from several inputs that are not donated.
    pub fn check_copy_semantics(&self, copy: ArrayCopySemantics) -> Result<()> {
        if copy == ArrayCopySemantics::DonateInput {
            return Ok(());
        }
        let mut input_of = vec![None; self.output_specs.len()];
        for mapping in &self.mappings {
            let Some(input) = input_of.get_mut(mapping.out_array) else {
                continue;
            };
            if *input.get_or_insert(mapping.in_array) != mapping.in_array {
                return Err(Status::invalid_argument(
                    "kDonateInput is required if multiple inputs are mapped to one output",
                ));
            }
        }
        Ok(())
    }

    /// For each output the `(input, shard)` that each of its shards comes from, in order.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the plan is not valid.
    pub fn sources(&self) -> Result<Vec<Vec<(usize, usize)>>> {
        self.validate()?;
        let mut sources: Vec<Vec<(usize, usize)>> = self
            .output_specs
            .iter()
            .map(|spec| vec![(0, 0); spec.sharding.devices().addressable().len()])
            .collect();
        for mapping in &self.mappings {
            for (from, to) in mapping.from.iter().zip(&mapping.to) {
                for (from, to) in from.shards().zip(to.shards()) {
                    sources[mapping.out_array][to] = (mapping.in_array, from);
                }
            }
        }
        Ok(sources)
    }
}
