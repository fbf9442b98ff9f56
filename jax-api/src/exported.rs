//! [`Exported`]: functions that `jax.export` has written.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use jaxlib_core::ExportedCall;
use jaxlib_core::export::{ExportedAval, TreeDef};

use crate::array::Array;
use crate::client::Client;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::files;
use crate::jit::Arg;
use crate::mesh::one_client;
use crate::tree::{self, Tree};

/// A function that `jax.export` has written: a model without Python. A cheap clone.
///
/// # Examples
/// ```no_run
/// # fn main() -> jax_api::Result<()> {
/// # let client: jax_api::Client = unimplemented!();
/// use jax_api::prelude::*;
///
/// let model = Exported::load("model.jaxexport")?;
/// println!("{} -> {}", model.in_tree(), model.out_tree());
/// let f = model.compile(&client)?;
/// let x = device_put(&[1.0_f32, 2.0], &client)?;
/// let results = f.call(args![&x])?;
/// # Ok(())
/// # }
/// ```
///
/// # Mirrors
/// `jax.export.Exported`.
#[derive(Clone)]
pub struct Exported(jaxlib_core::Exported);

impl Exported {
    /// Reads a file that holds what `Exported.serialize()` gave.
    ///
    /// # Errors
    /// If the file cannot be read, or is no exported function.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        files::about(path, Self::from_bytes(&files::read(path)?))
    }

    /// Reads what `Exported.serialize()` gave.
    ///
    /// # Errors
    /// If the bytes are no exported function, or damaged.
    ///
    /// # Mirrors
    /// `jax.export.deserialize`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Ok(Self(jaxlib_core::Exported::from_bytes(bytes)?))
    }

    /// The name of the function.
    pub fn function_name(&self) -> &str {
        self.0.function_name()
    }

    /// The tree of the arguments: a tuple of the positional ones and the named ones.
    pub fn in_tree(&self) -> &TreeDef {
        self.0.in_tree()
    }

    /// The tree of the results.
    pub fn out_tree(&self) -> &TreeDef {
        self.0.out_tree()
    }

    /// The types of the arguments, in the order of the leaves of their tree.
    pub fn in_avals(&self) -> &[ExportedAval] {
        self.0.in_avals()
    }

    /// The types of the results, in the order of the leaves of their tree.
    pub fn out_avals(&self) -> &[ExportedAval] {
        self.0.out_avals()
    }

    /// The platforms that the function was exported for.
    pub fn platforms(&self) -> &[String] {
        self.0.platforms()
    }

    /// The number of devices that it runs on.
    pub fn nr_devices(&self) -> usize {
        self.0.nr_devices()
    }

    /// The effects that calls have in order. Each is a token that one call hands to the next, so any
    /// name will do.
    pub fn ordered_effects(&self) -> &[String] {
        self.0.ordered_effects()
    }

    /// The effects that calls have in any order.
    pub fn unordered_effects(&self) -> &[String] {
        self.0.unordered_effects()
    }

    /// How the module is called; 9 and 10 are known.
    pub fn calling_convention_version(&self) -> u16 {
        self.0.calling_convention_version()
    }

    /// The version of JAX that wrote the file, if it says so.
    pub fn jax_version(&self) -> Option<&str> {
        self.0.jax_version()
    }

    /// The function that computes the gradient, if it was exported too. It takes the arguments of
    /// this one and the cotangents of its results, and gives the cotangents of the arguments.
    ///
    /// # Mirrors
    /// `jax.export.Exported.vjp`.
    pub fn vjp(&self) -> Option<Self> {
        self.0.vjp().cloned().map(Self)
    }

    /// Compiles the function for the first devices of the client, as many as it needs.
    ///
    /// # Blocking
    /// Until it is compiled.
    ///
    /// # Errors
    /// As [`Exported::compile_on`]; also if the client has too few devices.
    pub fn compile(&self, client: &Client) -> Result<ExportedFn> {
        let devices = client.devices();
        let devices = devices.get(..self.nr_devices()).unwrap_or(devices);
        self.compile_on(devices)
    }

    /// Compiles the function for these devices, in the order of the mesh that it was exported with.
    ///
    /// # Blocking
    /// Until it is compiled.
    ///
    /// # Errors
    /// If the function is for other platforms, another number of devices or another calling
    /// convention; if it has symbolic dimensions; and what the compiler reports.
    pub fn compile_on(&self, devices: &[Device]) -> Result<ExportedFn> {
        let (client, devices) = one_client(devices)?;
        Ok(ExportedFn(Arc::new(self.0.compile(&client, &devices)?)))
    }
}

impl fmt::Debug for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// An exported function, compiled for devices. A cheap clone.
#[derive(Clone, Debug)]
#[must_use = "a program that nobody keeps is unloaded"]
pub struct ExportedFn(Arc<ExportedCall>);

impl ExportedFn {
    /// Calls the function with the leaves of its arguments, in order; see [`args!`](crate::args).
    ///
    /// # Blocking
    /// Only enqueues. The results become ready when the run is done.
    ///
    /// # Errors
    /// As [`crate::jit::Compiled::call`].
    ///
    /// # Mirrors
    /// `jax.export.Exported.call`.
    pub fn call(&self, args: &[Arg<'_>]) -> Result<Vec<Array>> {
        let args: Vec<jaxlib_core::Arg<'_>> = args.iter().map(Arg::core).collect();
        let results = self.0.call(&args)?;
        Ok(results.into_iter().map(Array::from_core).collect())
    }

    /// Calls the function with its arguments as Python has them: positional ones and named ones, each
    /// a tree. Gives the tree of the results.
    ///
    /// # Blocking
    /// Only enqueues. The results become ready when the run is done.
    ///
    /// # Errors
    /// [`Error::ArgumentMismatch`] if the trees are not those of the function, naming the first place
    /// where they differ; and as [`ExportedFn::call`].
    ///
    /// # Examples
    /// ```no_run
    /// # fn main() -> jax_api::Result<()> {
    /// # let (f, w, b, x): (jax_api::ExportedFn, jax_api::Array, jax_api::Array, jax_api::Array) = unimplemented!();
    /// use jax_api::Tree;
    /// use jax_api::prelude::*;
    ///
    /// let params = Tree::dict([("w", Tree::Leaf((&w).into())), ("b", Tree::Leaf((&b).into()))]);
    /// let results = f.call_tree(vec![params, Tree::Leaf((&x).into())], [])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_tree<'a>(
        &self,
        args: Vec<Tree<Arg<'a>>>,
        named: impl IntoIterator<Item = (&'a str, Tree<Arg<'a>>)>,
    ) -> Result<Tree<Array>> {
        let exported = self.0.exported();
        let (args, named) = (Tree::Tuple(args), Tree::dict(named));
        let difference = match exported.in_tree() {
            TreeDef::Tuple(parts) if parts.len() == 2 => {
                let args = tree::difference(&parts[0], &args.structure());
                let named = || tree::difference(&parts[1], &named.structure());
                args.map(|text| format!("args{text}"))
                    .or_else(|| Some(format!("kwargs{}", named()?)))
            }
            other => Some(format!("they are {other}")),
        };
        if let Some(difference) = difference {
            return Err(Error::ArgumentMismatch(format!(
                "The arguments of {} do not hang together as it was exported: {difference}. It was \
                 exported for (args, kwargs) = {}.",
                exported.function_name(),
                exported.in_tree(),
            )));
        }
        let given = Tree::Tuple(vec![args, named]);
        let args: Vec<Arg<'_>> = given.leaves().into_iter().cloned().collect();
        Tree::from_leaves(exported.out_tree(), self.call(&args)?)
    }
}
