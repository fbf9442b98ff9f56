//! The arguments of a call: what is checked, and what is moved, before the runtime hears of it.

use ifrt::{Result, Status};

use super::LoadedExecutable;
use crate::array::Array;
use crate::deletion::{BufferSet, Mode, Uses};
use crate::device_put::{Source, put_array};
use crate::messages;
use crate::sharding::Sharding;
use crate::transfer_guard::Intent;

/// An argument of a call.
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::exhaustive_enums,
    reason = "there is no third way to pass an array"
)]
pub enum Arg<'a> {
    /// The call reads it.
    Reference(&'a Array),
    /// The call may consume it.
    Donate(&'a Array),
}

impl<'a> Arg<'a> {
    /// The array.
    pub const fn array(&self) -> &'a Array {
        match self {
            Self::Reference(array) | Self::Donate(array) => array,
        }
    }

    /// The buffers that the call takes: those of the argument, or of what it was moved to. A moved
    /// copy belongs to the call alone, so it is given away if the argument is donated.
    pub(super) fn on<'b>(&self, moved: Option<&'b Array>) -> (&'b BufferSet, Mode)
    where
        'a: 'b,
    {
        let mode = match self {
            Self::Reference(_) => Mode::Reference,
            Self::Donate(_) => Mode::Donate,
        };
        (moved.unwrap_or_else(|| self.array()).buffers(), mode)
    }
}

impl LoadedExecutable {
    /// Checks everything that can be known without the runtime.
    pub(super) fn check(&self, args: &[Arg<'_>]) -> Result<()> {
        if let Some(inputs) = &self.inputs
            && inputs.len() != args.len()
        {
            return Err(messages::argument_count(inputs.len(), args.len()));
        }
        for arg in args {
            arg.array().check_alive()?;
        }
        self.check_types(args)?;
        for (position, arg) in args.iter().enumerate() {
            if !arg.array().client().is_same(&self.client) {
                return Err(Status::invalid_argument(format!(
                    "argument {position} ({}) belongs to another client than the program {}",
                    arg.array().aval(),
                    self.name()
                )));
            }
            self.check_placement(position, arg.array())?;
        }
        if args.iter().all(|arg| matches!(arg, Arg::Reference(_))) {
            return Ok(());
        }
        let modes: Vec<_> = args.iter().map(|arg| arg.on(None)).collect();
        Uses::check(&modes)
    }

    fn check_types(&self, args: &[Arg<'_>]) -> Result<()> {
        let inputs = self.inputs.iter().flatten().zip(args).enumerate();
        let mismatches: Vec<_> = inputs
            .filter_map(|(position, (input, arg))| {
                let expected = input.aval.as_ref()?;
                let found = arg.array().aval();
                (expected != found).then(|| (position, expected.clone(), found.clone()))
            })
            .collect();
        if mismatches.is_empty() {
            return Ok(());
        }
        Err(messages::argument_types(&mismatches))
    }

    fn check_placement(&self, position: usize, array: &Array) -> Result<()> {
        if self.is_in_place(position, array) || !array.is_committed() {
            return Ok(());
        }
        if array.sharding().devices() != &self.devices {
            let ids = |devices: &ifrt::DeviceList| devices.ids().map(|id| id.0).collect::<Vec<_>>();
            return Err(messages::incompatible_devices(
                position,
                array.aval(),
                &ids(array.sharding().devices()),
                &ids(&self.devices),
                self.client.runtime().platform_name(),
            ));
        }
        let expected = self.in_shardings.get(position);
        Err(messages::incompatible_sharding(
            position,
            array.aval(),
            array.sharding(),
            &expected.map_or_else(|| "unknown".into(), ToString::to_string),
        ))
    }

    /// True if the program can use the array where it is.
    fn is_in_place(&self, position: usize, array: &Array) -> bool {
        if array.sharding().devices() != &self.devices {
            return false;
        }
        match self.in_shardings.get(position) {
            Some(expected) => expected.has_same_parts(array.sharding(), array.shape().rank()),
            None => true,
        }
    }

    /// For each argument the copy that the program uses instead, if it has to be elsewhere; nothing
    /// at all if no argument has to.
    pub(super) fn place(&self, args: &[Arg<'_>]) -> Result<Vec<Option<Array>>> {
        let mut numbered = args.iter().enumerate();
        if numbered.all(|(position, arg)| self.is_in_place(position, arg.array())) {
            return Ok(Vec::new());
        }
        let place = |(position, arg): (usize, &Arg<'_>)| {
            if self.is_in_place(position, arg.array()) {
                return Ok(None);
            }
            let target = match (self.in_shardings.get(position), self.devices.iter().next()) {
                (Some(sharding), _) => sharding.clone(),
                (None, Some(device)) if self.devices.len() == 1 => {
                    Sharding::single_device(device.clone())
                }
                (None, _) => {
                    return Err(Status::invalid_argument(format!(
                        "the runtime does not say how argument {position} must be spread over {:?}; \
                         put it there with device_put",
                        self.devices
                    )));
                }
            };
            put_array(arg.array(), target.into(), Source::Copy, Intent::Implicit).map(Some)
        };
        args.iter().enumerate().map(place).collect()
    }
}
