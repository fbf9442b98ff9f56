//! Running an executable on arrays.

use std::sync::Arc;

use ifrt::array::{Array, ArrayRef};
use ifrt::completion::join_all;
use ifrt::device_list::DeviceList;
use ifrt::dtype::DType;
use ifrt::executable::{ExecuteOptions, ExecuteResult};
use ifrt::sharding::{Sharding, ShardingRef};
use ifrt::{Completion, Result, Status};

use super::PjrtLoadedExecutable;
use super::metadata::{Input, Metadata};
use crate::array::{Content, PjrtArray, Shards};
use crate::device::PjrtDevice;
use crate::messages;
use crate::safe::buffer::{Buffer, Placement};
use crate::safe::event::Event;
use crate::safe::executable::Launch;

/// The custom option that says where in the user's program a run was started.
const CALL_LOCATION: &str = "call_location";

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}

pub(super) fn execute(
    executable: &PjrtLoadedExecutable,
    args: &[ArrayRef],
    options: &ExecuteOptions,
    devices: Option<&DeviceList>,
) -> Result<ExecuteResult> {
    let PjrtLoadedExecutable {
        client, safe, meta, ..
    } = executable;
    let portable = portable_device(executable, devices)?;
    let num_devices = match portable {
        Some(_) => 1,
        None => meta.addressable_devices.len(),
    };
    if let Some(inputs) = &meta.inputs
        && inputs.len() != args.len()
    {
        return Err(invalid(format!(
            "Execution of {} takes {} arguments, but got {}",
            meta.name,
            inputs.len(),
            args.len()
        )));
    }
    let mut arguments: Vec<Shards> = Vec::with_capacity(args.len());
    let mut failed = None;
    for (index, array) in args.iter().enumerate() {
        let own = PjrtArray::of(array, client)?;
        let input = meta.inputs.as_ref().and_then(|inputs| inputs.get(index));
        match own.content_unchecked() {
            None => return Err(invalid(messages::gone_argument(index, 0))),
            Some(Content::Buffers(shards)) => {
                check_argument(index, &shards, input, num_devices)?;
                arguments.push(shards);
            }
            Some(Content::Strings(_)) => {
                return Err(invalid(format!("argument {index} is an array of strings")));
            }
            Some(Content::Failed(status)) => {
                check_failed(index, own, input)?;
                failed.get_or_insert(status);
            }
        }
    }
    let shardings = output_shardings(meta, portable)?;
    if let Some(status) = failed {
        // The plugin has no buffers with errors, so the error is passed on here.
        check_alive(args)?;
        let outputs = meta
            .outputs
            .iter()
            .zip(shardings)
            .map(|(output, sharding)| {
                let content = Content::Failed(status.clone());
                let (dtype, layout) = (output.shard.dtype, output.shard.layout.clone());
                PjrtArray::make(
                    client,
                    dtype,
                    output.shape.clone(),
                    sharding,
                    layout,
                    content,
                )
            });
        let outputs = outputs.collect();
        let status = options.fill_status.then(|| Completion::ready(Err(status)));
        return Ok(ExecuteResult {
            status,
            outputs,
            cancellation_handle: None,
        });
    }
    let by_device: Vec<&Buffer> = (0..num_devices)
        .flat_map(|device| {
            arguments
                .iter()
                .filter_map(move |shards| shards.as_slice().get(device))
        })
        .map(|buffer| &**buffer)
        .collect();
    let mut donatable = vec![false; args.len()];
    for index in meta.donatable.iter().flatten() {
        if let Some(donatable) = donatable.get_mut(*index) {
            *donatable = !options.non_donatable_input_indices.contains(index);
        }
    }
    let non_donatable: Vec<i64> = options
        .non_donatable_input_indices
        .iter()
        .filter(|index| **index < args.len())
        .filter_map(|index| i64::try_from(*index).ok())
        .collect();
    let custom = options.custom_options.as_ref();
    let portable_placements = match &portable {
        Some(device) => portable_placements(executable, device)?,
        None => Vec::new(),
    };
    let launched = safe.execute(&Launch {
        args: &by_device,
        donatable: &donatable,
        non_donatable: &non_donatable,
        portable: portable
            .map(|device| PjrtDevice::position_of(device, client.id()))
            .transpose()?,
        outputs: &meta.output_shards,
        output_placements: match portable {
            Some(_) => &portable_placements,
            None => &meta.output_placements,
        },
        launch_id: options.launch_id,
        call_location: custom.and_then(|custom| custom.get_str(CALL_LOCATION).ok()),
        wants_events: options.fill_status,
    })?;
    let num_outputs = meta.outputs.len();
    let outputs =
        meta.outputs
            .iter()
            .zip(shardings)
            .enumerate()
            .map(|(index, (output, sharding))| {
                let shards = (0..num_devices)
                    .filter_map(|device| {
                        launched.outputs.get(device * num_outputs + index).cloned()
                    })
                    .collect::<Vec<_>>();
                let content = Content::Buffers(shards.into());
                let (dtype, layout) = (output.shard.dtype, output.shard.layout.clone());
                PjrtArray::make(
                    client,
                    dtype,
                    output.shape.clone(),
                    sharding,
                    layout,
                    content,
                )
            });
    let outputs = outputs.collect();
    let events = launched.events.into_iter().map(Event::into_completion);
    let status = options
        .fill_status
        .then(|| join_all(events.collect::<Vec<_>>()));
    Ok(ExecuteResult {
        status,
        outputs,
        cancellation_handle: None,
    })
}

