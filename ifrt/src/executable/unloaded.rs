//! [`Executable`]: a compiled program that is not bound to devices.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use super::{CompiledMemoryStats, HloModule};
use crate::attribute_map::AttributeMap;
use crate::layout::Layout;
use crate::status::{Result, Status};
use crate::xla::HloSharding;

/// A shared [`Executable`].
pub type ExecutableRef = Arc<dyn Executable>;

/// A compiled program that is not bound to devices and cannot run.
///
/// Its serialized form may be loaded where devices are. All methods answer from what the compiler
/// left; what a runtime does not know is UNIMPLEMENTED.
///
/// # Mirrors
/// `xla/python/ifrt/executable.h`, `Executable`.
pub trait Executable: Any + Send + Sync + Debug {
    /// The name of the program.
    fn name(&self) -> &str;

    /// The number of devices that a run would take.
    fn num_devices(&self) -> usize;

    /// A name for the compiled program that is equal for equal programs; `None` if there is none.
    ///
    /// # Errors
    /// Those of the runtime.
    fn fingerprint(&self) -> Result<Option<Bytes>> {
        Ok(None)
    }

    /// The executable as bytes, for [`crate::compiler::Compiler::deserialize_loaded_executable`].
    ///
    /// # Errors
    /// UNIMPLEMENTED unless the runtime offers it.
    fn serialize(&self) -> Result<Bytes> {
        Err(unimplemented("serialized form"))
    }

    /// The size of the machine code in bytes; 0 if the runtime does not know.
    fn size_of_generated_code_bytes(&self) -> i64 {
        0
    }

    /// The memory that the program needs.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not know.
    fn compiled_memory_stats(&self) -> Result<CompiledMemoryStats> {
        Err(unimplemented("memory"))
    }

    /// The shardings of the parameters; `None` if the program has no such information.
    fn parameter_shardings(&self) -> Option<Vec<HloSharding>> {
        None
    }

    /// The shardings of the outputs; `None` if the program has no such information.
    fn output_shardings(&self) -> Option<Vec<HloSharding>> {
        None
    }

    /// The layouts of the parameters.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not know them.
    fn parameter_layouts(&self) -> Result<Vec<Layout>> {
        Err(unimplemented("parameter layouts"))
    }

    /// The layouts of the outputs.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not know them.
    fn output_layouts(&self) -> Result<Vec<Layout>> {
        Err(unimplemented("output layouts"))
    }

    /// The optimized modules, one per partition.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not keep them.
    fn hlo_modules(&self) -> Result<Vec<HloModule>> {
        Err(unimplemented("modules"))
    }

    /// The memory kinds of the outputs, by program.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not know them.
    fn output_memory_kinds(&self) -> Result<Vec<Vec<String>>> {
        Err(unimplemented("output memory kinds"))
    }

    /// What the compiler thinks a run costs.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not know.
    fn cost_analysis(&self) -> Result<AttributeMap> {
        Err(unimplemented("cost"))
    }
}

fn unimplemented(what: &str) -> Status {
    Status::unimplemented(format!(
        "this runtime does not tell the {what} of executables"
    ))
}
