//! Programs of the fake: closures with declared types.
//!
//! A module, where a real runtime takes StableHLO, is text in one of two forms:
//!
//! ```text
//! fake:NAME
//! fake:KERNEL(TYPE, TYPE) -> (TYPE)
//! ```
//!
//! The first names a [`FakeProgram`] that was registered with the client. The second applies a
//! [`Kernel`] to values of the declared types. A type is a dtype with dimensions and, if wanted,
//! `replicated` (as it is without a word) or `tiled[…]` over the devices, `donated` (parameters
//! only) and `in KIND` for a memory kind (results only):
//!
//! ```text
//! fake:add(f32[4,2] tiled[2,1] donated, f32[4,2]) -> (f32[4,2] tiled[2,1] in pinned_host)
//! ```
//!
//! The kernels that every client has: `identity` (results are the parameters), `add` (one result,
//! the sum of all parameters), `add_one` (each result is a parameter plus one), `zeros`, and `fail`
//! (every run fails).
//!
//! Kernels see whole arrays; the fake joins the shards before a run and cuts them after it.

mod kernels;
mod text;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::dtype::DType;
use crate::host_buffer::HostValue;
use crate::memory::MemoryKind;
use crate::shape::Shape;
use crate::status::{Result, Status};
use crate::xla::HloSharding;

/// A whole array in the hands of a [`Kernel`].
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The element type.
    pub dtype: DType,
    /// The dimensions.
    pub shape: Shape,
    /// The elements, dense and major to minor.
    pub value: HostValue,
}

/// What a run gives a [`Kernel`].
#[derive(Debug)]
pub struct KernelCall<'a> {
    /// The arguments.
    pub inputs: &'a [Tensor],
    /// The types that the results must have.
    pub outputs: &'a [(DType, Shape)],
}

/// Computes results from arguments.
pub type Kernel = Arc<dyn Fn(&KernelCall<'_>) -> Result<Vec<HostValue>> + Send + Sync>;

/// A parameter of a [`FakeProgram`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The element type.
    pub dtype: DType,
    /// The shape of the whole array.
    pub shape: Shape,
    /// How it is spread over the devices of the executable.
    pub sharding: HloSharding,
    /// Whether runs consume it.
    pub donated: bool,
}

/// A result of a [`FakeProgram`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The element type.
    pub dtype: DType,
    /// The shape of the whole array.
    pub shape: Shape,
    /// How it is spread over the devices of the executable.
    pub sharding: HloSharding,
    /// The memory that it is made in.
    pub memory_kind: MemoryKind,
}

/// A program: a kernel with declared types.
#[derive(Clone)]
pub struct FakeProgram {
    /// The name, as [`crate::LoadedExecutable::name`] gives it.
    pub name: String,
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// What it gives.
    pub outputs: Vec<Output>,
    /// What it does.
    pub kernel: Kernel,
}

impl FakeProgram {
    /// The number of devices that its shardings ask for; 1 if they leave it open.
    pub(super) fn num_devices(&self) -> usize {
        let parameters = self.parameters.iter().map(|one| &one.sharding);
        let shardings = parameters.chain(self.outputs.iter().map(|one| &one.sharding));
        let counts = shardings.filter_map(|sharding| match sharding {
            HloSharding::Tiled(tiles) => usize::try_from(tiles.num_devices()).ok(),
            _ => None,
        });
        counts.max().unwrap_or(1)
    }
}

/// The programs and kernels of a client, by name.
pub(super) struct Programs {
    programs: HashMap<String, FakeProgram>,
    kernels: HashMap<String, Kernel>,
}

impl Programs {
    pub(super) fn with_standard_kernels() -> Self {
        Self {
            programs: HashMap::new(),
            kernels: kernels::standard(),
        }
    }

    /// Gives back the program that had the name.
    pub(super) fn register_program(
        &mut self,
        name: String,
        program: FakeProgram,
    ) -> Option<FakeProgram> {
        self.programs.insert(name, program)
    }

    /// Gives back the kernel that had the name.
    pub(super) fn register_kernel(&mut self, name: String, kernel: Kernel) -> Option<Kernel> {
        self.kernels.insert(name, kernel)
    }

    /// The program that a module stands for.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with the words of the reference if the module is none of the fake's.
    pub(super) fn load(&self, module: &[u8]) -> Result<FakeProgram> {
        let Some(text) = std::str::from_utf8(module)
            .ok()
            .and_then(|text| text.trim().strip_prefix("fake:"))
        else {
            return Err(unreadable(
                "the fake only takes modules that begin with `fake:`",
            ));
        };
        if let Some(program) = self.programs.get(text) {
            return Ok(program.clone());
        }
        let Some((name, types)) = text.split_once('(') else {
            return Err(unreadable(&format!(
                "no program {text:?} is registered with this client"
            )));
        };
        let name = name.trim();
        let kernel = self.kernels.get(name).ok_or_else(|| {
            unreadable(&format!(
                "no kernel {name:?} is registered with this client"
            ))
        })?;
        let (parameters, outputs) = text::parse_types(types).map_err(|why| unreadable(&why))?;
        Ok(FakeProgram {
            name: name.to_owned(),
            parameters,
            outputs,
            kernel: Arc::clone(kernel),
        })
    }
}

fn unreadable(why: &str) -> Status {
    Status::invalid_argument(format!("Failed to deserialize StableHLO module; {why}"))
}

impl fmt::Debug for FakeProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeProgram")
            .field("name", &self.name)
            .field("parameters", &self.parameters)
            .field("outputs", &self.outputs)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
