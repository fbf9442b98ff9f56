//! [`LoadedExecutable`]: a compiled program, called with JAX's arrays.
//!
//! A call first checks everything that it can know (dead arguments, types, devices, shardings, a
//! buffer donated twice), then moves what may be moved, then takes all buffers at once and only
//! then talks to the runtime. An error before that point leaves every argument as it was.
//!
//! What is not here: tracing and caches of compiled programs.
//!
//! # Mirrors
//! `jaxlib/pjit.cc`, `PrepareIfrtInputs`; `jax/_src/interpreters/pxla.py`, `ExecuteReplicated` and
//! the checks of compiled calls; `jax/_src/compiler.py`.

mod args;
mod outputs;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use bytes::Bytes;
use ifrt::xla::HloSharding;
use ifrt::{
    Code, CompileOptions, DeviceList, ExecuteOptions, HloProgram, LoadedExecutableRef, MemoryKind,
    Program, Result, Status, XlaCompileOptions,
};

use crate::array::Array;
use crate::aval::Aval;
use crate::client::Client;
use crate::compile_options::{self, CompilerOptions};
use crate::deletion::{DeadArgument, Uses};
use crate::module_text::{self, Signature};
use crate::sharding::{GspmdSharding, Sharding};

pub use args::Arg;

/// What to compile, and what is known about it.
#[derive(Clone, Debug, Default)]
#[allow(
    clippy::exhaustive_structs,
    reason = "options with a default; jax-api has the builder"
)]
pub struct CompileRequest {
    /// A StableHLO module: MLIR text or a portable artifact.
    pub module: Bytes,
    /// The devices to run on, one partition each. `None` takes as many as the module says, from the
    /// first.
    pub devices: Option<DeviceList>,
    /// The types of the arguments; `None` checks nothing. For a module in text form they are read
    /// from it.
    pub in_avals: Option<Vec<Option<Aval>>>,
    /// What the shardings of the arguments must be; only compared.
    pub in_shardings: Option<Vec<Option<Sharding>>>,
    /// What the shardings of the results must be; they are then shown in this form.
    pub out_shardings: Option<Vec<Option<Sharding>>>,
    /// Arguments that a call may consume. A module in bytecode must say so itself.
    pub donate_argnums: Vec<usize>,
    /// Options for the compiler.
    pub options: CompilerOptions,
}

/// A compiled program, called with JAX's arrays.
pub struct LoadedExecutable {
    client: Client,
    executable: LoadedExecutableRef,
    devices: DeviceList,
    /// What the arguments must be, as far as it is known.
    inputs: Option<Vec<Input>>,
    in_shardings: Vec<Sharding>,
    out_shardings: Option<Vec<Sharding>>,
    /// Found at the first call where the compiler does not say.
    found_out_shardings: OnceLock<Vec<Sharding>>,
    /// `None` if the runtime does not say, so that it has to be told of every argument.
    donatable: Option<BTreeSet<usize>>,
    is_explicit: bool,
    launches: AtomicI32,
}

#[derive(Debug)]
struct Input {
    aval: Option<Aval>,
}

impl LoadedExecutable {
    /// Compiles a program and loads it onto its devices.
    ///
    /// # Blocking
    /// Until it is compiled.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a module that the runtime cannot read, for too few devices, and for
    /// shardings or donations that do not fit the module; those of the compiler.
    pub fn compile(client: &Client, request: CompileRequest) -> Result<Self> {
        let text = module_text::text(&request.module);
        let signature = text.and_then(Signature::parse);
        let is_explicit = request.devices.is_some()
            || request.in_shardings.is_some()
            || request.out_shardings.is_some();
        let devices = match &request.devices {
            Some(devices) => devices.clone(),
            None => default_devices(client, text.and_then(module_text::num_partitions))?,
        };
        let module = mark_donated(&request, text, signature.as_ref())?;
        let options = XlaCompileOptions {
            compile_options: compile_options::serialize(&devices, &request.options)?,
            devices: Some(devices.clone()),
            outputs_bundle_slice_sizes: None,
        };
        let executable = client
            .runtime()
            .default_compiler()
            .compile_and_load(
                Program::Hlo(HloProgram { module }),
                CompileOptions::Xla(options),
            )
            .wait()?;
        let avals = request.in_avals.or_else(|| {
            let parameters = signature?.parameters.into_iter();
            Some(parameters.map(|parameter| parameter.aval).collect())
        });
        let loaded = Self::load(client, executable, devices, avals, is_explicit)?;
        loaded.check_in_shardings(request.in_shardings.as_deref())?;
        loaded.with_out_shardings(request.out_shardings)
    }

