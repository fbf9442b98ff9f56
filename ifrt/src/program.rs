//! Programs and the options to compile them with.
//!
//! Both are mostly passed on: from a client over the wire to a plugin that understands them.
//! They stay bytes on the way, because decoding and encoding again loses what we do not know.
//!
//! # Mirrors
//! `xla/python/ifrt/program.h`, `hlo/hlo_program.h`, `pjrt_ifrt/xla_compiler.h`.

use bytes::Bytes;

use crate::device_list::DeviceList;

/// What a compiler takes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Program {
    /// A StableHLO module.
    Hlo(HloProgram),
    /// A program of another kind, in its serialized form.
    Other {
        /// The name of the type, for example `xla::ifrt::PluginProgram`.
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

/// How to compile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CompileOptions {
    /// For [`Program::Hlo`].
    Xla(XlaCompileOptions),
    /// For other programs, in serialized form.
    Other {
        /// The name of the type.
        type_name: String,
        /// Its serialized form.
        data: Bytes,
    },
}

/// How to compile a StableHLO module.
#[derive(Clone, Debug)]
pub struct XlaCompileOptions {
    /// A serialized `xla.CompileOptionsProto`.
    pub compile_options: Bytes,
    /// The devices to run on, in the order of the device assignment; `None` takes them from the
    /// options. Not on the wire.
    pub devices: Option<DeviceList>,
}
