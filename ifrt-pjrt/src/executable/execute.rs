//! Running an executable on arrays.

use std::borrow::Cow;

use ifrt::array::{Array, ArrayRef};
use ifrt::completion::join_all;
use ifrt::device::DeviceRef;
use ifrt::device_list::DeviceList;
use ifrt::dtype::DType;
use ifrt::executable::{ExecuteOptions, ExecuteResult};
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
    if let Some(status) = failed {
        return pass_on(executable, args, status, options, portable);
    }
    let by_device: Vec<&Buffer> = (0..num_devices)
        .flat_map(|device| {
            arguments
                .iter()
                .filter_map(move |shards| shards.as_slice().get(device))
        })
        .map(|buffer| &**buffer)
        .collect();
    let kept = Kept::new(meta, options, args.len());
    let portable_placements = match &portable {
        Some(device) => portable_placements(executable, device)?,
        None => Vec::new(),
    };
    let custom = options.custom_options.as_ref();
    let launched = safe.execute(&Launch {
        args: &by_device,
        donatable: &kept.donatable,
        non_donatable: &kept.non_donatable,
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
    let mut outputs = Vec::with_capacity(meta.outputs.len());
    for (index, output) in meta.outputs.iter().enumerate() {
        let shards = launched
            .outputs
            .iter()
            .skip(index)
            .step_by(meta.outputs.len());
        let content = Content::Buffers(shards.cloned().collect());
        outputs.push(PjrtArray::make(client, output.spec(portable)?, content));
    }
    let events = launched.events.into_iter().map(Event::into_completion);
    Ok(ExecuteResult {
        status: options.fill_status.then(|| join_all(events)),
        outputs,
        cancellation_handle: None,
    })
}

/// What a run gives that has an argument with nothing but an error: the plugin has no buffers for
/// that, so the error is passed on here.
fn pass_on(
    executable: &PjrtLoadedExecutable,
    args: &[ArrayRef],
    status: Status,
    options: &ExecuteOptions,
    portable: Option<&DeviceRef>,
) -> Result<ExecuteResult> {
    check_alive(args)?;
    let outputs = executable.meta.outputs.iter().map(|output| {
        let content = Content::Failed(status.clone());
        let spec = output.spec(portable)?;
        Ok(PjrtArray::make(&executable.client, spec, content))
    });
    Ok(ExecuteResult {
        outputs: outputs.collect::<Result<_>>()?,
        status: options.fill_status.then(|| Completion::ready(Err(status))),
        cancellation_handle: None,
    })
}

/// Which arguments a run may consume.
struct Kept<'a> {
    donatable: Cow<'a, [bool]>,
    non_donatable: Vec<i64>,
}

impl<'a> Kept<'a> {
    fn new(meta: &'a Metadata, options: &ExecuteOptions, num_args: usize) -> Self {
        if meta.inputs.is_none() {
            // Nobody knows; the plugin tells afterwards.
            let donatable = Cow::Owned(vec![false; num_args]);
            let non_donatable = Self::indices(options, num_args);
            return Self {
                donatable,
                non_donatable,
            };
        }
        let mut donatable = Cow::Borrowed(&meta.is_donatable[..]);
        for index in &options.non_donatable_input_indices {
            if meta.is_donatable.get(*index) == Some(&true) {
                donatable.to_mut()[*index] = false;
            }
        }
        let non_donatable = Self::indices(options, num_args);
        Self {
            donatable,
            non_donatable,
        }
    }

    fn indices(options: &ExecuteOptions, num_args: usize) -> Vec<i64> {
        let indices = options.non_donatable_input_indices.iter();
        indices
            .filter(|index| **index < num_args)
            .filter_map(|index| i64::try_from(*index).ok())
            .collect()
    }
}

/// The device to run a portable executable on; `None` for one that is bound to devices.
fn portable_device<'a>(
    executable: &PjrtLoadedExecutable,
    devices: Option<&'a DeviceList>,
) -> Result<Option<&'a DeviceRef>> {
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
    device: &DeviceRef,
) -> Result<Vec<Placement>> {
    let outputs = executable.meta.outputs.iter();
    let id = executable.client.id();
    outputs
        .map(|output| PjrtDevice::placement(device, &output.memory_kind, id))
        .collect()
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