    fn load(
        client: &Client,
        executable: LoadedExecutableRef,
        devices: DeviceList,
        avals: Option<Vec<Option<Aval>>>,
        is_explicit: bool,
    ) -> Result<Self> {
        let parameters = executable.parameter_shardings();
        if let (Some(avals), Some(parameters)) = (&avals, &parameters)
            && avals.len() != parameters.len()
        {
            return Err(Status::invalid_argument(format!(
                "the program has {} parameters, but the types of {} were given",
                parameters.len(),
                avals.len()
            )));
        }
        let count = parameters.as_ref().map(Vec::len);
        let in_shardings = gspmd_all(parameters.unwrap_or_default(), &devices)?;
        let outputs = executable.output_shardings();
        let out_shardings = outputs
            .map(|outputs| gspmd_all(outputs, &devices))
            .transpose()?;
        let inputs = match (avals, count) {
            (Some(avals), _) => Some(avals.into_iter().map(|aval| Input { aval }).collect()),
            (None, Some(count)) => Some((0..count).map(|_| Input { aval: None }).collect()),
            (None, None) => None,
        };
        let donatable = match executable.donatable_input_indices() {
            Ok(indices) => Some(indices.into_iter().collect()),
            Err(status) if status.code() == Code::Unimplemented => None,
            Err(status) => return Err(status),
        };
        Ok(Self {
            client: client.clone(),
            executable,
            devices,
            inputs,
            in_shardings,
            out_shardings,
            found_out_shardings: OnceLock::new(),
            donatable,
            is_explicit,
            launches: AtomicI32::new(1),
        })
    }

    /// The client that the program belongs to.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The name of the program.
    pub fn name(&self) -> &str {
        self.executable.name()
    }

    /// The runtime's handle.
    pub const fn runtime(&self) -> &LoadedExecutableRef {
        &self.executable
    }

    /// The devices that it runs on, one partition each.
    pub const fn devices(&self) -> &DeviceList {
        &self.devices
    }

    /// The arguments that a call consumes if they are donated to it; `None` if the runtime does not
    /// say.
    pub const fn donatable_argnums(&self) -> Option<&BTreeSet<usize>> {
        self.donatable.as_ref()
    }

