//! Programs and the options to compile them with.
//!
//! Both are mostly passed on: from a client over the wire to a plugin that understands them.
//! They stay bytes on the way, because decoding and encoding again loses what we do not know.
//!
//! What is not here: their serialized forms ([`crate::serdes`]), and IFRT IR, which needs MLIR and
//! travels as [`Program::Other`].
//!
//! # Mirrors
//! `xla/python/ifrt/program.h`, `hlo/hlo_program.h`, `custom_call_program.h`, `plugin_program.h`,
//! `pjrt_ifrt/xla_compiler.h`.

mod custom_call;
mod xla;

use bytes::Bytes;

pub use custom_call::{CustomCallCompileOptions, CustomCallProgram};
pub use xla::XlaCompileOptions;

/// What a compiler takes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Program {
    /// A StableHLO module.
    Hlo(HloProgram),
    /// A call of something that the runtime knows by name.
    CustomCall(CustomCallProgram),
    /// A request to the runtime that only it understands.
    Plugin(PluginProgram),
    /// A program of another kind, in its serialized form.
    Other {
        /// The name of the type, for example `xla::ifrt::IfrtIRProgram`.
        type_name: String,
        /// Its serialized form.
        data: Bytes,
    },
}

/// A StableHLO module: a portable artifact (versioned MLIR bytecode) or MLIR text.
#[derive(Clone, Debug)]
pub struct HloProgram {
    /// The module.
    pub module: Bytes,
}

/// A request to the runtime that only it understands. It is not bound to devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginProgram {
    /// The request.
    pub data: Bytes,
}

/// How to compile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CompileOptions {
    /// For [`Program::Hlo`].
    Xla(XlaCompileOptions),
    /// For [`Program::CustomCall`].
    CustomCall(CustomCallCompileOptions),
    /// For [`Program::Plugin`], which has none.
    Plugin,
    /// For other programs, in serialized form.
    Other {
        /// The name of the type.
        type_name: String,
        /// Its serialized form.
        data: Bytes,
    },
}

impl CompileOptions {
    /// How many outputs go into each bundle of an execution with bundles; their sum is the number
    /// of outputs. `None` puts all outputs into one.
    pub fn outputs_bundle_slice_sizes(&self) -> Option<&[usize]> {
        match self {
            Self::Xla(options) => options.outputs_bundle_slice_sizes.as_deref(),
            Self::CustomCall(options) => options.outputs_bundle_slice_sizes.as_deref(),
            Self::Plugin | Self::Other { .. } => None,
        }
    }
}
