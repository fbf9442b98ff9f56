//! What executables say of themselves.

use bytes::Bytes;
use prost::Message;

use super::{Case, case, each_way, reload};
use crate::array::ArrayRef;
use crate::conformance::check::{Check, check, equal, refused};
use crate::conformance::data::{Host, i32s};
use crate::conformance::fixture::Fixture;
use crate::conformance::program::ProgramKind;
use crate::dtype::DType;
use crate::executable::{CompiledMemoryStats, ExecuteOptions, LoadedExecutable};
use crate::memory::MemoryKind;
use crate::proto::xla::ifrt::SerializedXlaExecutableMetadata;
use crate::sharding::ShardingKind;
use crate::status::{Code, Result};
use crate::xla::HloSharding;

pub(super) const CASES: &[Case] = &[
    case("EXE-01", "names_shardings_and_memories", exe_01),
    case("EXE-02", "hlo_modules", exe_02),
    case("EXE-03", "human_readable_program_text", exe_03),
    case("EXE-04", "memory_and_cost", exe_04),
    case("EXE-05", "donatable_inputs", exe_05),
    case("EXE-15", "tokens", exe_15),
    case("EXE-16", "serialized", exe_16),
];

/// The value, or `None` if the runtime does not know.
#[track_caller]
fn known<T: std::fmt::Debug>(result: Result<T>) -> Check<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        unknown => refused(unknown, Code::Unimplemented, "an optional question").map(|_| None),
    }
}

fn exe_01(fx: &Fixture) -> Check {
    let devices = fx.devices(2)?;
    let (tiled, whole) = (HloSharding::tile([2, 1])?, HloSharding::Replicated);
    each_way(fx, ProgramKind::AddSub, &devices, |executable| {
        equal(executable.name(), "add_sub", "the name")?;
        equal(executable.num_devices(), 2, "the number of devices")?;
        equal(executable.devices(), Some(&devices), "the devices")?;
        let reachable: Vec<_> = executable
            .addressable_devices()
            .iter()
            .map(|d| d.id())
            .collect();
        equal(
            reachable,
            devices.ids().collect::<Vec<_>>(),
            "the addressable devices",
        )?;
        let parameters = Some(vec![tiled.clone(), whole.clone()]);
        equal(
            executable.parameter_shardings(),
            parameters,
            "the parameters",
        )?;
        let outputs = Some(vec![whole.clone(), tiled.clone()]);
        equal(executable.output_shardings(), outputs, "the outputs")?;
        if let Some(kinds) = known(executable.output_memory_kinds())? {
            equal(
                kinds,
                vec![vec!["device".to_owned(); 2]],
                "the memories of the outputs",
            )?;
        }
        Ok(())
    })
}

fn exe_02(fx: &Fixture) -> Check {
    fx.needs(fx.caps.hlo_modules, "modules of executables")?;
    each_way(fx, ProgramKind::Add, &fx.devices(1)?, |executable| {
        let modules = executable.hlo_modules()?;
        equal(modules.len(), 1, "the number of modules")?;
        equal(
            modules[0].name()?,
            "add".to_owned(),
            "the name of the module",
        )
    })
}

fn exe_03(fx: &Fixture) -> Check {
    each_way(fx, ProgramKind::Add, &fx.devices(1)?, |executable| {
        let text = executable.human_readable_program_text()?;
        check(
            text.contains("add"),
            &format!("`{text}` contains the operation"),
        )
    })
}

fn exe_04(fx: &Fixture) -> Check {
    each_way(fx, ProgramKind::Add, &fx.devices(1)?, |executable| {
        if let Some(stats) = known(executable.compiled_memory_stats())? {
            check(stats.argument_size_bytes > 0, "the arguments take memory")?;
        }
        if fx.caps.cost_analysis {
            check(!executable.cost_analysis()?.is_empty(), "the cost is told")?;
        }
        Ok(())
    })
}

fn exe_05(fx: &Fixture) -> Check {
    each_way(fx, ProgramKind::Four, &fx.devices(1)?, |executable| {
        let mut indices = executable.donatable_input_indices()?;
        indices.sort_unstable();
        equal(indices, vec![0, 2], "the inputs that a run consumes")
    })
}

fn exe_15(fx: &Fixture) -> Check {
    fx.needs(fx.caps.tokens, "tokens")?;
    let devices = fx.devices(2)?;
    each_way(fx, ProgramKind::Token, &devices, |executable| {
        equal(executable.num_devices(), 2, "the number of devices")
    })
}

