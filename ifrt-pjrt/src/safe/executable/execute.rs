//! Running an executable.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

use ifrt::{Result, Status};

use super::LoadedExecutable;
use crate::messages::{self, BufferUse};
use crate::safe::buffer::{Buffer, Pinned, Placement, ShardSpec, Use};
use crate::safe::event::{Event, missing};
use crate::safe::handle::Handle;
use crate::safe::pin::Refused;
use crate::sys::api::LoadedExecutableExecute;
use crate::sys::executable::{ExecuteOptions, LoadedExecutableExecuteArgs};
use crate::sys::{self, CBool, Function};

/// What to run an executable on. The caller has checked dtypes and shapes: plugins do not, and
/// compute with whatever lies there.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// The arguments, device by device.
    pub(crate) args: &'a [&'a Buffer],
    /// For each parameter whether this run may consume its argument.
    pub(crate) donatable: &'a [bool],
    /// The parameters whose arguments this run must leave, although the program donates them.
    pub(crate) non_donatable: &'a [i64],
    /// The device of a portable executable; `None` runs on the devices it is bound to.
    pub(crate) portable: Option<usize>,
    /// The outputs: what they are, and where they are, device by device.
    pub(crate) outputs: &'a [Arc<ShardSpec>],
    pub(crate) output_placements: &'a [Placement],
    pub(crate) launch_id: i32,
    pub(crate) call_location: Option<&'a str>,
    /// Whether the end of the run is to be told.
    pub(crate) wants_events: bool,
}

/// What a run gives at once.
#[derive(Debug)]
pub(crate) struct Launched {
    /// The outputs, device by device.
    pub(crate) outputs: Vec<Arc<Buffer>>,
    /// One event per device, if wanted.
    pub(crate) events: Vec<Event>,
}

impl LoadedExecutable {
    /// Enqueues a run. May wait until the plugin's queue has room; may run a small program at once.
    ///
    /// Arguments that the plugin consumed are deleted afterwards.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if an argument is gone, on another device, or donated and used twice; all
    /// arguments then stay as they were. Those of the plugin.
    pub(crate) fn execute(&self, launch: &Launch<'_>) -> Result<Launched> {
        let num_args = launch.donatable.len();
        let devices: &[usize] = match &launch.portable {
            Some(device) => std::slice::from_ref(device),
            None => &self.devices,
        };
        self.check(launch, devices)?;
        let mut pins = pin_all(launch)?;

        let arguments: Vec<*mut sys::Buffer> = pins.iter().map(Pinned::raw).collect();
        let argument_lists: Vec<*const *mut sys::Buffer> = (0..devices.len())
            .map(|device| arguments[device * num_args..].as_ptr())
            .collect();
        let mut outputs = vec![std::ptr::null_mut(); devices.len() * self.num_outputs];
        let base: *mut *mut sys::Buffer = outputs.as_mut_ptr();
        let output_lists: Vec<*mut *mut sys::Buffer> = (0..devices.len())
            .map(|device| base.wrapping_add(device * self.num_outputs))
            .collect();
        let mut events = match launch.wants_events {
            true => vec![std::ptr::null_mut(); devices.len()],
            false => Vec::new(),
        };
        let call_location = launch
            .call_location
            .map(CString::new)
            .transpose()
            .map_err(|_| Status::invalid_argument("call_location contains a NUL character"))?;
        let mut options = ExecuteOptions {
            launch_id: launch.launch_id,
            non_donatable_input_indices: launch.non_donatable.as_ptr(),
            num_non_donatable_input_indices: launch.non_donatable.len(),
            call_location: call_location
                .as_ref()
                .map_or(std::ptr::null(), |text| text.as_ptr().cast()),
            // Plugins that know the field take zero for the meaning that they did not have before.
            use_major_to_minor_data_layout_for_callbacks: CBool::from(true),
            ..ExecuteOptions::NEW
        };
        let mut args = LoadedExecutableExecuteArgs {
            executable: self.raw.as_ptr(),
            options: &raw mut options,
            argument_lists: argument_lists.as_ptr(),
            num_devices: devices.len(),
            num_args,
            output_lists: output_lists.as_ptr(),
            device_complete_events: match launch.wants_events {
                true => events.as_mut_ptr(),
                false => std::ptr::null_mut(),
            },
            execute_device: match launch.portable {
                Some(device) => self.client.device_at(device)?.raw.as_ptr(),
                None => std::ptr::null_mut(),
            },
            ..LoadedExecutableExecuteArgs::NEW
        };
        // SAFETY: S3, S4 and S7 for the arguments; S6 for the buffers, which are pinned, those that
        // may be donated exclusively. The lists have the lengths that the executable expects.
        unsafe { self.client.api().call::<LoadedExecutableExecute>(&mut args) }?;
        pins.iter_mut().for_each(Pinned::note_donation);
        drop(pins);
        self.collect(launch, &outputs, events)
    }

