//! [`from_stablehlo`]: compiling programs and calling them.
//!
//! # Donation
//! A call may take over the memory of arguments that the program gives back in another form, for
//! example the state of a training step. That is decided per call: what is passed by reference is
//! never consumed, what is passed as [`donate`] may be.
//!
//! ```
//! # use jax_api::prelude::*;
//! # fn main() -> jax_api::Result<()> {
//! # let client = Client::from_ifrt(ifrt::fake::FakeClient::new(Default::default()));
//! # let module = "fake:add(f32[2] donated, f32[2]) -> (f32[2])";
//! let step = jit::from_stablehlo(module).compile(&client)?;
//! let mut state = device_put(&[0.0_f32; 2], &client)?;
//! let batch = device_put(&[1.0_f32, 2.0], &client)?;
//! for _ in 0..3 {
//!     state = step.call(args![donate(state), &batch])?.remove(0);
//! }
//! assert_eq!(state.to_vec::<f32>()?, [3.0, 6.0]);
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use ifrt::{DType, Shape};
use jaxlib_core::{Aval, CompileRequest, LoadedExecutable, OptionValue, Sharding};

use crate::array::Array;
use crate::client::Client;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::mesh::one_client;

/// A StableHLO module, in text form or as a portable artifact (what `jax.export` writes).
#[derive(Clone)]
pub struct Module(Bytes);

impl From<&str> for Module {
    fn from(text: &str) -> Self {
        Self(text.to_owned().into())
    }
}

impl From<String> for Module {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&[u8]> for Module {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec().into())
    }
}

impl From<Vec<u8>> for Module {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({} bytes)", self.0.len())
    }
}

/// A program that is about to be compiled.
#[derive(Debug)]
#[must_use = "nothing is compiled before compile() is called"]
pub struct Builder {
    module: Module,
    devices: Option<Vec<Device>>,
    num_partitions: Option<usize>,
    in_avals: Option<Vec<(DType, Vec<usize>)>>,
    in_shardings: Option<Vec<Option<Sharding>>>,
    out_shardings: Option<Vec<Option<Sharding>>>,
    donate_argnums: Vec<usize>,
    options: Vec<(String, OptionValue)>,
}

/// A program in StableHLO, to be compiled.
///
/// # Mirrors
/// `jax.jit`, from where the module comes on.
pub fn from_stablehlo(module: impl Into<Module>) -> Builder {
    Builder {
        module: module.into(),
        devices: None,
        num_partitions: None,
        in_avals: None,
        in_shardings: None,
        out_shardings: None,
        donate_argnums: Vec::new(),
        options: Vec::new(),
    }
}

impl Builder {
    /// The devices to run on, one partition each. Results are committed to them.
    pub fn devices(mut self, devices: &[Device]) -> Self {
        self.devices = Some(devices.to_vec());
        self
    }

    /// Runs on the first devices, one partition each. A module in text form says by itself how
    /// many it needs (`mhlo.num_partitions`).
    pub const fn num_partitions(mut self, count: usize) -> Self {
        self.num_partitions = Some(count);
        self
    }

    /// The types of the arguments, to be checked before each call. A module in text form says them
    /// by itself.
    pub fn in_avals<S: AsRef<[usize]>>(
        mut self,
        avals: impl IntoIterator<Item = (DType, S)>,
    ) -> Self {
        let avals = avals.into_iter();
        self.in_avals = Some(
            avals
                .map(|(dtype, dims)| (dtype, dims.as_ref().to_vec()))
                .collect(),
        );
        self
    }

    /// How the arguments are spread, compared with what the module says. `None` compares nothing.
    pub fn in_shardings<S: Into<Sharding>>(
        mut self,
        shardings: impl IntoIterator<Item = Option<S>>,
    ) -> Self {
        let shardings = shardings.into_iter();
        self.in_shardings = Some(shardings.map(|one| one.map(Into::into)).collect());
        self
    }

    /// How the results are spread, compared with what the module says; they are then shown like
    /// this. `None` leaves a result as the compiler made it.
    pub fn out_shardings<S: Into<Sharding>>(
        mut self,
        shardings: impl IntoIterator<Item = Option<S>>,
    ) -> Self {
        let shardings = shardings.into_iter();
        self.out_shardings = Some(shardings.map(|one| one.map(Into::into)).collect());
        self
    }

    /// Arguments that calls may consume when they are passed as [`donate`], in addition to those
    /// that the module says. Only for modules in text form.
    pub fn donate_argnums(mut self, argnums: impl IntoIterator<Item = usize>) -> Self {
        self.donate_argnums.extend(argnums);
        self
    }

    /// An option of the compiler, for example `xla_cpu_enable_fast_math`.
    pub fn compiler_option(
        mut self,
        name: impl Into<String>,
        value: impl Into<OptionValue>,
    ) -> Self {
        self.options.push((name.into(), value.into()));
        self
    }

