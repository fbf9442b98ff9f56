//! [`Backend`]: what the suite has to know of a runtime.

use std::sync::Arc;

use super::program::ProgramKind;
use crate::client::Client;
use crate::device_list::DeviceList;
use crate::fake::fault::FaultPlan;
use crate::program::{CompileOptions, Program};
use crate::status::Result;

/// Cases by name, and why: a pattern of `GROUP::ID_WORDS`, where `*` stands for any text.
pub type Listed<'a> = (&'a str, &'a str);

/// What a runtime can do, as far as the contract leaves it free.
///
/// A capability that is missing skips the cases that need it. One that is claimed makes
/// UNIMPLEMENTED a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each is an optional part of the contract by its name"
)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is independent of the others"
)]
pub struct Caps {
    pub strings: bool,
    pub tokens: bool,
    pub four_bit_integers: bool,
    pub custom_layouts: bool,
    /// Layouts other than descending really change how data lies on the device.
    pub physical_layouts: bool,
    /// Reads into strides that reorder the dimensions.
    pub read_strides: bool,
    pub error_arrays: bool,
    pub remap: bool,
    pub bitcast: bool,
    pub reshard: bool,
    pub hash: bool,
    pub programs: bool,
    pub serialized_executables: bool,
    pub portable_executables: bool,
    pub hlo_modules: bool,
    pub cost_analysis: bool,
}

impl Caps {
    /// Everything.
    pub const ALL: Self = Self {
        strings: true,
        tokens: true,
        four_bit_integers: true,
        custom_layouts: true,
        physical_layouts: true,
        read_strides: true,
        error_arrays: true,
        remap: true,
        bitcast: true,
        reshard: true,
        hash: true,
        programs: true,
        serialized_executables: true,
        portable_executables: true,
        hlo_modules: true,
        cost_analysis: true,
    };
}

/// A runtime under test.
pub trait Backend: Send + Sync + 'static {
    /// The first part of the names of its cases.
    fn name(&self) -> &str;

    /// A new client. Most cases need two devices, some need eight.
    ///
    /// # Errors
    /// Those of the runtime; the case fails with them.
    fn client(&self) -> Result<Arc<dyn Client>>;

    /// A new client that has devices which this process cannot reach, besides two that it can;
    /// `None` if the runtime cannot be had like that.
    ///
    /// # Errors
    /// Those of the runtime; the case fails with them.
    fn multi_process_client(&self) -> Result<Option<Arc<dyn Client>>> {
        Ok(None)
    }

    /// What the runtime can do.
    fn caps(&self) -> Caps {
        Caps::ALL
    }

    /// Cases that the runtime will never pass.
    fn unsupported(&self) -> &[Listed<'_>] {
        &[]
    }

    /// Cases that fail today and should not.
    fn expected_failures(&self) -> &[Listed<'_>] {
        &[]
    }

    /// A program for these devices in the language of the runtime, and how to compile it; `None` if
    /// there is none. [`super::program::stablehlo`] has them for runtimes of XLA.
    fn program(
        &self,
        kind: ProgramKind,
        devices: &DeviceList,
    ) -> Option<(Program, CompileOptions)> {
        let _: (ProgramKind, &DeviceList) = (kind, devices);
        None
    }

    /// What goes wrong in the runtime of this client, if the suite may decide that. Only runtimes
    /// on top of the fake have it; the cases about slow and failing runtimes need it.
    fn faults(&self, client: &Arc<dyn Client>) -> Option<FaultPlan> {
        let _: &Arc<dyn Client> = client;
        None
    }
}