    /// Calls the program.
    ///
    /// Arguments that are passed by reference are never consumed. Donated ones are, if the program
    /// can use their memory; if not, they stay alive. Uncommitted arguments are moved to where the
    /// program wants them; committed ones must be there.
    ///
    /// # Blocking
    /// Only enqueues. The results become ready when the run is done.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a dead argument, a wrong number or type, an argument that is committed
    /// elsewhere, or a buffer that is donated and used elsewhere in the same call; those of the
    /// runtime. All arguments then stay as they were. A run that fails later gives results that
    /// fail.
    pub fn execute(&self, args: &[Arg<'_>]) -> Result<Vec<Array>> {
        self.check(args)?;
        let moved = self.place(args)?;
        let modes: Vec<_> = args
            .iter()
            .enumerate()
            .map(|(position, arg)| arg.on(moved.get(position).and_then(Option::as_ref)))
            .collect();
        let uses = Uses::begin(&modes).map_err(|refused| dead(args, refused))?;
        let handles = uses.handles().map_err(|refused| dead(args, refused))?;
        let options = ExecuteOptions {
            launch_id: self.launch_id(),
            non_donatable_input_indices: (0..args.len())
                .filter(|position| self.may_consume(*position) && !uses.is_donated(*position))
                .collect(),
            ..ExecuteOptions::default()
        };
        let result = self
            .client
            .with_memory(|| self.executable.execute(&handles, &options, None));
        uses.finish(&handles);
        match result {
            Ok(result) => self.outputs(result.outputs, args),
            Err(status) => Err(explain(status, args)),
        }
    }

    /// True if a run might consume this argument unless it is told not to.
    fn may_consume(&self, position: usize) -> bool {
        self.donatable
            .as_ref()
            .is_none_or(|donatable| donatable.contains(&position))
    }

    fn launch_id(&self) -> i32 {
        if self.devices.len() == 1 {
            return 0;
        }
        self.launches.fetch_add(1, Ordering::Relaxed)
    }
}

/// The error of a call whose buffers could not be taken.
fn dead(args: &[Arg<'_>], DeadArgument(position, reason): DeadArgument) -> Status {
    match args.get(position) {
        Some(arg) => arg.array().deleted(reason),
        None => Status::internal("a call has lost an argument"),
    }
}

/// The error of a call that the runtime refused; an argument may have died without our knowledge.
fn explain(status: Status, args: &[Arg<'_>]) -> Status {
    if status.code() != Code::InvalidArgument {
        return status;
    }
    let lost = args.iter().find_map(|arg| {
        let reason = arg.array().buffers().dead_after_refusal()?;
        Some(arg.array().deleted(reason))
    });
    lost.unwrap_or(status)
}

/// The first devices, as many as the module is for.
fn default_devices(client: &Client, partitions: Option<usize>) -> Result<DeviceList> {
    let count = partitions.unwrap_or(1);
    let devices = client.runtime().addressable_devices();
    match devices.get(..count) {
        Some(devices) if count > 0 => Ok(devices.iter().cloned().collect()),
        _ => Err(Status::invalid_argument(format!(
            "the module is for {count} devices, but this process can reach {}",
            devices.len()
        ))),
    }
}

/// The module with the donations that were asked for.
fn mark_donated(
    request: &CompileRequest,
    text: Option<&str>,
    signature: Option<&Signature>,
) -> Result<Bytes> {
    let argnums = &request.donate_argnums;
    if argnums.is_empty() {
        return Ok(request.module.clone());
    }
    let (Some(text), Some(signature)) = (text, signature) else {
        return Err(Status::invalid_argument(format!(
            "donate_argnums={argnums:?} can only be added to a module in StableHLO text with a \
             function @main. A module in another form must say itself what it donates; leave \
             donate_argnums out."
        )));
    };
    let count = signature.parameters.len();
    if let Some(outside) = argnums.iter().find(|argnum| **argnum >= count) {
        return Err(Status::invalid_argument(format!(
            "donate_argnums={argnums:?} names argument {outside}, but the program has {count}"
        )));
    }
    Ok(signature.mark_donated(text, argnums).into())
}

fn gspmd_all(shardings: Vec<HloSharding>, devices: &DeviceList) -> Result<Vec<Sharding>> {
    let one = |hlo| match devices.iter().next() {
        Some(device) if devices.len() == 1 => Ok(Sharding::single_device(device.clone())),
        _ => GspmdSharding::new(devices.clone(), hlo, MemoryKind::default()).map(Sharding::Gspmd),
    };
    shardings.into_iter().map(one).collect()
}

impl fmt::Debug for LoadedExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedExecutable")
            .field("name", &self.name())
            .field("devices", &self.devices)
            .field("donatable", &self.donatable)
            .finish_non_exhaustive()
    }
}
