//! What every run of an executable needs to know, asked for once.

use std::sync::Arc;

use ifrt::array::ShardSemantics;
use ifrt::array_spec::ArraySpec;
use ifrt::device::DeviceRef;
use ifrt::device_list::DeviceList;
use ifrt::dtype::DType;
use ifrt::layout::Layout;
use ifrt::memory::MemoryKind;
use ifrt::proto::xla::{DeviceAssignmentProto, OpSharding};
use ifrt::shape::Shape;
use ifrt::sharding::{Sharding, ShardingKind, ShardingRef};
use ifrt::xla::HloSharding;
use ifrt::{Code, Result, Status};
use prost::Message;

use super::program::{Interface, Parameter};
use crate::client::PjrtClient;
use crate::compiler::read_assignment;
use crate::device::PjrtDevice;
use crate::safe::buffer::{Placement, ShardSpec};
use crate::safe::executable::LoadedExecutable;

/// An output of a program.
#[derive(Debug)]
pub(crate) struct Output {
    /// What each device gives.
    pub(crate) shard: Arc<ShardSpec>,
    /// The shape of the whole array.
    pub(crate) shape: Shape,
    /// The whole array; `None` for a portable program, whose device is known when it runs.
    spec: Option<Arc<ArraySpec>>,
    pub(crate) memory_kind: MemoryKind,
}

impl Output {
    /// The whole array, for a run on `portable` or on the devices that the program is bound to.
    pub(crate) fn spec(&self, portable: Option<&DeviceRef>) -> Result<Arc<ArraySpec>> {
        if let Some(spec) = &self.spec {
            return Ok(Arc::clone(spec));
        }
        let device = portable.ok_or_else(|| internal("an output without a device"))?;
        let sharding = Sharding::single_device(Arc::clone(device), self.memory_kind.clone());
        Ok(Arc::new(self.spec_with(sharding)))
    }

    fn spec_with(&self, sharding: ShardingRef) -> ArraySpec {
        ArraySpec {
            dtype: self.shard.dtype,
            shape: self.shape.clone(),
            sharding,
            layout: self.shard.layout.clone(),
        }
    }
}

/// What a run takes at one position.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) parameter: Parameter,
    /// The layout if it is not the default one.
    pub(crate) layout: Option<Layout>,
}

/// What every run of an executable needs to know.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    /// The devices in the order of the assignment; `None` for a portable program.
    pub(crate) devices: Option<DeviceList>,
    pub(crate) addressable_devices: Vec<DeviceRef>,
    /// `None` if the plugin does not tell the parameters of its programs.
    pub(crate) inputs: Option<Vec<Input>>,
    /// `None` if the plugin does not tell them.
    pub(crate) donatable: Option<Vec<usize>>,
    /// The same, for each input.
    pub(crate) is_donatable: Vec<bool>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) output_shards: Vec<Arc<ShardSpec>>,
    /// Where the outputs of each device are, device by device; empty for a portable program.
    pub(crate) output_placements: Vec<Placement>,
    pub(crate) parameter_shardings: Option<Vec<HloSharding>>,
    pub(crate) output_shardings: Option<Vec<HloSharding>>,
}

/// What is known of an executable before it is asked.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// The devices in the order of the assignment.
    pub(crate) devices: Option<DeviceList>,
    /// The program runs on any one device.
    pub(crate) is_portable: bool,
    /// For plugins that forget them when they serialize.
    pub(crate) output_shardings: Option<Vec<HloSharding>>,
    /// For plugins that do not give the program.
    pub(crate) donatable: Option<Vec<usize>>,
    /// How many outputs go into each bundle.
    pub(crate) outputs_bundle_slice_sizes: Option<Vec<usize>>,
}

fn internal(message: impl Into<String>) -> Status {
    Status::internal(message)
}

fn if_implemented<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(status) if status.code() == Code::Unimplemented => Ok(None),
        result => result.map(Some),
    }
}