    /// Compiles the program.
    ///
    /// # Blocking
    /// Until it is compiled.
    ///
    /// # Errors
    /// For a module that cannot be read, for too few devices, for shardings or donations that do
    /// not fit the module; and what the compiler reports.
    pub fn compile(self, client: &Client) -> Result<Compiled> {
        let devices = match (self.devices, self.num_partitions) {
            (Some(devices), count) => {
                let (owner, list) = one_client(&devices)?;
                if !owner.is_same(client.core()) {
                    return Err(Error::invalid("the devices belong to another client"));
                }
                if count.is_some_and(|count| count != list.len()) {
                    return Err(Error::invalid(format!(
                        "{} devices were given for {} partitions",
                        list.len(),
                        count.unwrap_or(0)
                    )));
                }
                Some(list)
            }
            (None, Some(count)) => {
                let all = client.core().runtime().addressable_devices();
                let Some(devices) = all.get(..count) else {
                    return Err(Error::invalid(format!(
                        "{count} partitions were asked for, but this process can reach {} devices",
                        all.len()
                    )));
                };
                Some(devices.iter().map(Arc::clone).collect())
            }
            (None, None) => None,
        };
        let request = CompileRequest {
            module: self.module.0,
            devices,
            in_avals: self.in_avals.map(avals).transpose()?,
            in_shardings: self.in_shardings,
            out_shardings: self.out_shardings,
            donate_argnums: self.donate_argnums,
            options: self.options.into_iter().collect(),
        };
        LoadedExecutable::compile(client.core(), request)
            .map(|core| Compiled(Arc::new(core)))
            .map_err(Error::from)
    }
}

fn avals(avals: Vec<(DType, Vec<usize>)>) -> Result<Vec<Option<Aval>>> {
    let one = |(dtype, dims): (DType, Vec<usize>)| {
        let dims: Result<Vec<i64>, _> = dims.into_iter().map(i64::try_from).collect();
        let dims = dims.map_err(|_| Error::invalid("a dimension exceeds 64 bits"))?;
        Ok(Some(Aval::new(dtype, Shape::new(dims)?)))
    };
    avals.into_iter().map(one).collect()
}

/// A compiled program. A cheap clone.
#[derive(Clone, Debug)]
#[must_use = "a program that nobody keeps is unloaded"]
pub struct Compiled(Arc<LoadedExecutable>);

impl Compiled {
    /// The name of the program.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The arguments that a call consumes if they are donated to it, ascending; `None` if the
    /// runtime does not say.
    pub fn donatable_argnums(&self) -> Option<Vec<usize>> {
        Some(self.0.donatable_argnums()?.iter().copied().collect())
    }

    /// Calls the program; see [`args!`](crate::args).
    ///
    /// # Blocking
    /// Only enqueues. The results become ready when the run is done.
    ///
    /// # Errors
    /// For a dead argument, a wrong number or type, an argument that is committed elsewhere, or an
    /// array that is donated and used elsewhere in the same call. All arguments then stay as they
    /// were. A run that fails later gives results that fail.
    pub fn call(&self, args: &[Arg<'_>]) -> Result<Vec<Array>> {
        let args: Vec<jaxlib_core::Arg<'_>> = args.iter().map(Arg::core).collect();
        let results = self.0.execute(&args)?;
        Ok(results.into_iter().map(Array::from_core).collect())
    }
}

/// An argument of a call.
#[derive(Clone, Debug)]
#[allow(
    clippy::exhaustive_enums,
    reason = "there is no third way to pass an array"
)]
pub enum Arg<'a> {
    /// The call reads it and leaves it alone.
    Reference(&'a Array),
    /// The call may consume it.
    Donate(Array),
}

impl Arg<'_> {
    pub(crate) const fn core(&self) -> jaxlib_core::Arg<'_> {
        match self {
            Self::Reference(array) => jaxlib_core::Arg::Reference(array.core()),
            Self::Donate(array) => jaxlib_core::Arg::Donate(array.core()),
        }
    }
}

impl<'a> From<&'a Array> for Arg<'a> {
    fn from(array: &'a Array) -> Self {
        Self::Reference(array)
    }
}

/// Lets a call consume an array. If the program can make use of its memory, the array is dead
/// afterwards under every alias; if not, it stays alive.
///
/// Takes the array itself, or a reference to keep it in case that the call fails.
///
/// # Mirrors
/// `donate_argnums` of `jax.jit`.
pub fn donate<'a>(array: impl Into<Array>) -> Arg<'a> {
    Arg::Donate(array.into())
}

/// The arguments of a call: references, or [`donate`].
///
/// # Examples
/// ```
/// # use jax_api::prelude::*;
/// # fn main() -> jax_api::Result<()> {
/// # let client = Client::from_ifrt(ifrt::fake::FakeClient::new(Default::default()));
/// # let f = jit::from_stablehlo("fake:add(f32[], f32[]) -> (f32[])").compile(&client)?;
/// # let (state, batch) = (device_put(1.0_f32, &client)?, device_put(2.0_f32, &client)?);
/// let sum = f.call(args![donate(state), &batch])?.remove(0);
/// assert_eq!(sum.item::<f32>()?, 3.0);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => {
        &[$(<$crate::jit::Arg<'_> as ::std::convert::From<_>>::from($arg)),*]
    };
}
