//! [`Program`] and [`CompileOptions`] as IFRT's envelope.
//!
//! What only the compiler understands stays as it came, so that fields which are younger than this
//! crate survive.

use bytes::Bytes;
use prost::Message;

use super::envelope::seal;
use super::{
    SerDesVersion, array_spec_from_proto, array_spec_to_proto, check_version,
    device_list_from_proto, device_list_to_proto, missing, unsupported,
};
use crate::array_spec::ArraySpec;
use crate::client::Client;
use crate::program::{
    CompileOptions, CustomCallCompileOptions, CustomCallProgram, HloProgram, PluginProgram,
    Program, XlaCompileOptions,
};
use crate::proto::xla::ifrt::{
    ArraySpecProto, CustomCallCompileOptionsProto, CustomCallProgramProto, Serialized,
    XlaCompileOptionsProto,
};
use crate::status::{Result, Status};

const HLO: &str = "XlaProgram";
const CUSTOM_CALL: &str = "CustomCallProgram";
const PLUGIN: &str = "PluginProgram";
const XLA_OPTIONS: &str = "XlaCompileOptions";
const CUSTOM_CALL_OPTIONS: &str = "CustomCallCompileOptions";
const PLUGIN_OPTIONS: &str = "PluginCompileOptions";

/// What stands before the data of a plugin program, to tell it from other bytes.
const PLUGIN_PREFIX: &[u8] = b"__serialized_plugin_program ";

/// Reads a program over devices of `client`. Kinds that are not known are kept as they are.
///
/// # Errors
/// INVALID_ARGUMENT for malformed bytes, unknown devices, and a custom call on devices that are not
/// its own; FAILED_PRECONDITION for a newer format.
pub fn program_from_proto(serialized: &Serialized, client: &dyn Client) -> Result<Program> {
    let data = &serialized.data;
    match short_name(serialized) {
        HLO => Ok(Program::Hlo(HloProgram {
            module: data.clone(),
        })),
        CUSTOM_CALL => custom_call_from_proto(data, client).map(Program::CustomCall),
        PLUGIN if data.starts_with(PLUGIN_PREFIX) => Ok(Program::Plugin(PluginProgram {
            data: data.slice(PLUGIN_PREFIX.len()..),
        })),
        PLUGIN => Err(Status::invalid_argument(
            "Bad serialized xla::ifrt::PluginProgram",
        )),
        _ => Ok(Program::Other {
            type_name: serialized.type_name.clone(),
            data: data.clone(),
        }),
    }
}

/// The name without the namespace; the whole name if it has another one.
fn short_name(serialized: &Serialized) -> &str {
    let name = serialized.type_name.as_str();
    name.strip_prefix("xla::ifrt::").unwrap_or(name)
}

fn custom_call_from_proto(data: &Bytes, client: &dyn Client) -> Result<CustomCallProgram> {
    let proto = CustomCallProgramProto::decode(data.clone())?;
    check_version(proto.version_number, 0, CUSTOM_CALL)?;
    let devices = proto.devices.as_ref();
    let devices = devices.ok_or_else(|| missing(CUSTOM_CALL, "devices"))?;
    let specs = |specs: &[ArraySpecProto]| {
        let specs = specs.iter().map(|spec| array_spec_from_proto(spec, client));
        specs.collect::<Result<_>>()
    };
    let program = CustomCallProgram {
        devices: device_list_from_proto(devices, client)?,
        input_specs: specs(&proto.input_specs)?,
        output_specs: specs(&proto.output_specs)?,
        program_type: proto.r#type,
        name: proto.name,
        serialized_program_text: proto.serialized_program_text,
    };
    program.validate()?;
    Ok(program)
}

/// Writes a program for a reader that knows `version`.
///
/// # Errors
/// FAILED_PRECONDITION if the program needs a newer version.
pub fn program_to_proto(program: &Program, version: SerDesVersion) -> Result<Serialized> {
    match program {
        Program::Hlo(_) if version < SerDesVersion::MIXED_STABLEHLO => {
            Err(unsupported(version, "HloProgram", ""))
        }
        Program::Hlo(program) => Ok(seal(HLO, program.module.clone())),
        Program::CustomCall(program) => {
            let specs = |specs: &[ArraySpec]| {
                let specs = specs.iter().map(|spec| array_spec_to_proto(spec, version));
                specs.collect::<Result<_>>()
            };
            let proto = CustomCallProgramProto {
                r#type: program.program_type.clone(),
                name: program.name.clone(),
                serialized_program_text: program.serialized_program_text.clone(),
                devices: Some(device_list_to_proto(&program.devices)),
                input_specs: specs(&program.input_specs)?,
                output_specs: specs(&program.output_specs)?,
                version_number: 0,
            };
            Ok(seal(CUSTOM_CALL, proto.encode_to_vec()))
        }
        Program::Plugin(program) => Ok(seal(PLUGIN, [PLUGIN_PREFIX, &program.data].concat())),
        Program::Other { type_name, data } => Ok(Serialized {
            type_name: type_name.clone(),
            data: data.clone(),
        }),
    }
}