impl Metadata {
    pub(crate) fn read(
        client: &Arc<PjrtClient>,
        executable: &LoadedExecutable,
        hints: Hints,
    ) -> Result<Self> {
        let devices = read_devices(client, executable, &hints)?;
        let interface = Interface::of(executable)?;
        let dtypes = executable.output_dtypes()?;
        let dims = executable.output_dims()?;
        if dtypes.len() != executable.num_outputs() || dims.len() != dtypes.len() {
            return Err(internal(format!(
                "the plugin gave {} types and {} shapes for {} outputs",
                dtypes.len(),
                dims.len(),
                executable.num_outputs()
            )));
        }
        let kinds = memory_kinds(executable, &dtypes)?;
        // Programs with tokens have layouts that cannot be told; then all are taken for the default.
        let layouts = executable
            .output_layouts()
            .ok()
            .filter(|list| list.len() == dtypes.len());
        let output_shardings = match if_implemented(executable.output_shardings())? {
            Some(shardings) => shardings.map(read_shardings).transpose()?,
            None => interface
                .as_ref()
                .and_then(|module| module.output_shardings.clone()),
        };
        let output_shardings = for_outputs(output_shardings.or(hints.output_shardings), &dtypes)?;
        let parameter_shardings = match if_implemented(executable.parameter_shardings())? {
            Some(shardings) => shardings.map(read_shardings).transpose()?,
            None => interface
                .as_ref()
                .and_then(|module| module.parameter_shardings.clone()),
        };
        let mut outputs = Vec::with_capacity(dtypes.len());
        for (index, ((dtype, dims), memory_kind)) in
            dtypes.into_iter().zip(dims).zip(kinds).enumerate()
        {
            let shape = Shape::new(dims).map_err(|status| status.with_code(Code::Internal))?;
            let layout = layouts.as_ref().and_then(|layouts| layouts.get(index));
            let hlo = output_shardings
                .as_ref()
                .and_then(|shardings| shardings.get(index));
            let (global, sharding) = match &devices {
                Some(devices) => spread(devices, &memory_kind, &shape, hlo)?,
                None => (shape.clone(), None),
            };
            let layout = client.custom_layout(dtype, &shape, layout);
            let mut output = Output {
                shard: Arc::new(ShardSpec {
                    dtype,
                    shape,
                    layout,
                }),
                shape: global,
                spec: None,
                memory_kind,
            };
            output.spec = sharding.map(|sharding| Arc::new(output.spec_with(sharding)));
            outputs.push(output);
        }
        let addressable_devices: Vec<DeviceRef> = executable
            .devices()
            .iter()
            .map(|position| client.device_at(*position).cloned())
            .collect::<Result<_>>()?;
        let mut output_placements = Vec::new();
        if devices.is_some() {
            for device in &addressable_devices {
                for output in &outputs {
                    let place = PjrtDevice::placement(device, &output.memory_kind, client.id());
                    output_placements.push(place?);
                }
            }
        }
        let inputs = interface
            .as_ref()
            .map(|module| read_inputs(client, executable, &module.parameters))
            .transpose()?;
        let num_inputs = inputs.as_ref().map_or(0, Vec::len);
        let donatable = interface.map(|module| module.donatable).or(hints.donatable);
        Ok(Self {
            name: executable.name()?,
            devices,
            addressable_devices,
            inputs,
            is_donatable: (0..num_inputs)
                .map(|index| donatable.iter().flatten().any(|donated| *donated == index))
                .collect(),
            donatable,
            output_shards: outputs
                .iter()
                .map(|output| Arc::clone(&output.shard))
                .collect(),
            outputs,
            output_placements,
            parameter_shardings,
            output_shardings,
        })
    }
}

/// The devices in the order of the assignment. The plugin has the last word, since it chooses where
/// the options leave it open.
fn read_devices(
    client: &PjrtClient,
    executable: &LoadedExecutable,
    hints: &Hints,
) -> Result<Option<DeviceList>> {
    if hints.is_portable {
        return Ok(None);
    }
    if let Some(assignment) = executable.device_assignment()?
        && let Ok(assignment) = DeviceAssignmentProto::decode(&*assignment)
        && assignment.replica_count > 0
    {
        let (replicas, partitions) = executable.replicas_and_partitions()?;
        return read_assignment(client, &assignment, replicas, partitions)
            .map(Some)
            .map_err(|status| status.with_code(Code::Internal));
    }
    if let Some(devices) = &hints.devices {
        return Ok(Some(devices.clone()));
    }
    // Right for programs whose devices can all be reached.
    let devices = executable
        .devices()
        .iter()
        .map(|position| client.device_at(*position).cloned());
    devices
        .collect::<Result<Vec<_>>>()
        .map(|devices| Some(DeviceList::new(devices)))
}

