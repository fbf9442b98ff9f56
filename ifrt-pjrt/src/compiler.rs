//! [`PjrtCompiler`]: from StableHLO modules to executables on the devices of a client.
//!
//! Compiling takes from tens of milliseconds to minutes, so it happens on the client's worker
//! threads. What a plugin would answer with an abort is refused before.
//!
//! # Mirrors
//! `xla/python/pjrt_ifrt/pjrt_compiler.h`.

mod module;
mod options;

use std::sync::{Arc, Weak};

use bytes::Bytes;
use ifrt::compiler::Compiler;
use ifrt::completion::Completion;
use ifrt::device_list::DeviceList;
use ifrt::executable::LoadedExecutableRef;
use ifrt::program::{CompileOptions, Program};
use ifrt::user_context;
use ifrt::{Result, Status};

use crate::client::PjrtClient;
use crate::executable::{Hints, PjrtLoadedExecutable, serialized};
use crate::safe::executable::LoadedExecutable;

use options::Checked;
pub(crate) use options::read_assignment;

/// Compiles for the devices of a [`PjrtClient`].
#[derive(Debug)]
pub struct PjrtCompiler {
    client: Option<Arc<PjrtClient>>,
}

impl PjrtCompiler {
    pub(crate) fn new(client: Weak<PjrtClient>) -> Self {
        Self {
            client: client.upgrade(),
        }
    }

    fn client(&self) -> Result<&Arc<PjrtClient>> {
        self.client
            .as_ref()
            .ok_or_else(|| Status::internal("the client of the compiler is gone"))
    }

    fn start_compile(
        &self,
        program: Program,
        options: CompileOptions,
    ) -> Result<Completion<LoadedExecutableRef>> {
        let client = Arc::clone(self.client()?);
        let Program::Hlo(program) = program else {
            return Err(Status::unimplemented(
                "this runtime compiles StableHLO modules (HloProgram) only",
            ));
        };
        let CompileOptions::Xla(options) = options else {
            return Err(Status::unimplemented(
                "this runtime compiles with XlaCompileOptions only",
            ));
        };
        module::check(&program.module)?;
        let outputs_bundle_slice_sizes = options.outputs_bundle_slice_sizes;
        let options = Checked::new(&client, &options.compile_options, options.devices)?;
        Ok(in_background(&client, move |client| {
            let safe = LoadedExecutable::compile(client.safe(), &program.module, &options.bytes)?;
            let Checked {
                devices,
                is_portable,
                ..
            } = options;
            let hints = Hints {
                devices,
                is_portable,
                outputs_bundle_slice_sizes,
                ..Hints::default()
            };
            PjrtLoadedExecutable::load(client, safe, hints)
        }))
    }
}

impl Compiler for PjrtCompiler {
    fn compile_and_load(
        &self,
        program: Program,
        options: CompileOptions,
    ) -> Completion<LoadedExecutableRef> {
        self.start_compile(program, options)
            .unwrap_or_else(|status| Completion::ready(Err(status)))
    }

    fn deserialize_loaded_executable(
        &self,
        serialized: Bytes,
        devices: Option<DeviceList>,
    ) -> Completion<LoadedExecutableRef> {
        let client = match self.client() {
            Ok(client) => client,
            Err(status) => return Completion::ready(Err(status)),
        };
        in_background(client, move |client| {
            serialized::load(client, &serialized, devices)
        })
    }
}

/// Makes an executable on a worker thread, as if it were made where the user is now.
fn in_background(
    client: &Arc<PjrtClient>,
    make: impl FnOnce(&Arc<PjrtClient>) -> Result<LoadedExecutableRef> + Send + 'static,
) -> Completion<LoadedExecutableRef> {
    let (promise, completion) = Completion::pair();
    let (own, context) = (Arc::clone(client), user_context::current());
    client.workers().submit(move || {
        let made = {
            let _scope = user_context::scope(context);
            make(&own)
        };
        promise.set(made);
    });
    completion
}
