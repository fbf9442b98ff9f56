//! Compiling programs on the server.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/client/compiler.cc`.

use std::sync::{Arc, Weak};

use ifrt::proto::xla::device_assignment_proto::ComputationDevice;
use ifrt::proto::xla::{CompileOptionsProto, DeviceAssignmentProto, ExecutableBuildOptionsProto};
use ifrt::serdes::{compile_options_to_proto, program_to_proto};
use ifrt::user_context;
use ifrt::{
    CompileOptions, Compiler, Completion, DeviceList, LoadedExecutableRef, Program, Result, Status,
    XlaCompileOptions,
};
use prost::Message;

use super::ProxyClient;
use super::executable::ProxyExecutable;
use super::response::body;
use crate::proto::xla::ifrt::proxy::CompileRequest;
use crate::proto::xla::ifrt::proxy::ifrt_request::Request;

/// Compiles programs on the server.
#[derive(Debug)]
pub(super) struct ProxyCompiler {
    client: Weak<ProxyClient>,
}

impl ProxyCompiler {
    pub(super) const fn new(client: Weak<ProxyClient>) -> Self {
        Self { client }
    }

    fn begin(
        &self,
        program: &Program,
        options: CompileOptions,
    ) -> Result<Completion<LoadedExecutableRef>> {
        let client = self.client.upgrade().ok_or_else(|| {
            Status::failed_precondition("the client of this compiler has been dropped")
        })?;
        let session = client.session();
        let slice_sizes = options.outputs_bundle_slice_sizes().map(<[usize]>::to_vec);
        let options = match options {
            CompileOptions::Xla(options) => CompileOptions::Xla(on_the_wire(&client, options)?),
            CompileOptions::CustomCall(mut options) => {
                options.outputs_bundle_slice_sizes = None;
                CompileOptions::CustomCall(options)
            }
            other => other,
        };
        let request = CompileRequest {
            program: Some(program_to_proto(program, session.serdes())?),
            compile_options: Some(compile_options_to_proto(&options, session.serdes())?),
            host_callbacks: Vec::new(),
        };
        let context = user_context::current();
        let (promise, completion) = Completion::pair();
        // The client must live until the executable is there.
        let keep = Arc::clone(&client);
        session.send(Request::CompileRequest(request), move |answer| {
            let _scope = user_context::scope(context);
            promise.set(
                answer
                    .and_then(|response| body!(response, CompileResponse))
                    .and_then(|response| ProxyExecutable::load(&keep, response, slice_sizes)),
            );
        });
        Ok(completion)
    }
}

impl Compiler for ProxyCompiler {
    fn compile_and_load(
        &self,
        program: Program,
        options: CompileOptions,
    ) -> Completion<LoadedExecutableRef> {
        self.begin(&program, options)
            .unwrap_or_else(|status| Completion::ready(Err(status)))
    }
}

/// The options as the server needs them.
///
/// The list of devices is not on the wire, so it goes into the device assignment. Bundles are made
/// here: the server need not know of them.
///
/// # Errors
/// INVALID_ARGUMENT for malformed options and for devices that are not those of the options.
fn on_the_wire(client: &ProxyClient, options: XlaCompileOptions) -> Result<XlaCompileOptions> {
    let view = options.view()?;
    let XlaCompileOptions {
        compile_options,
        devices,
        ..
    } = options;
    let with = |compile_options| XlaCompileOptions {
        compile_options,
        devices: None,
        outputs_bundle_slice_sizes: None,
    };
    let Some(devices) = devices else {
        return Ok(with(compile_options));
    };
    client.check_devices(&devices)?;
    let build = view.executable_build_options.unwrap_or_default();
    if let Some(assignment) = &build.device_assignment {
        let named = XlaCompileOptions {
            compile_options: CompileOptionsProto {
                executable_build_options: Some(ExecutableBuildOptionsProto {
                    device_assignment: Some(assignment.clone()),
                    ..ExecutableBuildOptionsProto::default()
                }),
                ..CompileOptionsProto::default()
            }
            .encode_to_vec()
            .into(),
            ..XlaCompileOptions::default()
        };
        let named = named.resolve_devices(client)?;
        if named != devices {
            return Err(Status::invalid_argument(format!(
                "the device assignment of the compile options names the devices {named}, but the \
                 program is to run on {devices}"
            )));
        }
        return Ok(with(compile_options));
    }
    // A message that follows another one adds its fields to it. So what we do not know stays.
    let addition = CompileOptionsProto {
        executable_build_options: Some(ExecutableBuildOptionsProto {
            device_assignment: Some(assignment(&devices, build.num_replicas)?),
            ..ExecutableBuildOptionsProto::default()
        }),
        ..CompileOptionsProto::default()
    };
    let mut bytes = compile_options.to_vec();
    addition
        .encode(&mut bytes)
        .map_err(|error| Status::internal(format!("compile options cannot be written: {error}")))?;
    Ok(with(bytes.into()))
}

/// An assignment of devices that stand replica by replica.
fn assignment(devices: &DeviceList, num_replicas: i64) -> Result<DeviceAssignmentProto> {
    let wrong = || {
        Status::invalid_argument(format!(
            "{} devices are not enough for {num_replicas} replicas of equally many partitions",
            devices.len()
        ))
    };
    let replicas = usize::try_from(num_replicas.max(1)).map_err(|_| wrong())?;
    if devices.is_empty() || !devices.len().is_multiple_of(replicas) {
        return Err(wrong());
    }
    let partitions = devices.len() / replicas;
    let ids: Vec<i64> = devices.ids().map(|id| i64::from(id.0)).collect();
    let count = |number: usize| i32::try_from(number).map_err(|_| wrong());
    Ok(DeviceAssignmentProto {
        replica_count: count(replicas)?,
        computation_count: count(partitions)?,
        computation_devices: (0..partitions)
            .map(|partition| ComputationDevice {
                replica_device_ids: ids
                    .iter()
                    .copied()
                    .skip(partition)
                    .step_by(partitions)
                    .collect(),
            })
            .collect(),
    })
}
