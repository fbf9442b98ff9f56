//! [`Exported`]: a function that `jax.export` has written, loaded and called without Python.
//!
//! The file is one FlatBuffer that holds a portable StableHLO module and everything about its
//! arguments and results: types, trees, shardings, effects, the platforms and the number of devices.
//! All versions of the format since 0.4.30 are read.
//!
//! What is not here: symbolic dimensions (the module would have to be rewritten, see
//! [`Kind::NeedsShapeRefinement`]), writing files, and choosing a platform at compile time: a module
//! for several platforms gets the index of its platform as an argument, as JAX has written it.
//!
//! # Mirrors
//! `jax/_src/export/serialization.py`, `serialization.fbs`; `jax/_src/export/_export.py`,
//! `_call_exported_lowering`.
//!
//! [`Kind::NeedsShapeRefinement`]: crate::Kind::NeedsShapeRefinement

mod aval;
mod call;
mod container;
mod flatbuffer;
mod tree;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use ifrt::xla::HloSharding;
use ifrt::{DeviceList, MemoryKind, Result};

pub use aval::{Dim, ElementType, ExportedAval};
pub use call::ExportedCall;
pub use tree::TreeDef;

use crate::mesh::Mesh;
use crate::named_sharding::NamedSharding;
use crate::partition_spec::PartitionSpec;
use crate::sharding::{GspmdSharding, Sharding};

/// A function that `jax.export` has written. A cheap clone.
#[derive(Clone)]
pub struct Exported(Arc<Contents>);

/// What stands in the file.
#[derive(Debug)]
struct Contents {
    function_name: String,
    in_tree: TreeDef,
    out_tree: TreeDef,
    in_avals: Vec<ExportedAval>,
    out_avals: Vec<ExportedAval>,
    /// One per argument; `None` leaves it to the compiler.
    in_shardings: Vec<Option<ExportedSharding>>,
    out_shardings: Vec<Option<ExportedSharding>>,
    platforms: Vec<String>,
    nr_devices: usize,
    ordered_effects: Vec<String>,
    unordered_effects: Vec<String>,
    /// The check that the platform fits is switched off.
    is_any_platform: bool,
    module: Bytes,
    calling_convention_version: u16,
    /// The arguments that the module takes; the others are dropped.
    kept: Vec<usize>,
    vjp: Option<Exported>,
    jax_version: Option<String>,
}

/// A sharding without devices.
#[derive(Clone, Debug)]
enum ExportedSharding {
    Hlo(HloSharding),
    Named {
        axes: Vec<(String, usize)>,
        spec: PartitionSpec,
        memory_kind: MemoryKind,
    },
}

impl ExportedSharding {
    fn on(&self, devices: &DeviceList) -> Result<Sharding> {
        match self {
            Self::Hlo(hlo) => {
                let kind = MemoryKind::default();
                GspmdSharding::new(devices.clone(), hlo.clone(), kind).map(Sharding::Gspmd)
            }
            Self::Named {
                axes,
                spec,
                memory_kind,
            } => {
                let axes = axes.iter().map(|(name, size)| (name.as_str(), *size));
                let mesh = Mesh::new(devices.clone(), axes)?;
                let named = NamedSharding::new(&mesh, spec.clone())?;
                Ok(named.with_memory_kind(memory_kind.clone()).into())
            }
        }
    }
}

impl Exported {
    /// Reads a file's contents.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming what is wrong, for bytes that are damaged, cut off, or no exported
    /// function at all.
    ///
    /// # Mirrors
    /// `jax.export.deserialize`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        container::read(bytes)
    }

    /// The name of the function.
    pub fn function_name(&self) -> &str {
        &self.0.function_name
    }

    /// The tree of the arguments: a tuple of the positional ones and the named ones.
    pub fn in_tree(&self) -> &TreeDef {
        &self.0.in_tree
    }

    /// The tree of the results.
    pub fn out_tree(&self) -> &TreeDef {
        &self.0.out_tree
    }

    /// The types of the arguments, in the order of the leaves of their tree.
    pub fn in_avals(&self) -> &[ExportedAval] {
        &self.0.in_avals
    }

    /// The types of the results, in the order of the leaves of their tree.
    pub fn out_avals(&self) -> &[ExportedAval] {
        &self.0.out_avals
    }

    /// The platforms that the function was exported for.
    pub fn platforms(&self) -> &[String] {
        &self.0.platforms
    }

    /// The number of devices that it runs on.
    pub fn nr_devices(&self) -> usize {
        self.0.nr_devices
    }

    /// The effects that calls have in order.
    pub fn ordered_effects(&self) -> &[String] {
        &self.0.ordered_effects
    }

    /// The effects that calls have in any order.
    pub fn unordered_effects(&self) -> &[String] {
        &self.0.unordered_effects
    }

    /// How the module is called; 9 and 10 are known.
    pub fn calling_convention_version(&self) -> u16 {
        self.0.calling_convention_version
    }

    /// The version of JAX that wrote the file, if it says so.
    pub fn jax_version(&self) -> Option<&str> {
        self.0.jax_version.as_deref()
    }

    /// The StableHLO module, a portable artifact.
    pub fn module(&self) -> &Bytes {
        &self.0.module
    }

    /// The function that computes the gradient, if it was exported too. It takes the arguments of
    /// this one and the cotangents of its results, and gives the cotangents of the arguments.
    pub fn vjp(&self) -> Option<&Self> {
        self.0.vjp.as_ref()
    }
}

impl fmt::Debug for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exported")
            .field("function_name", &self.0.function_name)
            .field("in_avals", &self.0.in_avals)
            .field("out_avals", &self.0.out_avals)
            .field("platforms", &self.0.platforms)
            .field("nr_devices", &self.0.nr_devices)
            .finish_non_exhaustive()
    }
}
