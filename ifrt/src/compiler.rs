//! [`Compiler`]: from programs to executables.
//!
//! # Mirrors
//! `xla/python/ifrt/compiler.h`.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use crate::completion::Completion;
use crate::device_list::DeviceList;
use crate::executable::{ExecutableRef, ExecutableVersion, LoadedExecutableRef};
use crate::host_callback::LoadedHostCallbackRef;
use crate::program::{CompileOptions, Program};
use crate::status::{Result, Status};
use crate::topology::TopologyRef;

/// A shared [`Compiler`].
pub type CompilerRef = Arc<dyn Compiler>;

/// How a serialized executable is loaded.
#[derive(Clone, Debug, Default)]
pub struct DeserializeOptions {
    /// The devices to run on; `None` takes those that it was compiled for.
    pub devices: Option<DeviceList>,
    /// The options that it was compiled with; `None` takes those that it carries.
    pub compile_options: Option<CompileOptions>,
    /// The code of the host that the program calls, by the numbers that it calls it by.
    pub host_callbacks: Vec<LoadedHostCallbackRef>,
}

/// Compiles programs for the devices of a client.
///
/// # Mirrors
/// `xla/python/ifrt/compiler.h`, `Compiler`.
pub trait Compiler: Any + Send + Sync + Debug {
    /// Compiles a program and loads it onto its devices.
    ///
    /// # Blocking
    /// Never; the completion brings the executable. Several compilations may run at once.
    ///
    /// # Errors
    /// Through the completion: INVALID_ARGUMENT for a module or options that cannot be read;
    /// UNIMPLEMENTED for a kind of program that the runtime does not take; those of the compiler.
    fn compile_and_load(
        &self,
        program: Program,
        options: CompileOptions,
    ) -> Completion<LoadedExecutableRef>;

    /// Compiles a program and loads it with the code of the host that it calls, in the order of the
    /// numbers that it calls it by.
    ///
    /// # Blocking
    /// Never; the completion brings the executable.
    ///
    /// # Errors
    /// Through the completion: UNIMPLEMENTED if there are callbacks and the runtime makes none;
    /// otherwise as [`Compiler::compile_and_load`].
    ///
    /// # Mirrors
    /// `Compiler::CompileAndLoad`, whose options carry the callbacks.
    fn compile_and_load_with_host_callbacks(
        &self,
        program: Program,
        options: CompileOptions,
        host_callbacks: Vec<LoadedHostCallbackRef>,
    ) -> Completion<LoadedExecutableRef> {
        if host_callbacks.is_empty() {
            return self.compile_and_load(program, options);
        }
        Completion::ready(Err(no_host_callbacks()))
    }

    /// Compiles a program for devices that need not be there. The result cannot run.
    ///
    /// # Blocking
    /// Never; the completion brings the executable.
    ///
    /// # Errors
    /// Through the completion: UNIMPLEMENTED unless the runtime offers it; otherwise as
    /// [`Compiler::compile_and_load`].
    ///
    /// # Mirrors
    /// `Compiler::Compile`.
    fn compile(
        &self,
        program: Program,
        topology: &TopologyRef,
        options: CompileOptions,
    ) -> Completion<ExecutableRef> {
        drop((program, options));
        Completion::ready(Err(Status::unimplemented(format!(
            "this runtime does not compile ahead of time for {}",
            topology.platform_name()
        ))))
    }

    /// Checks that an executable of this version could be loaded onto `devices`.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// INVALID_ARGUMENT or FAILED_PRECONDITION if it could not; UNIMPLEMENTED if the runtime cannot
    /// tell.
    ///
    /// # Mirrors
    /// `Compiler::IsExecutableVersionCompatible`.
    fn is_executable_version_compatible(
        &self,
        version: &ExecutableVersion,
        devices: &DeviceList,
    ) -> Result<()> {
        Err(Status::unimplemented(format!(
            "this runtime cannot tell whether executables of {version:?} run on {devices:?}"
        )))
    }

    /// Loads what [`crate::executable::LoadedExecutable::serialize`] gave.
    ///
    /// # Blocking
    /// Never; the completion brings the executable.
    ///
    /// # Errors
    /// Through the completion: UNIMPLEMENTED unless the runtime offers it.
    fn deserialize_loaded_executable(
        &self,
        serialized: Bytes,
        devices: Option<DeviceList>,
    ) -> Completion<LoadedExecutableRef> {
        drop((serialized, devices));
        Completion::ready(Err(Status::unimplemented(
            "this runtime does not load serialized executables",
        )))
    }

    /// Loads a serialized executable with options.
    ///
    /// # Blocking
    /// Never; the completion brings the executable.
    ///
    /// # Errors
    /// Through the completion: UNIMPLEMENTED if something is asked for that the runtime does not
    /// offer; otherwise as [`Compiler::deserialize_loaded_executable`].
    ///
    /// # Mirrors
    /// `Compiler::DeserializeLoadedExecutable`.
    ///
    /// # Conformance
    /// EXE-16.
    fn deserialize_loaded_executable_with(
        &self,
        serialized: Bytes,
        options: DeserializeOptions,
    ) -> Completion<LoadedExecutableRef> {
        let DeserializeOptions {
            devices,
            compile_options,
            host_callbacks,
        } = options;
        if !host_callbacks.is_empty() {
            return Completion::ready(Err(no_host_callbacks()));
        }
        if compile_options.is_some() {
            return Completion::ready(Err(Status::unimplemented(
                "this runtime does not change the compile options of a serialized executable",
            )));
        }
        self.deserialize_loaded_executable(serialized, devices)
    }
}

fn no_host_callbacks() -> Status {
    Status::unimplemented("this runtime does not load programs that call the host")
}