    /// S3: the lists must have exactly the lengths that C reads and writes.
    fn check(&self, launch: &Launch<'_>, devices: &[usize]) -> Result<()> {
        let (num_devices, num_args) = (devices.len(), launch.donatable.len());
        if num_devices == 0 {
            return Err(Status::invalid_argument(
                "No devices provided for portable executable",
            ));
        }
        if launch.portable.is_some() && !self.devices.is_empty() {
            return Err(Status::invalid_argument(
                "an executable that is bound to devices cannot run on others",
            ));
        }
        if launch.args.len() != num_devices * num_args
            || launch.outputs.len() != self.num_outputs
            || launch.output_placements.len() != num_devices * self.num_outputs
        {
            return Err(Status::internal(format!(
                "a run on {num_devices} devices with {num_args} arguments and {} outputs was given \
                 {} arguments, {} outputs and {} places for them",
                self.num_outputs,
                launch.args.len(),
                launch.outputs.len(),
                launch.output_placements.len()
            )));
        }
        for (device, args) in devices.iter().zip(launch.args.chunks(num_args.max(1))) {
            for (index, buffer) in args.iter().enumerate() {
                if buffer.placement().device != *device {
                    return Err(Status::invalid_argument(format!(
                        "Buffer passed to Execute() as argument {index} is on device {}, but the \
                         executable runs on device {}",
                        self.client.device_at(buffer.placement().device)?.id,
                        self.client.device_at(*device)?.id
                    )));
                }
            }
        }
        if launch.donatable.contains(&true) {
            for (device, args) in launch.args.chunks(num_args).enumerate() {
                check_clashes(args, launch.donatable, device)?;
            }
        }
        Ok(())
    }

    fn collect(
        &self,
        launch: &Launch<'_>,
        outputs: &[*mut sys::Buffer],
        events: Vec<*mut sys::Event>,
    ) -> Result<Launched> {
        let api = self.client.api();
        // First everything gets an owner, then what is missing is an error.
        let mut all_there = true;
        let mut launched = Launched {
            outputs: Vec::with_capacity(outputs.len()),
            events: Vec::with_capacity(events.len()),
        };
        for event in events {
            match Event::from_raw(api, event) {
                Some(event) => launched.events.push(event),
                None => all_there = false,
            }
        }
        let specs = launch.outputs.iter().cycle();
        for ((raw, spec), placement) in outputs.iter().zip(specs).zip(launch.output_placements) {
            match Handle::new_opt(*raw) {
                Some(raw) => launched.outputs.push(Arc::new(Buffer::new(
                    &self.client,
                    raw,
                    Arc::clone(spec),
                    *placement,
                ))),
                None => all_there = false,
            }
        }
        match all_there {
            true => Ok(launched),
            false => Err(missing(LoadedExecutableExecute::NAME, "output or event")),
        }
    }
}

/// Pins all arguments, those that may be donated exclusively.
///
/// Nothing is held while this waits, so two runs cannot wait for each other.
fn pin_all<'a>(launch: &Launch<'a>) -> Result<Vec<Pinned<'a>>> {
    let num_args = launch.donatable.len();
    'again: loop {
        let mut pins = Vec::with_capacity(launch.args.len());
        for (position, buffer) in launch.args.iter().enumerate() {
            let index = position % num_args;
            let how = if launch.donatable[index] {
                Use::Exclusive
            } else {
                Use::Shared
            };
            match buffer.try_pin(how) {
                Ok(pinned) => pins.push(pinned),
                Err(Refused::Dead) => {
                    return Err(Status::invalid_argument(messages::gone_argument(
                        index,
                        position / num_args,
                    )));
                }
                Err(Refused::Busy) => {
                    drop(pins);
                    buffer.wait_while_busy();
                    continue 'again;
                }
            }
        }
        return Ok(pins);
    }
}

/// Refuses a buffer that one device's arguments donate and name again.
fn check_clashes(args: &[&Buffer], donatable: &[bool], device: usize) -> Result<()> {
    let mut sorted: Vec<usize> = args.iter().map(|buffer| buffer.address()).collect();
    sorted.sort_unstable();
    if sorted.windows(2).all(|pair| pair[0] != pair[1]) {
        return Ok(());
    }
    let mut uses: HashMap<usize, BufferUse> = HashMap::new();
    for (argument, (buffer, donated)) in args.iter().zip(donatable).enumerate() {
        let again = BufferUse {
            argument,
            donated: *donated,
        };
        let first = *uses.entry(buffer.address()).or_insert(again);
        let clash = (first != again).then(|| messages::donation_clash(first, again, device));
        if let Some(text) = clash.flatten() {
            return Err(Status::invalid_argument(text));
        }
    }
    Ok(())
}