/// Reads compile options. Kinds that are not known are kept as they are.
///
/// The options of XLA are not looked into; [`XlaCompileOptions::view`] does that.
///
/// # Errors
/// INVALID_ARGUMENT for malformed bytes and negative sizes; FAILED_PRECONDITION for a newer format.
pub fn compile_options_from_proto(serialized: &Serialized) -> Result<CompileOptions> {
    let newest = SerDesVersion::BUNDLE_SLICE_SIZES.number();
    let data = &serialized.data;
    match short_name(serialized) {
        XLA_OPTIONS => {
            let proto = XlaCompileOptionsProto::decode(data.clone())?;
            check_version(proto.version_number, newest, XLA_OPTIONS)?;
            let sizes = proto.outputs_bundle_slice_sizes;
            Ok(CompileOptions::Xla(XlaCompileOptions {
                outputs_bundle_slice_sizes: sizes_from_proto(sizes, proto.version_number)?,
                compile_options: proto.compile_options,
                devices: None,
            }))
        }
        CUSTOM_CALL_OPTIONS => {
            // Writers of version 0 write nothing at all, which decodes to version 0.
            let proto = CustomCallCompileOptionsProto::decode(data.clone())?;
            check_version(proto.version_number, newest, CUSTOM_CALL_OPTIONS)?;
            let sizes = proto.outputs_bundle_slice_sizes;
            Ok(CompileOptions::CustomCall(CustomCallCompileOptions {
                outputs_bundle_slice_sizes: sizes_from_proto(sizes, proto.version_number)?,
            }))
        }
        PLUGIN_OPTIONS => Ok(CompileOptions::Plugin),
        _ => Ok(CompileOptions::Other {
            type_name: serialized.type_name.clone(),
            data: data.clone(),
        }),
    }
}

/// The sizes belong to the format of version 4; an empty list means none.
fn sizes_from_proto(sizes: Vec<i32>, version: i32) -> Result<Option<Vec<usize>>> {
    if version < SerDesVersion::BUNDLE_SLICE_SIZES.number() || sizes.is_empty() {
        return Ok(None);
    }
    let size = |size: i32| {
        usize::try_from(size).map_err(|_| {
            Status::invalid_argument(format!("a bundle of outputs has the size {size}"))
        })
    };
    sizes.into_iter().map(size).collect::<Result<_>>().map(Some)
}

fn sizes_to_proto(sizes: Option<&[usize]>, version: SerDesVersion, what: &str) -> Result<Vec<i32>> {
    let Some(sizes) = sizes else {
        return Ok(Vec::new());
    };
    if version < SerDesVersion::BUNDLE_SLICE_SIZES {
        return Err(unsupported(
            version,
            what,
            " with outputs_bundle_slice_sizes",
        ));
    }
    let size = |size: &usize| {
        i32::try_from(*size).map_err(|_| {
            Status::invalid_argument(format!("a bundle of {size} outputs is too large"))
        })
    };
    sizes.iter().map(size).collect()
}

/// Writes compile options for a reader that knows `version`. The devices of [`XlaCompileOptions`]
/// are not written.
///
/// # Errors
/// FAILED_PRECONDITION if the options need a newer version.
pub fn compile_options_to_proto(
    options: &CompileOptions,
    version: SerDesVersion,
) -> Result<Serialized> {
    let newest = SerDesVersion::BUNDLE_SLICE_SIZES;
    let has_sizes = version >= newest;
    let version_number = if has_sizes { newest.number() } else { 0 };
    match options {
        CompileOptions::Xla(options) => {
            let sizes = options.outputs_bundle_slice_sizes.as_deref();
            let proto = XlaCompileOptionsProto {
                compile_options: options.compile_options.clone(),
                outputs_bundle_slice_sizes: sizes_to_proto(sizes, version, XLA_OPTIONS)?,
                version_number,
            };
            Ok(seal(XLA_OPTIONS, proto.encode_to_vec()))
        }
        CompileOptions::CustomCall(options) => {
            let sizes = options.outputs_bundle_slice_sizes.as_deref();
            let proto = CustomCallCompileOptionsProto {
                outputs_bundle_slice_sizes: sizes_to_proto(sizes, version, CUSTOM_CALL_OPTIONS)?,
                version_number,
            };
            Ok(seal(CUSTOM_CALL_OPTIONS, proto.encode_to_vec()))
        }
        CompileOptions::Plugin => Ok(seal(PLUGIN_OPTIONS, Bytes::new())),
        CompileOptions::Other { type_name, data } => Ok(Serialized {
            type_name: type_name.clone(),
            data: data.clone(),
        }),
    }
}
