//! SD: values that are written and read again, at every version.

use std::sync::Arc;

use bytes::Bytes;
use ifrt::program::{
    CompileOptions, CustomCallCompileOptions, CustomCallProgram, HloProgram, PluginProgram,
    Program, XlaCompileOptions,
};
use ifrt::proto::xla::OpSharding;
use ifrt::proto::xla::ifrt::{
    AbstractArraySpecProto, CustomCallCompileOptionsProto, HloShardingProto, Serialized,
    XlaCompileOptionsProto,
};
use ifrt::remap_plan::{Interval, Mapping, RemapPlan};
use ifrt::serdes::*;
use ifrt::shape::{BoundedDynamicShapeTag, DynamicShape};
use ifrt::sharding::{ShardingKind, ShardingParam};
use ifrt::xla::HloSharding;
use ifrt::{
    AbstractArraySpec, ArraySpec, Client, Code, DType, DeviceList, ExecuteOptions, IndexDomain,
    Layout, MemoryKind, Result, Shape, Sharding, ShardingRef, ShardingSpec,
};
use prost::Message;

use super::{client, read_sharding, read_spec, serialized, write_sharding, write_spec};
use crate::values::{assert_hash_is_consistent, assert_invalid};

fn shape(dims: &[i64]) -> Shape {
    Shape::new(dims).unwrap()
}

fn bounded(dim: i64) -> DynamicShape {
    let tag = BoundedDynamicShapeTag::new([true]).unwrap();
    DynamicShape::new(shape(&[dim]), tag).unwrap()
}

fn devices(count: usize) -> DeviceList {
    client(12).devices()[..count].iter().cloned().collect()
}

fn param(unreduced: &[i32]) -> ShardingParam {
    ShardingParam::new(vec![1, 1], vec![0], vec![2], unreduced.into()).unwrap()
}

/// A partitioning of each kind over two devices.
fn kinds() -> Vec<ShardingKind> {
    vec![
        ShardingKind::concrete(shape(&[10, 20]), vec![shape(&[3, 20]), shape(&[7, 20])]),
        ShardingKind::ConcreteDynamic {
            shape: bounded(10),
            shard_shapes: vec![bounded(3), bounded(7)],
        },
        ShardingKind::ConcreteEven {
            shape: shape(&[10]),
            shard_shape: shape(&[10]),
            is_fully_replicated: true,
        },
        ShardingKind::Param(ShardingParam::new(vec![2, 1], vec![0], vec![2], vec![]).unwrap()),
        ShardingKind::Hlo(HloSharding::tile([2, 1]).unwrap()),
        ShardingKind::Hlo(HloSharding::Replicated),
    ]
}

fn abc(kind: ShardingKind, count: usize) -> ShardingRef {
    let memory = MemoryKind::new("abc");
    Arc::new(Sharding::new(kind, devices(count), memory).unwrap())
}

#[test]
fn sd_04_and_sd_06_shardings() -> Result<()> {
    let mut shardings = vec![abc(ShardingKind::SingleDevice, 1)];
    shardings.extend(kinds().into_iter().map(|kind| abc(kind, 2)));
    for version in SerDesVersion::all() {
        for sharding in &shardings {
            let Serialized { type_name, data } = write_sharding(sharding, version)?;
            let name = sharding.kind().name();
            assert_eq!(type_name, format!("xla::ifrt::{name}"));
            assert_eq!(read_sharding(name, data)?, *sharding);
        }
        let opaque = abc(ShardingKind::opaque(), 2);
        let written = write_sharding(&opaque, version)?;
        let read = read_sharding("OpaqueSharding", written.data)?;
        assert_eq!(read.devices(), opaque.devices());
        assert_eq!(read.memory_kind(), opaque.memory_kind());
        assert_ne!(read, opaque);
    }
    Ok(())
}

#[test]
fn sd_05_unreduced_axes_are_of_version_1() -> Result<()> {
    let sharding = abc(ShardingKind::Param(param(&[0])), 2);
    let spec = sharding.sharding_spec();
    for version in SerDesVersion::all() {
        if version < SerDesVersion::UNREDUCED_AXES {
            for error in [
                write_sharding(&sharding, version).unwrap_err(),
                write_spec(spec, version).unwrap_err(),
            ] {
                assert_eq!(error.code(), Code::FailedPrecondition);
            }
            continue;
        }
        let written = write_sharding(&sharding, version)?;
        assert_eq!(
            read_sharding("ShardingParamSharding", written.data)?,
            sharding
        );
        let written = write_spec(spec, version)?;
        assert_eq!(read_spec("ShardingParamShardingSpec", written.data)?, *spec);
    }
    Ok(())
}

