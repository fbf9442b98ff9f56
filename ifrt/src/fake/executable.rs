//! Executables of the fake.

mod cancel;
mod work;

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;

pub(super) use cancel::cancel;
use cancel::cancellable;
use prost::Message;
use work::Work;

use super::array::{FakeArray, unusable};
use super::client::FakeClient;
use super::compiler::serialize;
use super::elements::device_bytes;
use super::fault::Op;
use super::heap::{Buffer, ShardSpec};
use super::program::FakeProgram;
use super::task::{Contents, Task};
use crate::array::ArrayRef;
use crate::array_spec::ArraySpec;
use crate::attribute_map::AttributeMap;
use crate::client::Client;
use crate::completion::Completion;
use crate::device::DeviceRef;
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::executable::{
    CompiledMemoryStats, ExecuteOptions, ExecuteResult, HloModule, LoadedExecutable,
};
use crate::index::IndexDomain;
use crate::layout::Layout;
use crate::proto::xla::HloModuleProto;
use crate::sharding::Sharding;
use crate::status::{Result, Status};
use crate::user_context::{self, UserContextRef};
use crate::xla::HloSharding;

/// A program, bound to devices.
pub(super) struct FakeExecutable {
    client: Arc<FakeClient>,
    program: FakeProgram,
    module: Bytes,
    devices: Option<DeviceList>,
    slice_sizes: Option<Vec<usize>>,
    user_context: Option<UserContextRef>,
    work: Arc<Work>,
}

impl FakeExecutable {
    /// Binds a program to devices; `None` makes it portable. `slice_sizes` says how many outputs go
    /// into each bundle.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the shardings of the program are for another number of devices, or the
    /// bundles for another number of outputs; UNIMPLEMENTED for devices that this process cannot
    /// reach.
    pub(super) fn new(
        client: Arc<FakeClient>,
        program: FakeProgram,
        module: Bytes,
        devices: Option<DeviceList>,
        slice_sizes: Option<Vec<usize>>,
    ) -> Result<Self> {
        let outputs = program.outputs.len();
        let total = |sizes: &Vec<usize>| {
            sizes
                .iter()
                .try_fold(0_usize, |n, size| n.checked_add(*size))
        };
        if let Some(sizes) = &slice_sizes
            && total(sizes) != Some(outputs)
        {
            return Err(invalid(format!(
                "bundles of {sizes:?} values do not make up the {outputs} outputs of {}",
                program.name
            )));
        }
        if let Some(devices) = &devices {
            client.check_devices(devices)?;
            if devices.is_empty() {
                return Err(invalid("an executable needs a device"));
            }
            if !devices.is_fully_addressable() {
                return Err(Status::unimplemented(
                    "the fake only runs on devices that this process can reach",
                ));
            }
        }
        let count = devices.as_ref().map_or(1, DeviceList::len);
        let domains = |sharding: &HloSharding, shape| sharding.index_domains(shape, count);
        let parameters = program.parameters.iter();
        let parameters = parameters.map(|one| domains(&one.sharding, &one.shape));
        let outputs = program.outputs.iter();
        let outputs = outputs.map(|one| domains(&one.sharding, &one.shape));
        let work = Work {
            parameters: parameters.collect::<Result<_>>()?,
            outputs: outputs.collect::<Result<_>>()?,
            program: program.clone(),
        };
        Ok(Self {
            client,
            program,
            module,
            devices,
            slice_sizes,
            user_context: user_context::current(),
            work: Arc::new(work),
        })
    }

    /// The devices of a run.
    fn devices_of_run(&self, asked: Option<&DeviceList>) -> Result<DeviceList> {
        match (&self.devices, asked) {
            (Some(devices), None) => Ok(devices.clone()),
            (Some(_), Some(_)) => Err(invalid("only portable executables take devices for a run")),
            (None, None) => Err(invalid("a portable executable needs devices for a run")),
            (None, Some(devices)) if devices.len() != 1 => {
                Err(invalid("Only single-shard portable execution is supported"))
            }
            (None, Some(devices)) => {
                self.client.check_devices(devices)?;
                Ok(devices.clone())
            }
        }
    }

