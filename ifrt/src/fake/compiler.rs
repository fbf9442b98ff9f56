//! The compiler of the fake: reads a module and chooses devices.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Weak};

use bytes::{Buf, Bytes};
use prost::Message;

use super::client::FakeClient;
use super::executable::FakeExecutable;
use super::fault::Op;
use crate::client::Client;
use crate::compiler::Compiler;
use crate::completion::Completion;
use crate::device::{DeviceId, DeviceRef};
use crate::device_list::DeviceList;
use crate::executable::LoadedExecutableRef;
use crate::program::{CompileOptions, Program, XlaCompileOptions};
use crate::proto::xla::{CompileOptionsProto, DeviceAssignmentProto};
use crate::status::{Result, Status};

/// The devices to run on; `None` leaves them to each run.
type Devices = Option<DeviceList>;

pub(super) struct FakeCompiler {
    client: Weak<FakeClient>,
}

impl FakeCompiler {
    pub(super) const fn new(client: Weak<FakeClient>) -> Self {
        Self { client }
    }

    fn run(
        &self,
        compile: impl FnOnce(Arc<FakeClient>) -> Result<FakeExecutable>,
    ) -> Completion<LoadedExecutableRef> {
        let Some(client) = self.client.upgrade() else {
            return Completion::ready(Err(Status::failed_precondition(
                "the client of this compiler is gone",
            )));
        };
        let strike = client.faults().strike_completion(Op::Compile);
        let compiled = compile(client);
        strike.permit().then(move |permit| {
            permit.clone()?;
            compiled.map(|executable| Arc::new(executable) as LoadedExecutableRef)
        })
    }
}

impl Compiler for FakeCompiler {
    fn compile_and_load(
        &self,
        program: Program,
        options: CompileOptions,
    ) -> Completion<LoadedExecutableRef> {
        self.run(|client| {
            let (Program::Hlo(program), CompileOptions::Xla(options)) = (program, options) else {
                return Err(Status::unimplemented("the fake only compiles HLO programs"));
            };
            let loaded = client.with_programs(|programs| programs.load(&program.module))?;
            let devices = choose_devices(&client, &options, loaded.num_devices())?;
            let sizes = options.outputs_bundle_slice_sizes;
            FakeExecutable::new(client, loaded, program.module, devices, sizes)
        })
    }

    fn deserialize_loaded_executable(
        &self,
        serialized: Bytes,
        devices: Option<DeviceList>,
    ) -> Completion<LoadedExecutableRef> {
        self.run(|client| {
            let (own, sizes, module) = parse(&serialized)?;
            let devices = match (devices, own) {
                (Some(devices), _) => Some(devices),
                (None, Some(ids)) => Some(lookup(&client, ids)?),
                (None, None) => None,
            };
            let loaded = client.with_programs(|programs| programs.load(&module))?;
            FakeExecutable::new(client, loaded, module, devices, sizes)
        })
    }
}

/// The devices of the options, else of the device assignment in them, else the default ones.
fn choose_devices(
    client: &FakeClient,
    options: &XlaCompileOptions,
    needed: usize,
) -> Result<Devices> {
    let proto = CompileOptionsProto::decode(&options.compile_options[..])?;
    if proto.compile_portable_executable {
        return Ok(None);
    }
    let build = proto.executable_build_options.unwrap_or_default();
    if build.num_replicas > 1 {
        return Err(Status::unimplemented(format!(
            "the fake does not run {} replicas; use partitions",
            build.num_replicas
        )));
    }
    if let Some(devices) = &options.devices {
        return Ok(Some(devices.clone()));
    }
    if let Some(assignment) = &build.device_assignment {
        return lookup(client, assigned(assignment)?).map(Some);
    }
    let partitions = usize::try_from(build.num_partitions)
        .unwrap_or(0)
        .max(needed);
    let assignment = client.default_device_assignment(1, partitions)?;
    lookup(client, assignment.into_iter().flatten()).map(Some)
}

fn assigned(assignment: &DeviceAssignmentProto) -> Result<Vec<DeviceId>> {
    let device = |ids: &[i64]| match ids {
        [id] => i32::try_from(*id).ok().map(DeviceId),
        _ => None,
    };
    let rows = assignment.computation_devices.iter();
    let ids: Option<Vec<_>> = rows.map(|row| device(&row.replica_device_ids)).collect();
    ids.ok_or_else(|| {
        Status::invalid_argument(format!(
            "the device assignment must give each partition one device of one replica, but is \
             {assignment:?}"
        ))
    })
}

fn lookup(client: &FakeClient, ids: impl IntoIterator<Item = DeviceId>) -> Result<DeviceList> {
    let devices: Result<Vec<DeviceRef>> =
        ids.into_iter().map(|id| client.lookup_device(id)).collect();
    devices.map(DeviceList::new)
}

const MAGIC: &str = "ifrt fake executable";

/// The serialized form: a line that says what it is, one with the ids of the devices, one with the
/// sizes of the bundles (`-` for what there is not), and the module.
pub(super) fn serialize(
    devices: Option<&DeviceList>,
    slice_sizes: Option<&[usize]>,
    module: &[u8],
) -> Bytes {
    let ids = devices.map(|devices| devices.ids().map(|id| id.0).collect::<Vec<_>>());
    let mut serialized = format!("{MAGIC}\n{}\n{}\n", line(ids), line(slice_sizes)).into_bytes();
    serialized.extend_from_slice(module);
    serialized.into()
}

fn line<T: ToString>(numbers: Option<impl AsRef<[T]>>) -> String {
    let texts = |numbers: &[T]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>();
    numbers.map_or_else(
        || "-".to_owned(),
        |numbers| texts(numbers.as_ref()).join(","),
    )
}

type Parsed = (Option<Vec<DeviceId>>, Option<Vec<usize>>, Bytes);

fn parse(serialized: &Bytes) -> Result<Parsed> {
    let malformed =
        || Status::invalid_argument("these bytes are no serialized executable of the fake runtime");
    let mut rest = serialized.clone();
    let mut next_line = || {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = rest.split_to(end);
        rest.advance(1);
        String::from_utf8(line.into()).ok()
    };
    let (magic, ids, sizes) = (next_line(), next_line(), next_line());
    if magic.as_deref() != Some(MAGIC) {
        return Err(malformed());
    }
    let ids = numbers(ids.as_deref()).ok_or_else(malformed)?;
    let sizes = numbers(sizes.as_deref()).ok_or_else(malformed)?;
    Ok((
        ids.map(|ids| ids.into_iter().map(DeviceId).collect()),
        sizes,
        rest,
    ))
}

/// The numbers of a line; `None` if it is malformed.
fn numbers<T: FromStr>(line: Option<&str>) -> Option<Option<Vec<T>>> {
    match line? {
        "-" => Some(None),
        "" => Some(Some(Vec::new())),
        line => line
            .split(',')
            .map(|number| number.parse().ok())
            .collect::<Option<_>>()
            .map(Some),
    }
}

impl fmt::Debug for FakeCompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeCompiler")
    }
}