#[test]
fn sd_07_shardings_by_named_axes() {
    let proto = HloShardingProto {
        devices: Some(device_list_to_proto(&devices(2))),
        xla_op_sharding: Some(OpSharding {
            named_sharding: Some(Default::default()),
            ..OpSharding::default()
        }),
        ..HloShardingProto::default()
    };
    assert_invalid(
        read_sharding("HloSharding", proto.encode_to_vec()),
        "XLA HloShardingV3 format is not supported for serialization",
    );
}

#[test]
fn sd_08_sharding_specs() -> Result<()> {
    let mut specs = vec![ShardingSpec::single_device()];
    for kind in kinds() {
        specs.push(ShardingSpec::new(kind, 2)?);
    }
    for version in SerDesVersion::all() {
        for spec in &specs {
            let name = format!("{}Spec", spec.kind().name());
            let Serialized { type_name, data } = write_spec(spec, version)?;
            assert_eq!(type_name, format!("xla::ifrt::{name}"));
            assert_eq!(read_spec(&name, data)?, *spec);
        }
        let written = write_spec(&ShardingSpec::opaque(7)?, version)?;
        let read = read_spec("OpaqueShardingSpec", written.data)?;
        assert!(matches!(read.kind(), ShardingKind::Opaque(_)));
        assert_eq!(read.num_shards(), 7);
    }
    Ok(())
}

#[test]
fn index_domains_are_not_dropped_silently() {
    let kind = ShardingKind::Concrete {
        shape: shape(&[2]),
        shard_shapes: vec![shape(&[1]), shape(&[1])],
        index_domains: Some([0, 1].map(|at| IndexDomain::new([at], shape(&[1]))).into()),
    };
    let sharding = abc(kind, 2);
    for error in [
        write_sharding(&sharding, SerDesVersion::CURRENT).unwrap_err(),
        write_spec(sharding.sharding_spec(), SerDesVersion::CURRENT).unwrap_err(),
    ] {
        assert_eq!(error.code(), Code::Unimplemented);
        assert!(error.message().contains("Index domains"), "{error}");
    }
}

fn spec(layout: Option<&str>) -> ArraySpec {
    let kind = ShardingKind::ConcreteEven {
        shape: shape(&[4, 2]),
        shard_shape: shape(&[2, 2]),
        is_fully_replicated: false,
    };
    ArraySpec {
        dtype: DType::S32,
        shape: shape(&[4, 2]),
        sharding: abc(kind, 2),
        layout: layout.map(|text| Layout::parse(text).unwrap()),
    }
}

#[test]
fn sd_09_array_specs() -> Result<()> {
    let specs = || [spec(None), spec(Some("{1,0}")), spec(Some("{0,1}"))];
    assert_hash_is_consistent(&specs(), &specs());
    for version in SerDesVersion::all() {
        for spec in specs() {
            let proto = array_spec_to_proto(&spec, version)?;
            assert_eq!(array_spec_from_proto(&proto, &*client(12))?, spec);
        }
    }
    Ok(())
}

#[test]
fn sd_10_abstract_array_specs() -> Result<()> {
    let concrete = spec(Some("{1,0}"));
    let spec = concrete.to_abstract();
    assert_eq!((spec.dtype, &spec.shape), (DType::S32, &shape(&[4, 2])));
    assert_eq!(spec.sharding_spec, *concrete.sharding.sharding_spec());
    assert_eq!(spec.memory_kind, MemoryKind::new("abc"));
    assert_eq!(spec.layout, concrete.layout);
    assert_eq!(spec.to_array_spec(devices(2))?, concrete);
    assert_invalid(spec.to_array_spec(devices(3)), "requires 2 devices");
    let make = || {
        let default = MemoryKind::default();
        [
            spec.clone(),
            AbstractArraySpec {
                layout: None,
                ..spec.clone()
            },
            AbstractArraySpec {
                memory_kind: default,
                ..spec.clone()
            },
        ]
    };
    assert_hash_is_consistent(&make(), &make());
    for version in SerDesVersion::all() {
        for spec in make() {
            let proto = abstract_array_spec_to_proto(&spec, version);
            if version < SerDesVersion::ABSTRACT_ARRAY_SPEC {
                assert_eq!(proto.unwrap_err().code(), Code::FailedPrecondition);
            } else {
                assert_eq!(abstract_array_spec_from_proto(&proto?)?, spec);
            }
        }
    }
    let without_spec = AbstractArraySpecProto {
        sharding_spec: None,
        ..abstract_array_spec_to_proto(&spec, SerDesVersion::CURRENT)?
    };
    assert_invalid(
        abstract_array_spec_from_proto(&without_spec),
        "AbstractArraySpec has no sharding_spec",
    );
    let text = spec.to_string();
    assert!(
        text.starts_with("AbstractArraySpec(dtype=s32, shape=[4,2], sharding_spec=ConcreteEven")
            && text.ends_with("memory_kind=abc, layout={1,0})"),
        "{text}"
    );
    Ok(())
}