    fn check_arguments<'a>(
        &self,
        args: &'a [ArrayRef],
        devices: &DeviceList,
    ) -> Result<Vec<&'a FakeArray>> {
        if args.len() != self.program.parameters.len() {
            return Err(invalid(format!(
                "Execution supplied {} arguments but compiled program expected {}",
                args.len(),
                self.program.parameters.len()
            )));
        }
        let mut arrays = Vec::with_capacity(args.len());
        let parameters = self.program.parameters.iter().zip(&self.work.parameters);
        for (number, (arg, (parameter, domains))) in args.iter().zip(parameters).enumerate() {
            let array = FakeArray::of(&self.client, arg)?;
            let spec = array.spec();
            if spec.dtype != parameter.dtype || spec.shape != parameter.shape {
                return Err(invalid(format!(
                    "argument {number} must be {}{}, but is {}{}",
                    parameter.dtype, parameter.shape, spec.dtype, spec.shape
                )));
            }
            if spec.sharding.devices() != devices {
                return Err(invalid(format!(
                    "argument {number} must be on devices {devices:?}, but is on {:?}",
                    spec.sharding.devices()
                )));
            }
            let shapes = array.buffers().iter().map(|buffer| &buffer.spec.shape);
            if !shapes.eq(domains.iter().map(IndexDomain::shape)) {
                return Err(invalid(format!(
                    "argument {number} must be spread as {:?}, but is spread as {:?}",
                    parameter.sharding, spec.sharding
                )));
            }
            arrays.push(array);
        }
        Ok(arrays)
    }

    /// The specs of the outputs and of their shards.
    fn plan_outputs(&self, devices: &DeviceList) -> Result<Vec<(ArraySpec, Vec<ShardSpec>)>> {
        let plan = |output: &super::program::Output| {
            let sharding = output.sharding.clone();
            let kind = output.memory_kind.clone();
            let spec = ArraySpec {
                dtype: output.dtype,
                shape: output.shape.clone(),
                sharding: Sharding::hlo(sharding, devices.clone(), kind)?,
                layout: None,
            };
            let shards = self.client.shard_specs(&spec)?;
            Ok((spec, shards))
        };
        self.program.outputs.iter().map(plan).collect()
    }

    fn donates(&self, options: &ExecuteOptions, number: usize) -> bool {
        let donated = |one: &super::program::Parameter| one.donated;
        self.program.parameters.get(number).is_some_and(donated)
            && !options.non_donatable_input_indices.contains(&number)
    }

    fn bytes_per_device<'a>(
        types: impl Iterator<Item = (DType, &'a Vec<IndexDomain>)>,
    ) -> Result<i64> {
        let mut total = 0_i64;
        for (dtype, domains) in types {
            if let Some(domain) = domains.first() {
                let bytes = i64::try_from(device_bytes(dtype, domain.shape())?);
                total = total.saturating_add(bytes.unwrap_or(i64::MAX));
            }
        }
        Ok(total)
    }
}

