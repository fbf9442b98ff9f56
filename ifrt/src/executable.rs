//! [`LoadedExecutable`]: a compiled program, bound to devices.
//!
//! # Mirrors
//! `xla/python/ifrt/executable.h`.

mod hlo_module;
mod mpmd;
mod unloaded;
mod version;

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

pub use hlo_module::HloModule;
pub use mpmd::MpmdLoadedExecutable;
pub use unloaded::{Executable, ExecutableRef};
pub use version::{ExecutableVersion, XlaExecutableVersion};

use crate::array::ArrayRef;
use crate::attribute_map::AttributeMap;
use crate::bundle::{BundleRef, execute_bundle};
use crate::client::Client;
use crate::completion::Completion;
use crate::device::DeviceRef;
use crate::device_list::DeviceList;
use crate::layout::Layout;
use crate::status::{Result, Status};
use crate::user_context::UserContextRef;
use crate::xla::{HloSharding, hlo_text};

/// A shared [`LoadedExecutable`].
pub type LoadedExecutableRef = Arc<dyn LoadedExecutable>;

/// How to run an executable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecuteOptions {
    /// Distinguishes runs of one program, where devices must agree on which run is which.
    pub launch_id: i32,
    /// Donatable inputs that this run must leave alive.
    pub non_donatable_input_indices: BTreeSet<usize>,
    /// Whether [`ExecuteResult::status`] is wanted.
    pub fill_status: bool,
    /// Runs with the same number keep their order.
    pub execution_stream_id: i64,
    /// Further options by name, for example `call_location`.
    pub custom_options: Option<AttributeMap>,
}

/// What a run gives at once: arrays that become ready when it is done.
#[derive(Clone, Debug)]
pub struct ExecuteResult {
    /// Ready when all devices are done; there iff [`ExecuteOptions::fill_status`].
    pub status: Option<Completion>,
    /// The outputs in order.
    pub outputs: Vec<ArrayRef>,
    /// For [`Client::cancel_execution`]; `None` if the runtime cannot stop it.
    pub cancellation_handle: Option<CancellationHandle>,
}

/// What a run on bundles gives at once.
#[derive(Clone, Debug)]
pub struct ExecuteBundleResult {
    /// Ready when all devices are done; there iff [`ExecuteOptions::fill_status`].
    pub status: Option<Completion>,
    /// The outputs in order.
    pub outputs: Vec<BundleRef>,
    /// For [`Client::cancel_execution`]; `None` if the runtime cannot stop it.
    pub cancellation_handle: Option<CancellationHandle>,
}

/// What [`crate::client::Client::cancel_execution`] knows an execution by. Only its runtime can
/// look inside.
#[derive(Clone)]
pub struct CancellationHandle(Arc<dyn Any + Send + Sync>);

impl CancellationHandle {
    /// A handle with what the runtime needs.
    pub fn new(inner: Arc<dyn Any + Send + Sync>) -> Self {
        Self(inner)
    }

    /// What the runtime put in, if it is of this type.
    pub fn downcast<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.0).downcast().ok()
    }
}

impl Debug for CancellationHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CancellationHandle")
    }
}

/// How the resources of an executable are given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Keeps the order with runs of the same [`ExecuteOptions::execution_stream_id`].
    pub deletion_stream_id: i64,
}

/// The memory that a compiled program needs, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each name is the whole description")]
pub struct CompiledMemoryStats {
    pub generated_code_size_bytes: i64,
    pub argument_size_bytes: i64,
    pub output_size_bytes: i64,
    pub alias_size_bytes: i64,
    pub temp_size_bytes: i64,
    pub host_generated_code_size_bytes: i64,
    pub host_argument_size_bytes: i64,
    pub host_output_size_bytes: i64,
    pub host_alias_size_bytes: i64,
    pub host_temp_size_bytes: i64,
    pub peak_memory_bytes: i64,
    pub total_size_bytes: i64,
    pub total_allocation_bytes: i64,
    pub indefinite_allocations: i64,
    pub peak_unpadded_heap_bytes: i64,
}

/// A compiled program, bound to devices.
///
/// Executions that are under way keep it alive. Questions about the program are answered from what
/// the compiler left, so they may take a while but ask no device.
pub trait LoadedExecutable: Any + Send + Sync + Debug {
    /// The client that owns the executable.
    fn client(&self) -> Arc<dyn Client>;

    /// The name of the program.
    fn name(&self) -> &str;

    /// The place in the user's program that compiled it.
    fn user_context(&self) -> Option<UserContextRef> {
        None
    }

    /// The number of devices that a run takes.
    fn num_devices(&self) -> usize;

    /// The devices it is bound to, in the order of its device assignment; `None` if it is portable.
    fn devices(&self) -> Option<&DeviceList>;

    /// Those of its devices that this process can reach.
    fn addressable_devices(&self) -> &[DeviceRef];

    /// A name for the compiled program that is equal for equal programs; `None` if there is none.
    ///
    /// # Errors
    /// Those of the runtime.
    fn fingerprint(&self) -> Result<Option<Bytes>> {
        Ok(None)
    }

    /// The version of what was compiled, for
    /// [`crate::compiler::Compiler::is_executable_version_compatible`].
    ///
    /// # Errors
    /// UNIMPLEMENTED unless the runtime offers it.
    ///
    /// # Mirrors
    /// `LoadedExecutable::executable_version`.
    fn executable_version(&self) -> Result<ExecutableVersion> {
        Err(Status::unimplemented(
            "this runtime does not tell the version of executables",
        ))
    }