#[test]
fn sd_11_execute_options() -> Result<()> {
    let options = ExecuteOptions {
        launch_id: 1234,
        non_donatable_input_indices: [0, 3].into(),
        fill_status: true,
        execution_stream_id: -7,
        custom_options: Some([("foo", "bar")].into_iter().collect()),
    };
    let proto = execute_options_to_proto(&options)?;
    assert_eq!(execute_options_from_proto(&proto)?, options);
    Ok(())
}

fn custom_call() -> CustomCallProgram {
    CustomCallProgram {
        program_type: "test type".into(),
        name: "test name".into(),
        serialized_program_text: Bytes::from_static(b"test\0program\0text"),
        devices: devices(2),
        input_specs: vec![spec(None)],
        output_specs: vec![spec(Some("{0,1}"))],
    }
}

#[test]
fn sd_12_custom_call_programs() -> Result<()> {
    let program = custom_call();
    for version in SerDesVersion::all() {
        let wire = program_to_proto(&Program::CustomCall(program.clone()), version)?;
        assert_eq!(wire.type_name, "xla::ifrt::CustomCallProgram");
        let Program::CustomCall(found) = program_from_proto(&wire, &*client(12))? else {
            panic!("not a custom call");
        };
        assert_eq!(found, program);
    }
    let elsewhere = CustomCallProgram {
        devices: devices(1),
        ..program
    };
    let wire = program_to_proto(&Program::CustomCall(elsewhere), SerDesVersion::CURRENT)?;
    assert_invalid(
        program_from_proto(&wire, &*client(12)),
        "input #0 of the custom call program \"test name\" is on device 1",
    );
    Ok(())
}

#[test]
fn sd_13_options_of_custom_calls() -> Result<()> {
    let read = |wire: &Serialized| match compile_options_from_proto(wire)? {
        CompileOptions::CustomCall(options) => Ok::<_, ifrt::Status>(options),
        other => panic!("{other:?}"),
    };
    let with = |sizes: Option<Vec<usize>>| CustomCallCompileOptions {
        outputs_bundle_slice_sizes: sizes,
    };
    for version in SerDesVersion::all() {
        let write =
            |sizes| compile_options_to_proto(&CompileOptions::CustomCall(with(sizes)), version);
        let plain = write(None)?;
        assert_eq!(
            plain.data.is_empty(),
            version < SerDesVersion::BUNDLE_SLICE_SIZES
        );
        assert_eq!(read(&plain)?, with(None));
        let sizes = write(Some(vec![2, 3]));
        if version < SerDesVersion::BUNDLE_SLICE_SIZES {
            assert_eq!(sizes.unwrap_err().code(), Code::FailedPrecondition);
        } else {
            assert_eq!(read(&sizes?)?, with(Some(vec![2, 3])));
        }
    }
    let negative = CustomCallCompileOptionsProto {
        version_number: 4,
        outputs_bundle_slice_sizes: vec![2, -1],
    };
    let wire = serialized("CustomCallCompileOptions", negative.encode_to_vec());
    assert_invalid(compile_options_from_proto(&wire), "has the size -1");
    Ok(())
}

#[test]
fn sd_14_plugin_programs() -> Result<()> {
    let program = PluginProgram {
        data: Bytes::from_static(b"any\0thing"),
    };
    for version in SerDesVersion::all() {
        let wire = program_to_proto(&Program::Plugin(program.clone()), version)?;
        assert_eq!(&wire.data[..], b"__serialized_plugin_program any\0thing");
        let Program::Plugin(found) = program_from_proto(&wire, &*client(1))? else {
            panic!("not a plugin program");
        };
        assert_eq!(found, program);
        let options = compile_options_to_proto(&CompileOptions::Plugin, version)?;
        assert!(options.data.is_empty());
        let read = compile_options_from_proto(&options)?;
        assert!(matches!(read, CompileOptions::Plugin));
        assert_eq!(read.outputs_bundle_slice_sizes(), None);
    }
    assert_invalid(
        program_from_proto(&serialized("PluginProgram", "anything"), &*client(1)),
        "Bad serialized xla::ifrt::PluginProgram",
    );
    Ok(())
}