fn memory_kinds(executable: &LoadedExecutable, dtypes: &[DType]) -> Result<Vec<MemoryKind>> {
    let Some(kinds) = if_implemented(executable.output_memory_kinds())? else {
        return Ok(vec![MemoryKind::default(); dtypes.len()]);
    };
    if kinds.len() != dtypes.len() {
        return Err(internal(format!(
            "the plugin gave {} memory kinds for {} outputs",
            kinds.len(),
            dtypes.len()
        )));
    }
    let kind = |(kind, dtype): (&String, &DType)| match kind.as_str() {
        "" => MemoryKind::default(),
        _ if *dtype == DType::Token => MemoryKind::default(),
        kind => MemoryKind::new(kind),
    };
    Ok(kinds.iter().zip(dtypes).map(kind).collect())
}

fn read_shardings(serialized: Vec<Vec<u8>>) -> Result<Vec<HloSharding>> {
    let read = |bytes: Vec<u8>| {
        OpSharding::decode(&*bytes)
            .map_err(Status::from)
            .and_then(|sharding| HloSharding::from_proto(&sharding))
    };
    serialized
        .into_iter()
        .map(|bytes| read(bytes).map_err(|status| status.with_code(Code::Internal)))
        .collect()
}

/// One sharding per output. A program without outputs has one for its empty tuple.
fn for_outputs(
    shardings: Option<Vec<HloSharding>>,
    dtypes: &[DType],
) -> Result<Option<Vec<HloSharding>>> {
    let Some(mut shardings) = shardings else {
        return Ok(None);
    };
    if dtypes.is_empty() {
        return Ok(Some(Vec::new()));
    }
    if shardings.len() != dtypes.len() {
        return Err(internal(format!(
            "the plugin gave {} shardings for {} outputs",
            shardings.len(),
            dtypes.len()
        )));
    }
    for (sharding, dtype) in shardings.iter_mut().zip(dtypes) {
        if *dtype == DType::Token {
            *sharding = HloSharding::Replicated;
        }
    }
    Ok(Some(shardings))
}

/// The shape of a whole output, and its sharding.
fn spread(
    devices: &DeviceList,
    kind: &MemoryKind,
    shard: &Shape,
    hlo: Option<&HloSharding>,
) -> Result<(Shape, Option<ShardingRef>)> {
    let (shape, sharding) = match (hlo, devices.devices()) {
        (Some(hlo), _) => {
            let shape = hlo
                .global_shape(shard)
                .map_err(|status| status.with_code(Code::Internal))?;
            (
                shape,
                Sharding::hlo(hlo.clone(), devices.clone(), kind.clone()),
            )
        }
        (None, [one]) => (
            shard.clone(),
            Ok(Sharding::single_device(Arc::clone(one), kind.clone())),
        ),
        // Replicas that each compute a result of their own.
        (None, _) => {
            let even = ShardingKind::ConcreteEven {
                shape: shard.clone(),
                shard_shape: shard.clone(),
                is_fully_replicated: false,
            };
            (
                shard.clone(),
                Sharding::new(even, devices.clone(), kind.clone()).map(Arc::new),
            )
        }
    };
    let sharding = sharding.map_err(|status| status.with_code(Code::Internal))?;
    debug_assert!(sharding.shard_shapes(&shape, ShardSemantics::All).is_ok());
    Ok((shape, Some(sharding)))
}

fn read_inputs(
    client: &PjrtClient,
    executable: &LoadedExecutable,
    parameters: &[Parameter],
) -> Result<Vec<Input>> {
    let layouts = executable
        .parameter_layouts()
        .ok()
        .filter(|layouts| layouts.len() == parameters.len());
    let input = |(index, parameter): (usize, &Parameter)| {
        let layout = layouts.as_ref().and_then(|layouts| layouts.get(index));
        let layout = layout.or(parameter.layout.as_ref());
        Input {
            layout: client.custom_layout(parameter.dtype, &parameter.shape, layout),
            parameter: parameter.clone(),
        }
    };
    Ok(parameters.iter().enumerate().map(input).collect())
}
