//! [`CustomCallProgram`]: a call of something that the runtime knows by name.
//!
//! # Mirrors
//! `xla/python/ifrt/custom_call_program.h`.

use bytes::Bytes;

use crate::array_spec::ArraySpec;
use crate::device_list::DeviceList;
use crate::status::{Result, Status};

/// A call of something that the runtime knows by name, with the specs of all arguments and results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomCallProgram {
    /// The kind of callee.
    pub program_type: String,
    /// A name for people.
    pub name: String,
    /// The callee in a form that only the runtime understands.
    pub serialized_program_text: Bytes,
    /// The devices that take part.
    pub devices: DeviceList,
    /// What the arguments must be.
    pub input_specs: Vec<ArraySpec>,
    /// What the results will be.
    pub output_specs: Vec<ArraySpec>,
}

impl CustomCallProgram {
    /// Checks that arguments and results live on the devices of the program only.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming the first spec and device that do not fit.
    pub fn validate(&self) -> Result<()> {
        let own: std::collections::HashSet<_> = self.devices.ids().collect();
        for (what, specs) in [("input", &self.input_specs), ("output", &self.output_specs)] {
            for (number, spec) in specs.iter().enumerate() {
                if let Some(id) = spec.sharding.devices().ids().find(|id| !own.contains(id)) {
                    return Err(Status::invalid_argument(format!(
                        "{what} #{number} of the custom call program {:?} is on device {id}, which \
                         is none of the devices {} of the program",
                        self.name, self.devices
                    )));
                }
            }
        }
        Ok(())
    }
}

/// How to compile a [`CustomCallProgram`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomCallCompileOptions {
    /// How many outputs go into each bundle of an execution with bundles.
    pub outputs_bundle_slice_sizes: Option<Vec<usize>>,
}