#[test]
fn sd_15_remap_plans() -> Result<()> {
    let every_other = |start| Interval {
        start,
        end: start + 1,
        step: 2,
    };
    let mappings = vec![Mapping {
        in_array: 0,
        out_array: 0,
        from: vec![every_other(0), every_other(1)],
        to: vec![every_other(0), every_other(1)],
    }];
    let (input, output) = (vec![spec(None)], vec![spec(None)]);
    let optimized = RemapPlan::create_optimized(input, output, mappings)?;
    let plain = RemapPlan {
        input_devices_for_output_map: Default::default(),
        ..optimized.clone()
    };
    for version in SerDesVersion::all() {
        for plan in [&plain, &optimized] {
            let proto = remap_plan_to_proto(plan, version)?;
            assert_eq!(remap_plan_from_proto(&proto, &*client(12))?, *plan);
        }
    }
    Ok(())
}

#[test]
fn sd_17_modules_are_passed_on_at_versions_that_exist() -> Result<()> {
    let module = Bytes::from_static(b"ML\xefR\rStableHLO_v1.13.7\0");
    for version in SerDesVersion::all() {
        let program = Program::Hlo(HloProgram {
            module: module.clone(),
        });
        let wire = program_to_proto(&program, version);
        if version < SerDesVersion::MIXED_STABLEHLO {
            assert_eq!(wire.unwrap_err().code(), Code::FailedPrecondition);
            continue;
        }
        let wire = wire?;
        assert_eq!(wire, serialized("XlaProgram", module.clone()));
        let Program::Hlo(found) = program_from_proto(&wire, &*client(1))? else {
            panic!("not a module");
        };
        assert_eq!(found.module, module);
    }
    Ok(())
}

#[test]
fn what_is_only_passed_on_keeps_fields_that_we_do_not_know() -> Result<()> {
    // Field 999 of the options, field 15 of a program of a kind that we do not know.
    let options = Bytes::from_static(b"\x20\x01\xba\x3e\x03new");
    let proto = XlaCompileOptionsProto {
        compile_options: options.clone(),
        ..XlaCompileOptionsProto::default()
    };
    let wire = serialized("XlaCompileOptions", proto.encode_to_vec());
    let read = compile_options_from_proto(&wire)?;
    let CompileOptions::Xla(XlaCompileOptions {
        compile_options, ..
    }) = &read
    else {
        panic!("not options of XLA");
    };
    assert_eq!(*compile_options, options);
    assert_eq!(
        compile_options_to_proto(&read, SerDesVersion::MINIMUM)?,
        wire
    );
    let program = serialized("IfrtIRProgram", &b"\x7a\x03new"[..]);
    let read = program_from_proto(&program, &*client(1))?;
    assert_eq!(program_to_proto(&read, SerDesVersion::MINIMUM)?, program);
    let options = serialized("IfrtIRCompileOptions", &b"\x7a\x03new"[..]);
    let read = compile_options_from_proto(&options)?;
    assert_eq!(
        compile_options_to_proto(&read, SerDesVersion::MINIMUM)?,
        options
    );
    Ok(())
}

#[test]
fn devices_of_compile_options() -> Result<()> {
    use ifrt::proto::xla::{CompileOptionsProto, ExecutableBuildOptionsProto};
    let client = client(4);
    let resolve = |proto: CompileOptionsProto| {
        let options = XlaCompileOptions {
            compile_options: proto.encode_to_vec().into(),
            ..XlaCompileOptions::default()
        };
        options.resolve_devices(&*client)
    };
    let build = |device_ordinal, num_replicas, num_partitions| CompileOptionsProto {
        executable_build_options: Some(ExecutableBuildOptionsProto {
            device_ordinal,
            num_replicas,
            num_partitions,
            ..ExecutableBuildOptionsProto::default()
        }),
        ..CompileOptionsProto::default()
    };
    let text = |proto| resolve(proto).map(|devices| devices.to_string());
    assert_eq!(text(build(2, 1, 1))?, "[2]");
    assert_eq!(text(build(-1, 1, 3))?, "[0,1,2]");
    assert_invalid(text(build(9, 1, 1)), "device_id 9");
    assert_invalid(text(build(i64::MAX, 1, 1)), "is too large");
    assert_invalid(text(build(-1, -1, 1)), "ask for -1 replicas");
    let given = XlaCompileOptions {
        devices: Some(devices(2)),
        ..XlaCompileOptions::default()
    };
    assert_eq!(given.resolve_devices(&*client)?, devices(2));
    let mut portable = build(-1, 1, 1);
    portable.compile_portable_executable = true;
    assert_eq!(text(portable)?, "[0]");
    Ok(())
}