    /// The executable as bytes, for [`crate::compiler::Compiler::deserialize_loaded_executable`].
    ///
    /// # Errors
    /// UNIMPLEMENTED unless the runtime offers it.
    fn serialize(&self) -> Result<Bytes> {
        Err(Status::unimplemented(
            "this runtime does not serialize executables",
        ))
    }

    /// The shardings of the parameters; `None` if the program has no such information.
    fn parameter_shardings(&self) -> Option<Vec<HloSharding>>;

    /// The shardings of the outputs; `None` if the program has no such information.
    fn output_shardings(&self) -> Option<Vec<HloSharding>>;

    /// The layouts of the parameters.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not know them.
    fn parameter_layouts(&self) -> Result<Vec<Layout>>;

    /// The layouts of the outputs.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not know them.
    fn output_layouts(&self) -> Result<Vec<Layout>>;

    /// The optimized modules, one per partition.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not keep them.
    ///
    /// # Mirrors
    /// `LoadedExecutable::GetHloModules`.
    ///
    /// # Conformance
    /// EXE-02.
    fn hlo_modules(&self) -> Result<Vec<HloModule>> {
        Err(Status::unimplemented(
            "this runtime does not keep the modules of executables",
        ))
    }

    /// The memory kinds of the outputs, by program.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not know them.
    fn output_memory_kinds(&self) -> Result<Vec<Vec<String>>>;

    /// The inputs that a run consumes unless its options forbid it, ascending.
    ///
    /// # Errors
    /// Those of the runtime.
    fn donatable_input_indices(&self) -> Result<Vec<usize>>;

    /// The memory that the program needs.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not know.
    fn compiled_memory_stats(&self) -> Result<CompiledMemoryStats> {
        Err(Status::unimplemented(
            "this runtime does not tell the memory that a program needs",
        ))
    }

    /// The size of the machine code in bytes; 0 if the runtime does not know.
    fn size_of_generated_code_bytes(&self) -> i64 {
        0
    }

    /// What the compiler thinks a run costs.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not know.
    fn cost_analysis(&self) -> Result<AttributeMap> {
        Err(Status::unimplemented(
            "this runtime does not analyze the cost of programs",
        ))
    }

    /// The compiled program as text for people: by default the optimized modules, printed as XLA
    /// prints them ([`crate::xla::hlo_text`]).
    ///
    /// # Errors
    /// UNIMPLEMENTED if the runtime does not give the modules.
    fn human_readable_program_text(&self) -> Result<String> {
        let modules = self.hlo_modules()?;
        let texts = modules
            .iter()
            .map(|module| hlo_text(module.serialized().clone()));
        Ok(texts.collect::<Result<Vec<_>>>()?.join("\n"))
    }

    /// Enqueues a run.
    ///
    /// # Shapes
    /// `args` has one array per parameter, spread over the devices of the executable as
    /// [`LoadedExecutable::parameter_shardings`] says. `devices` is only for portable executables.
    ///
    /// # Blocking
    /// Only enqueues. A runtime with a bounded queue may block until there is room.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if an argument does not fit, was deleted or donated, or is donated twice;
    /// all arguments then stay as they were. Failures of the run itself arrive through the outputs.
    fn execute(
        &self,
        args: &[ArrayRef],
        options: &ExecuteOptions,
        devices: Option<&DeviceList>,
    ) -> Result<ExecuteResult>;

    /// How many outputs each bundle of [`LoadedExecutable::execute_bundle`] gets; `None` is one
    /// bundle of all.
    ///
    /// # Blocking
    /// Never.
    fn outputs_bundle_slice_sizes(&self) -> Option<&[usize]> {
        None
    }

    /// Enqueues a run on the values of bundles, one bundle after the other.
    ///
    /// # Shapes
    /// The values are as many as the parameters. The outputs come in bundles as
    /// [`LoadedExecutable::outputs_bundle_slice_sizes`] says.
    ///
    /// # Blocking
    /// As [`LoadedExecutable::execute`].
    ///
    /// # Errors
    /// FAILED_PRECONDITION if a bundle is gone; INVALID_ARGUMENT if a value is no array; those of
    /// [`LoadedExecutable::execute`].
    ///
    /// # Mirrors
    /// `LoadedExecutable::ExecuteBundle`.
    ///
    /// # Conformance
    /// EXE-07, EXE-08.
    fn execute_bundle(
        &self,
        args: &[BundleRef],
        options: &ExecuteOptions,
    ) -> Result<ExecuteBundleResult> {
        execute_bundle(self, args, self.outputs_bundle_slice_sizes(), options)
    }

    /// Says how the resources are given back when the last reference is dropped. A runtime with one
    /// order for everything has nothing to remember.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Mirrors
    /// `LoadedExecutable::SetDeleteOptions`.
    fn set_delete_options(&self, options: DeleteOptions) {
        let _: DeleteOptions = options;
    }

    /// What else is known of an executable that is made of several programs; `None` if it is one.
    ///
    /// # Blocking
    /// Never.
    fn mpmd(&self) -> Option<&dyn MpmdLoadedExecutable> {
        None
    }
}
