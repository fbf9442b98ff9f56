//! Compiling programs.
//!
//! Programs and options are passed on as they came, because decoding and encoding them again would
//! lose what this server does not know.

use ifrt::proto::xla::ifrt::{Serialized, XlaCompileOptionsProto};
use ifrt::serdes::status_to_proto;
use ifrt::{
    Code, CompileOptions, HloProgram, LoadedExecutableRef, Program, Result, Status,
    XlaCompileOptions,
};
use prost::Message;

use crate::proto::xla::ifrt::proxy::ifrt_response::Response;
use crate::proto::xla::ifrt::proxy::{CompileRequest, CompileResponse, compile_response};
use crate::server::handlers::{callback, missing};
use crate::server::session::Call;
use crate::server::session::context::{Failure, Outcome};
use crate::server::session::reply::Reply;
use crate::server::session::tables::EXECUTABLE_READY;

const XLA_PROGRAM: &str = "xla::ifrt::XlaProgram";
/// The other kinds of programs that clients know how to write.
const OTHER_PROGRAMS: [&str; 3] = [
    "xla::ifrt::IfrtIRProgram",
    "xla::ifrt::CustomCallProgram",
    "xla::ifrt::PluginProgram",
];
const XLA_OPTIONS: &str = "xla::ifrt::XlaCompileOptions";
const OTHER_OPTIONS: [&str; 3] = [
    "xla::ifrt::IfrtIRCompileOptions",
    "xla::ifrt::CustomCallCompileOptions",
    "xla::ifrt::PluginCompileOptions",
];

/// The newest format of the options.
const MAX_OPTIONS_VERSION: i32 = 4;

/// Compiles a program, and answers when it is loaded.
pub(crate) fn compile(call: &Call, request: CompileRequest, reply: Reply) {
    let started = call.isolated(|| {
        if !request.host_callbacks.is_empty() {
            return Err(callback::unsupported(request.host_callbacks.len()).into());
        }
        let program = program(request.program.ok_or_else(|| missing("program"))?)?;
        let options = request
            .compile_options
            .ok_or_else(|| missing("compile options"))?;
        let other = match &program {
            Program::Other { type_name, .. } => Some(type_name.clone()),
            _ => None,
        };
        let compiler = call.client().default_compiler();
        Ok((
            compiler.compile_and_load(program, self::options(options)?),
            other,
        ))
    });
    let (loaded, other_program) = match started {
        Ok(started) => started,
        Err(failure) => {
            reply.send(Err(failure));
            return;
        }
    };
    let call = call.clone();
    loaded.on_ready(move |result| match result {
        // The questions below may take the runtime a while.
        Ok(executable) => {
            let executable = executable.clone();
            call.in_background(reply, |call| {
                describe(call, executable).map(Response::CompileResponse)
            });
        }
        Err(error) => reply.send(Err(Failure::from(compile_error(error, other_program)))),
    });
}

/// JAX runs Python functions that were meant for the server in its own process if it finds the
/// words below in the error.
fn compile_error(error: &Status, other_program: Option<String>) -> Status {
    match other_program {
        Some(kind) if error.code() == Code::Unimplemented => Status::invalid_argument(format!(
            "PjRtCompiler requires an HloProgram, but the program is a {kind}: {}",
            error.message()
        )),
        _ => error.clone(),
    }
}

fn program(serialized: Serialized) -> Result<Program> {
    match serialized.type_name.as_str() {
        XLA_PROGRAM => Ok(Program::Hlo(HloProgram {
            module: serialized.data,
        })),
        name if OTHER_PROGRAMS.contains(&name) => Ok(Program::Other {
            type_name: serialized.type_name,
            data: serialized.data,
        }),
        name => Err(Status::unimplemented(format!(
            "no program of type {name:?} is known to this server"
        ))),
    }
}

fn options(serialized: Serialized) -> Result<CompileOptions> {
    match serialized.type_name.as_str() {
        XLA_OPTIONS => {
            let options = XlaCompileOptionsProto::decode(serialized.data)?;
            if !(0..=MAX_OPTIONS_VERSION).contains(&options.version_number) {
                return Err(Status::failed_precondition(format!(
                    "Unsupported IFRT SerDes version {} for XlaCompileOptions deserialization",
                    options.version_number
                )));
            }
            if !options.outputs_bundle_slice_sizes.is_empty() {
                return Err(Status::unimplemented(
                    "this server does not give outputs in bundles",
                ));
            }
            Ok(CompileOptions::Xla(XlaCompileOptions {
                compile_options: options.compile_options,
                devices: None,
                outputs_bundle_slice_sizes: None,
            }))
        }
        name if OTHER_OPTIONS.contains(&name) => Ok(CompileOptions::Other {
            type_name: serialized.type_name,
            data: serialized.data,
        }),
        name => Err(Status::unimplemented(format!(
            "no compile options of type {name:?} are known to this server"
        ))),
    }
}

/// Stores the executable and tells the client what it is.
fn describe(call: &Call, executable: LoadedExecutableRef) -> Outcome<CompileResponse> {
    let num_devices = i32::try_from(executable.num_devices())
        .map_err(|_| Status::internal("an executable has too many devices for its message"))?;
    let fingerprint = match executable.fingerprint() {
        Ok(None) => None,
        Ok(Some(value)) => Some(compile_response::Fingerprint::FingerprintValue(value)),
        Err(error) => Some(compile_response::Fingerprint::FingerprintError(
            status_to_proto(&error),
        )),
    };
    Ok(CompileResponse {
        name: executable.name().to_owned(),
        num_devices,
        addressable_device_ids: executable
            .addressable_devices()
            .iter()
            .map(|device| device.id().0)
            .collect(),
        device_ids: executable
            .devices()
            .map(|devices| devices.ids().map(|id| id.0).collect())
            .unwrap_or_default(),
        fingerprint,
        loaded_host_callback_handles: Vec::new(),
        ready_future_handle: Some(EXECUTABLE_READY),
        mpmd_addressable_devices_oneof: None,
        loaded_executable_handle: call.session.tables.add_executable(executable),
    })
}

#[cfg(test)]
mod tests;
