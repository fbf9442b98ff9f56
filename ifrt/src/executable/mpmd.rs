//! [`MpmdLoadedExecutable`]: an executable that is made of several programs.

use std::collections::BTreeMap;

use super::{CompiledMemoryStats, HloModule, LoadedExecutable};
use crate::attribute_map::AttributeMap;
use crate::device_list::DeviceList;
use crate::status::{Result, Status};

/// An executable that runs several programs on parts of its devices. The answers stand under the
/// names of the programs.
///
/// # Mirrors
/// `xla/python/ifrt/mpmd_executable.h`.
pub trait MpmdLoadedExecutable: LoadedExecutable {
    /// The devices of each program that this process can reach.
    ///
    /// # Errors
    /// UNIMPLEMENTED unless the runtime offers it.
    fn mpmd_addressable_devices(&self) -> Result<BTreeMap<String, DeviceList>> {
        Err(unimplemented("devices"))
    }

    /// The memory that each program needs.
    ///
    /// # Errors
    /// UNIMPLEMENTED unless the runtime offers it.
    fn mpmd_compiled_memory_stats(&self) -> Result<BTreeMap<String, CompiledMemoryStats>> {
        Err(unimplemented("memory"))
    }

    /// The optimized modules of each program, one per partition.
    ///
    /// # Errors
    /// UNIMPLEMENTED unless the runtime offers it.
    fn mpmd_hlo_modules(&self) -> Result<BTreeMap<String, Vec<HloModule>>> {
        Err(unimplemented("modules"))
    }

    /// What the compiler thinks a run of each program costs.
    ///
    /// # Errors
    /// UNIMPLEMENTED unless the runtime offers it.
    fn mpmd_cost_analysis(&self) -> Result<BTreeMap<String, AttributeMap>> {
        Err(unimplemented("cost"))
    }
}

fn unimplemented(what: &str) -> Status {
    Status::unimplemented(format!(
        "this runtime does not tell the {what} of the programs of an executable"
    ))
}