/// The device to run a portable executable on; `None` for one that is bound to devices.
fn portable_device<'a>(
    executable: &PjrtLoadedExecutable,
    devices: Option<&'a DeviceList>,
) -> Result<Option<&'a ifrt::DeviceRef>> {
    match (&executable.meta.devices, devices) {
        (Some(_), None) => Ok(None),
        (Some(bound), Some(given)) if bound == given => Ok(None),
        (Some(_), Some(_)) => Err(invalid(
            "an executable that is bound to devices cannot run on others",
        )),
        (None, None) => Err(invalid("No devices provided for portable executable")),
        (None, Some(given)) => match given.devices() {
            [one] if one.is_addressable() => Ok(Some(one)),
            [_] => Err(invalid(
                "a portable executable runs on a device of this process only",
            )),
            _ => Err(invalid("Only single-shard portable execution is supported")),
        },
    }
}

fn portable_placements(
    executable: &PjrtLoadedExecutable,
    device: &ifrt::DeviceRef,
) -> Result<Vec<Placement>> {
    let outputs = executable.meta.outputs.iter();
    let id = executable.client.id();
    outputs
        .map(|output| PjrtDevice::placement(device, &output.memory_kind, id))
        .collect()
}

fn output_shardings(
    meta: &Metadata,
    portable: Option<&ifrt::DeviceRef>,
) -> Result<Vec<ShardingRef>> {
    let sharding = |output: &super::metadata::Output| match (&output.sharding, portable) {
        (Some(sharding), _) => Ok(Arc::clone(sharding)),
        (None, Some(device)) => Ok(Sharding::single_device(
            Arc::clone(device),
            output.memory_kind.clone(),
        )),
        (None, None) => Err(Status::internal("an output without a sharding")),
    };
    meta.outputs.iter().map(sharding).collect()
}

/// Plugins check neither dtypes nor shapes, only sizes, and some crash on a wrong one.
fn check_argument(
    index: usize,
    shards: &Shards,
    input: Option<&Input>,
    num_devices: usize,
) -> Result<()> {
    let shards = shards.as_slice();
    if shards.len() != num_devices {
        return Err(invalid(format!(
            "Argument {index} has {} buffers, but executable expects {num_devices} computations",
            shards.len()
        )));
    }
    let Some(input) = input else {
        return Ok(());
    };
    let Input { parameter, layout } = input;
    for buffer in shards {
        let spec = buffer.spec();
        if parameter.dtype == DType::Token {
            // What stands for a token: one of a former run, or an empty array of booleans.
            let is_empty = spec.dtype == DType::Pred && spec.shape.dims() == [0];
            if spec.dtype != DType::Token && !is_empty {
                return Err(invalid(format!(
                    "Argument {index} must be a token or an array of dtype pred and shape [0], but \
                     is of dtype {} and shape {}",
                    spec.dtype, spec.shape
                )));
            }
            continue;
        }
        if spec.dtype != parameter.dtype || spec.shape != parameter.shape {
            return Err(invalid(format!(
                "Argument {index} has shards of dtype {} and shape {}, but the program takes dtype \
                 {} and shape {}",
                spec.dtype, spec.shape, parameter.dtype, parameter.shape
            )));
        }
        if spec.layout != *layout {
            let name = |layout: &Option<ifrt::Layout>| {
                layout
                    .as_ref()
                    .map_or_else(|| "the default".to_owned(), ToString::to_string)
            };
            return Err(invalid(format!(
                "Argument {index} has the layout {}, but the program takes {}",
                name(&spec.layout),
                name(layout)
            )));
        }
    }
    Ok(())
}

fn check_failed(index: usize, array: &PjrtArray, input: Option<&Input>) -> Result<()> {
    match input {
        Some(input)
            if input.parameter.dtype != array.dtype() && input.parameter.dtype != DType::Token =>
        {
            Err(invalid(format!(
                "Argument {index} has dtype {}, but the program takes dtype {}",
                array.dtype(),
                input.parameter.dtype
            )))
        }
        _ => Ok(()),
    }
}

fn check_alive(args: &[ArrayRef]) -> Result<()> {
    match args.iter().position(|array| array.is_deleted()) {
        Some(index) => Err(invalid(messages::gone_argument(index, 0))),
        None => Ok(()),
    }
}