/// What must be the same of an executable and of its serialized form.
#[derive(Debug, PartialEq)]
struct Description {
    name: String,
    layouts: [Option<Vec<crate::Layout>>; 2],
    shardings: [Option<Vec<HloSharding>>; 2],
    memory: Option<CompiledMemoryStats>,
}

fn describe(executable: &dyn LoadedExecutable) -> Check<Description> {
    let memory = known(executable.compiled_memory_stats())?;
    Ok(Description {
        name: executable.name().to_owned(),
        layouts: [
            known(executable.parameter_layouts())?,
            known(executable.output_layouts())?,
        ],
        shardings: [
            executable.parameter_shardings(),
            executable.output_shardings(),
        ],
        // How memory is allocated in detail does not survive.
        memory: memory.map(|stats| CompiledMemoryStats {
            total_allocation_bytes: 0,
            indefinite_allocations: 0,
            peak_unpadded_heap_bytes: 0,
            ..stats
        }),
    })
}

fn exe_16(fx: &Fixture) -> Check {
    fx.needs(fx.caps.serialized_executables, "serialized executables")?;
    let devices = fx.devices(2)?;
    let compiled = fx.load(ProgramKind::AddSub, &devices)?;
    let serialized = compiled.serialize()?;
    if fx.client.runtime_type() == "pjrt_ifrt" {
        check_metadata(serialized.clone(), &*compiled)?;
    }
    let loaded = reload(fx, serialized, Some(devices.clone()))?;
    equal(
        describe(&*loaded)?,
        describe(&*compiled)?,
        "the executable that was loaded",
    )?;
    let (version, again) = (compiled.executable_version(), loaded.executable_version());
    if let (Some(version), Some(again)) = (known(version)?, known(again)?) {
        equal(again, version, "the version")?;
    }
    let host = Host::iota(DType::S32, &[2, 3])?;
    let kind = MemoryKind::default();
    let tiled = ShardingKind::Hlo(HloSharding::tile([2, 1])?);
    let args: [ArrayRef; 2] = [
        fx.put_cut(&host, &fx.sharding(tiled, &devices, &kind)?)?,
        fx.put(&host, &fx.replicated(&devices, &kind)?)?,
    ];
    let run = loaded.execute(&args, &ExecuteOptions::default(), None)?;
    equal(run.outputs.len(), 2, "the number of outputs")?;
    let sum = Host::i32(&[2, 3], &[0, 2, 4, 6, 8, 10])?;
    let difference = Host::i32(&[2, 3], &[0; 6])?;
    for shard in fx.read_shards(&run.outputs[0])? {
        equal(shard, sum.bytes.clone(), "the sum")?;
    }
    for shard in fx.read_shards(&run.outputs[1])? {
        equal(shard, i32s(&[0; 3]), "a shard of the difference")?;
    }
    equal(
        run.outputs[1].shape(),
        &difference.shape,
        "the shape of the difference",
    )
}

/// The bytes of the reference runtime begin with metadata that others read.
fn check_metadata(mut serialized: Bytes, executable: &dyn LoadedExecutable) -> Check {
    let decoded = SerializedXlaExecutableMetadata::decode_length_delimited(&mut serialized);
    let metadata = decoded.map_err(crate::Status::from)?;
    check(!serialized.is_empty(), "an executable follows the metadata")?;
    equal(
        metadata.computation_name,
        "add_sub".to_owned(),
        "the name in the metadata",
    )?;
    equal(
        metadata.output_specs.len(),
        2,
        "the number of outputs in the metadata",
    )?;
    let kinds = known(executable.output_memory_kinds())?;
    let shardings = executable.output_shardings().unwrap_or_default();
    for (position, spec) in metadata.output_specs.iter().enumerate() {
        let what = format!("output {position} in the metadata");
        let kind = kinds
            .as_ref()
            .and_then(|kinds| kinds.first()?.get(position));
        if let Some(kind) = kind {
            equal(&spec.memory_kind, kind, &what)?;
        }
        let dtype = spec.dtype.as_ref().map(|dtype| dtype.kind);
        equal(dtype, Some(DType::S32.to_proto_kind()), &what)?;
        if let (Some(sharding), Some(proto)) = (shardings.get(position), &spec.op_sharding) {
            equal(&HloSharding::from_proto(proto)?, sharding, &what)?;
        }
    }
    Ok(())
}
