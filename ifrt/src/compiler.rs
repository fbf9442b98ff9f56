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
use crate::executable::LoadedExecutableRef;
use crate::program::{CompileOptions, Program};
use crate::status::Status;

/// A shared [`Compiler`].
pub type CompilerRef = Arc<dyn Compiler>;

/// Compiles programs for the devices of a client.
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
}