impl LoadedExecutable for FakeExecutable {
    fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.client) as Arc<dyn Client>
    }

    fn name(&self) -> &str {
        &self.program.name
    }

    fn user_context(&self) -> Option<UserContextRef> {
        self.user_context.clone()
    }

    fn num_devices(&self) -> usize {
        self.devices.as_ref().map_or(1, DeviceList::len)
    }

    fn devices(&self) -> Option<&DeviceList> {
        self.devices.as_ref()
    }

    fn addressable_devices(&self) -> &[DeviceRef] {
        self.devices.as_ref().map_or(&[], DeviceList::devices)
    }

    fn fingerprint(&self) -> Result<Option<Bytes>> {
        let mut hasher = DefaultHasher::new();
        self.module.hash(&mut hasher);
        let hash = hasher.finish().to_be_bytes();
        Ok(Some(Bytes::copy_from_slice(&hash)))
    }

    fn serialize(&self) -> Result<Bytes> {
        Ok(serialize(
            self.devices.as_ref(),
            self.slice_sizes.as_deref(),
            &self.module,
        ))
    }

    fn parameter_shardings(&self) -> Option<Vec<HloSharding>> {
        let parameters = self.program.parameters.iter();
        Some(parameters.map(|one| one.sharding.clone()).collect())
    }

    fn output_shardings(&self) -> Option<Vec<HloSharding>> {
        let outputs = self.program.outputs.iter();
        Some(outputs.map(|one| one.sharding.clone()).collect())
    }

    fn parameter_layouts(&self) -> Result<Vec<Layout>> {
        let parameters = self.program.parameters.iter();
        Ok(parameters
            .map(|one| Layout::descending(one.shape.rank()))
            .collect())
    }

    fn output_layouts(&self) -> Result<Vec<Layout>> {
        let outputs = self.program.outputs.iter();
        Ok(outputs
            .map(|one| Layout::descending(one.shape.rank()))
            .collect())
    }

    /// The head of a module: the fake has no instructions to show.
    fn hlo_modules(&self) -> Result<Vec<HloModule>> {
        let parameters = self.program.parameters.iter();
        let module = HloModuleProto {
            name: self.program.name.clone(),
            spmd_parameters_shardings: parameters.map(|one| one.sharding.to_proto()).collect(),
            ..HloModuleProto::default()
        };
        Ok(vec![HloModule::new(module.encode_to_vec().into())])
    }

    fn output_memory_kinds(&self) -> Result<Vec<Vec<String>>> {
        let outputs = self.program.outputs.iter();
        let kinds = outputs.map(|one| one.memory_kind.name().to_owned());
        Ok(vec![kinds.collect()])
    }

    fn donatable_input_indices(&self) -> Result<Vec<usize>> {
        let parameters = self.program.parameters.iter().enumerate();
        let donated = parameters.filter(|(_, one)| one.donated);
        Ok(donated.map(|(number, _)| number).collect())
    }

    fn compiled_memory_stats(&self) -> Result<CompiledMemoryStats> {
        let parameters = self.program.parameters.iter().map(|one| one.dtype);
        let argument = Self::bytes_per_device(parameters.zip(&self.work.parameters))?;
        let outputs = self.program.outputs.iter().map(|one| one.dtype);
        let output = Self::bytes_per_device(outputs.zip(&self.work.outputs))?;
        Ok(CompiledMemoryStats {
            argument_size_bytes: argument,
            output_size_bytes: output,
            peak_memory_bytes: argument.saturating_add(output),
            ..CompiledMemoryStats::default()
        })
    }

    fn cost_analysis(&self) -> Result<AttributeMap> {
        let peak = self.compiled_memory_stats()?.peak_memory_bytes;
        Ok([("bytes accessed", peak)].into_iter().collect())
    }

    fn human_readable_program_text(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.module).into_owned())
    }

    fn outputs_bundle_slice_sizes(&self) -> Option<&[usize]> {
        self.slice_sizes.as_deref()
    }

    fn execute(
        &self,
        args: &[ArrayRef],
        options: &ExecuteOptions,
        devices: Option<&DeviceList>,
    ) -> Result<ExecuteResult> {
        let devices = self.devices_of_run(devices)?;
        let arrays = self.check_arguments(args, &devices)?;
        let plans = self.plan_outputs(&devices)?;
        let heap = self.client.heap();
        let sizes = plans.iter().flat_map(|(_, shards)| shards);
        let sizes = sizes.map(|shard| shard.bytes);
        heap.check_room(sizes.fold(0, u64::saturating_add))?;
        let strike = self.client.faults().strike(Op::Execute)?;
        let uses: Vec<_> = arrays
            .iter()
            .enumerate()
            .map(|(number, array)| (array.holder(), self.donates(options, number)))
            .collect();
        let contents = heap.take(&uses);
        let contents = contents.map_err(|why| unusable("Execute", &arrays, why))?;
        let gated = arrays.iter().zip(contents).flat_map(|(array, contents)| {
            contents.into_iter().map(|contents| array.gated(contents))
        });
        let inputs: Vec<Contents> = gated.collect();

        let mut promises = Vec::new();
        let mut outputs = Vec::with_capacity(plans.len());
        for (spec, shards) in plans {
            let allocate = |shard| -> Arc<Buffer> {
                let (promise, contents) = Completion::pair();
                promises.push(promise);
                heap.allocate(shard, contents)
            };
            let buffers = shards.into_iter().map(allocate).collect();
            outputs.push(self.client.array(spec, buffers, Completion::done())?);
        }
        let (permit, cancellation_handle) = cancellable(&strike.permit());
        let work = Arc::clone(&self.work);
        let task = Task {
            after: vec![permit],
            inputs,
            outputs: promises,
            work: Box::new(move |shards| work.run(shards)),
        };
        let status = task.start();
        Ok(ExecuteResult {
            status: options.fill_status.then_some(status),
            outputs,
            cancellation_handle,
        })
    }
}

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

impl fmt::Debug for FakeExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeExecutable")
            .field("name", &self.program.name)
            .field("devices", &self.devices)
            .finish_non_exhaustive()
    }
}
