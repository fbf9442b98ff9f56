//! NEW-18: bytes that others computed (see `golden.py`), read into values and written from them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use ifrt::fake::FakeClient;
use ifrt::layout::CompactLayout;
use ifrt::program::{
    CompileOptions, CustomCallCompileOptions, CustomCallProgram, Program, XlaCompileOptions,
};
use ifrt::proto::xla::ifrt::ConcreteShardingProto;
use ifrt::remap_plan::{InputDevices, Interval, Mapping, RemapPlan};
use ifrt::serdes::*;
use ifrt::shape::{BoundedDynamicShapeTag, DynamicShape};
use ifrt::sharding::{ShardingKind, ShardingParam};
use ifrt::xla::{DeviceOrder, HloSharding, SubgroupType, TileAssignment};
use ifrt::{
    AbstractArraySpec, ArraySpec, AttributeMap, AttributeValue, Client, DType, DeviceId,
    DeviceList, ExecuteOptions, Index, IndexDomain, Layout, MemoryKind, Result, Shape, Sharding,
    ShardingRef, ShardingSpec, Status,
};
use prost::Message;

use super::{client, read_sharding, read_spec, serialized, write_sharding, write_spec};

/// The rows of the table by name. Each test takes those that it knows, so that the last one can
/// see whether a row was forgotten.
pub(super) fn table() -> BTreeMap<&'static str, Bytes> {
    let rows = include_str!("golden.txt").lines();
    rows.filter(|row| !row.is_empty() && !row.starts_with(['#', '[']))
        .map(|row| {
            let mut columns = row.split('|').map(str::trim);
            let (name, hex) = (columns.next().unwrap(), columns.next_back().unwrap());
            (name, bytes(hex))
        })
        .collect()
}

fn bytes(hex: &str) -> Bytes {
    assert!(hex.len().is_multiple_of(2), "{hex} is not whole bytes");
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

#[track_caller]
fn golden(name: &str) -> Bytes {
    let row = table().remove(name);
    assert!(row.is_some(), "the table has no {name}");
    row.unwrap()
}

/// Checks that the row is read as `value` and that `value` is written as the row.
#[track_caller]
fn check<P: Message + Default, T: PartialEq + Debug>(
    name: &str,
    value: &T,
    read: impl Fn(&P) -> Result<T>,
    write: impl Fn(&T) -> Result<P>,
) {
    let wire = golden(name);
    let proto = P::decode(wire.clone()).unwrap();
    assert_eq!(read(&proto).as_ref(), Ok(value), "{name}");
    assert_eq!(write(value).unwrap().encode_to_vec(), wire, "{name}");
}

fn shape(dims: &[i64]) -> Shape {
    Shape::new(dims).unwrap()
}

fn bounded(dims: &[i64], tag: &[bool]) -> DynamicShape {
    DynamicShape::new(shape(dims), BoundedDynamicShapeTag::new(tag).unwrap()).unwrap()
}

fn devices(client: &FakeClient, ids: &[i32]) -> DeviceList {
    let device = |id: &i32| client.lookup_device(DeviceId(*id)).unwrap();
    ids.iter().map(device).collect()
}

#[test]
fn values() {
    for (name, dtype) in [("dtype_f32", DType::F32), ("dtype_s1", DType::S1)] {
        check(name, &dtype, dtype_from_proto, |d| Ok(dtype_to_proto(*d)));
    }
    for (name, dims) in [("shape_2_3", &[2, 3][..]), ("shape_scalar", &[])] {
        check(name, &shape(dims), shape_from_proto, |s| {
            Ok(shape_to_proto(s))
        });
    }
    check(
        "dynamic_shape",
        &bounded(&[2, 4], &[false, true]),
        dynamic_shape_from_proto,
        |shape| Ok(dynamic_shape_to_proto(shape)),
    );
    let client = client(12);
    check(
        "device_list",
        &devices(&client, &[10, 11]),
        |proto| device_list_from_proto(proto, &*client),
        |list| Ok(device_list_to_proto(list)),
    );
    let index = Index::new([1, 2]).unwrap();
    check("index", &index, index_from_proto, |i| Ok(index_to_proto(i)));
    check(
        "index_domain",
        &IndexDomain::new([1, 2], shape(&[3, 4])),
        index_domain_from_proto,
        |domain| Ok(index_domain_to_proto(domain)),
    );
}

#[test]
fn attributes_options_and_statuses() {
    for (name, key, value) in [
        ("attribute_int64", "a", AttributeValue::Int64(-1)),
        ("attribute_list", "l", vec![1_i64, 2].into()),
        ("attribute_string", "s", "x".into()),
        ("attribute_bool", "b", false.into()),
        ("attribute_float", "f", 1.5_f32.into()),
    ] {
        let map: AttributeMap = [(key, value)].into_iter().collect();
        check(name, &map, attribute_map_from_proto, |map| {
            Ok(attribute_map_to_proto(map))
        });
    }
    let options = ExecuteOptions {
        launch_id: 1234,
        non_donatable_input_indices: [0, 3].into(),
        fill_status: true,
        custom_options: Some([("foo", "bar")].into_iter().collect()),
        ..ExecuteOptions::default()
    };
    check(
        "execute_options",
        &options,
        execute_options_from_proto,
        execute_options_to_proto,
    );
    check(
        "status",
        &Status::invalid_argument("no").with_payload("k", "v"),
        |proto| Ok(status_from_proto(proto).unwrap()),
        |status| Ok(status_to_proto(status)),
    );
}

#[test]
fn layouts() -> Result<()> {
    let compact = CompactLayout::new([1, 0])?;
    let proto = compact_layout_to_proto(&compact)?
        .serialized_layout
        .unwrap();
    assert_eq!(proto, serialized("CompactLayout", golden("compact_layout")));
    for (name, text) in [
        ("pjrt_layout", "{1,0:T(8,128)(2,1)E(4)}"),
        ("pjrt_layout_split", "{1,0:L(2)SC(1:200,400)}"),
    ] {
        let proto = layout_to_proto(&Layout::parse(text)?)?;
        let expected = serialized("PjRtLayout", golden(name));
        assert_eq!(proto.serialized_layout.as_ref(), Some(&expected));
        assert_eq!(layout_from_proto(&proto)?.to_string(), text);
    }
    Ok(())
}

/// Every sharding of the table: the rows that are read as it, the last of which is what we write.
fn shardings(client: &FakeClient) -> Vec<(&'static [&'static str], ShardingRef)> {
    let on = |ids: &[i32], memory: &str, kind| {
        let memory = MemoryKind::new(memory);
        Arc::new(Sharding::new(kind, devices(client, ids), memory).unwrap())
    };
    let even = |dims: &[i64], shard: &[i64], is_fully_replicated| ShardingKind::ConcreteEven {
        shape: shape(dims),
        shard_shape: shape(shard),
        is_fully_replicated,
    };
    let dynamic = |dim| bounded(&[dim], &[true]);
    let param = |tiles: &[i64], unreduced: &[i32]| {
        let param = ShardingParam::new(tiles.into(), vec![0], vec![2], unreduced.into());
        ShardingKind::Param(param.unwrap())
    };
    let hlo = ShardingKind::Hlo;
    let tiles = |dims: &[i64], order, subgroups: &[SubgroupType], replicate| {
        let tiles = TileAssignment::new(dims.into(), order, subgroups.into(), replicate);
        hlo(HloSharding::Tiled(tiles.unwrap()))
    };
    let iota = |dims: &[i64], perm: &[i32]| DeviceOrder::Iota {
        reshape_dims: dims.into(),
        transpose_perm: perm.into(),
    };
    let all = [0, 1, 2, 3];
    let copies = || hlo(HloSharding::Replicated);
    let grid = || hlo(HloSharding::tile([2, 2]).unwrap());
    vec![
        (
            &["single_unset", "single_device"],
            on(&[1], "device", ShardingKind::SingleDevice),
        ),
        (
            &["single_pinned"],
            on(&[1], "pinned_host", ShardingKind::SingleDevice),
        ),
        (
            &["concrete"],
            on(
                &[0, 1],
                "abc",
                ShardingKind::concrete(shape(&[10, 20]), vec![shape(&[3, 20]), shape(&[7, 20])]),
            ),
        ),
        (
            &["concrete_dynamic"],
            on(
                &[0, 1],
                "abc",
                ShardingKind::ConcreteDynamic {
                    shape: dynamic(10),
                    shard_shapes: vec![dynamic(3), dynamic(7)],
                },
            ),
        ),
        (
            &["even_unset", "even_device"],
            on(&[0, 1], "device", even(&[4, 3], &[2, 3], false)),
        ),
        (
            &["even_replicated"],
            on(&[0, 1], "device", even(&[4], &[4], true)),
        ),
        (&["param"], on(&[0, 1], "abc", param(&[2, 1], &[]))),
        (
            &["param_unreduced"],
            on(&[0, 1], "device", param(&[1], &[0])),
        ),
        (&["hlo_one_unset", "hlo_one"], on(&[1], "device", copies())),
        (&["hlo_pinned"], on(&[0], "pinned_host", copies())),
        (&["hlo_replicated"], on(&all, "device", copies())),
        (&["hlo_grid_unset", "hlo_grid"], on(&all, "device", grid())),
        (
            &["hlo_partial"],
            on(
                &all,
                "device",
                tiles(&[2, 1, 2], iota(&[2, 2], &[1, 0]), &[], true),
            ),
        ),
        (
            &["hlo_listed"],
            on(
                &all,
                "device",
                tiles(&[4], DeviceOrder::Explicit(vec![3, 1, 2, 0]), &[], false),
            ),
        ),
        (
            &["hlo_subgroup"],
            on(
                &all,
                "device",
                tiles(&[2, 2], iota(&[4], &[0]), &[SubgroupType::Manual], false),
            ),
        ),
        (
            &["hlo_maximal"],
            on(&[0, 1], "device", hlo(HloSharding::Maximal(1))),
        ),
        (
            &["hlo_manual"],
            on(&[0, 1], "device", hlo(HloSharding::Manual)),
        ),
    ]
}

#[test]
fn shardings_in_both_profiles_of_memory_kinds() {
    let client = client(12);
    for (rows, sharding) in shardings(&client) {
        let name = sharding.kind().name();
        for row in rows {
            let found = read_sharding(name, golden(row));
            assert_eq!(found.as_ref(), Ok(&sharding), "{row}");
        }
        let written = rows.last().unwrap();
        for version in SerDesVersion::all() {
            let result = write_sharding(&sharding, version);
            if *written == "param_unreduced" && version < SerDesVersion::UNREDUCED_AXES {
                let text = result.unwrap_err().to_string();
                assert!(text.contains("Unsupported IFRT SerDes version 0"), "{text}");
            } else if *written == "concrete_dynamic" {
                // Ours writes one of the fields in another place, which no reader minds.
                let fields = |data: Bytes| ConcreteShardingProto::decode(data).unwrap();
                let found = result.unwrap();
                assert_eq!(found.type_name, "xla::ifrt::ConcreteSharding");
                assert_eq!(found.data.len(), golden(written).len());
                assert_eq!(fields(found.data), fields(golden(written)));
            } else {
                assert_eq!(result, Ok(serialized(name, golden(written))), "{written}");
            }
        }
    }
    // Opaque shardings are equal to themselves only.
    for row in ["opaque_unset", "opaque_device"] {
        let found = read_sharding("OpaqueSharding", golden(row)).unwrap();
        assert_eq!(*found.devices(), devices(&client, &[0, 1]));
        let written = write_sharding(&found, SerDesVersion::MINIMUM);
        assert_eq!(
            written,
            Ok(serialized("OpaqueSharding", golden("opaque_device")))
        );
    }
}

#[test]
fn sharding_specs() {
    let dynamic = |dim| bounded(&[dim], &[true]);
    let param = ShardingParam::new(vec![2, 1], vec![0], vec![2], vec![]).unwrap();
    let make = |kind, count| ShardingSpec::new(kind, count).unwrap();
    for (row, spec) in [
        ("single_spec", ShardingSpec::single_device()),
        (
            "concrete_spec",
            make(
                ShardingKind::concrete(shape(&[10, 20]), vec![shape(&[3, 20]), shape(&[7, 20])]),
                2,
            ),
        ),
        (
            "concrete_dynamic_spec",
            make(
                ShardingKind::ConcreteDynamic {
                    shape: dynamic(10),
                    shard_shapes: vec![dynamic(3)],
                },
                1,
            ),
        ),
        ("even_spec", even_spec()),
        ("param_spec", ShardingSpec::param(param).unwrap()),
        (
            "hlo_spec",
            ShardingSpec::hlo(HloSharding::tile([2, 2]).unwrap(), 4).unwrap(),
        ),
    ] {
        let name = format!("{}Spec", spec.kind().name());
        assert_eq!(read_spec(&name, golden(row)).as_ref(), Ok(&spec), "{row}");
        for version in SerDesVersion::all() {
            let written = write_spec(&spec, version);
            assert_eq!(written, Ok(serialized(&name, golden(row))), "{row}");
        }
    }
    let opaque = read_spec("OpaqueShardingSpec", golden("opaque_spec")).unwrap();
    assert_eq!(opaque.num_shards(), 2);
    let written = write_spec(&opaque, SerDesVersion::CURRENT);
    assert_eq!(
        written,
        Ok(serialized("OpaqueShardingSpec", golden("opaque_spec")))
    );
}

fn even_spec() -> ShardingSpec {
    let kind = ShardingKind::ConcreteEven {
        shape: shape(&[4, 3]),
        shard_shape: shape(&[2, 3]),
        is_fully_replicated: false,
    };
    ShardingSpec::new(kind, 2).unwrap()
}

fn array_spec(client: &FakeClient, layout: Option<&str>) -> ArraySpec {
    let devices = devices(client, &[0, 1]);
    ArraySpec {
        dtype: DType::S32,
        shape: shape(&[4, 3]),
        sharding: even_spec()
            .to_sharding(devices, MemoryKind::default())
            .unwrap(),
        layout: layout.map(|text| Layout::parse(text).unwrap()),
    }
}

#[test]
fn array_specs_and_remap_plans() {
    let client = client(12);
    for version in SerDesVersion::all() {
        for (row, layout) in [
            ("array_spec", Some("{1,0:T(8,128)}")),
            ("array_spec_default", None),
        ] {
            check(
                row,
                &array_spec(&client, layout),
                |proto| array_spec_from_proto(proto, &*client),
                |spec| array_spec_to_proto(spec, version),
            );
        }
        let every_other = Interval {
            start: 0,
            end: 3,
            step: 2,
        };
        let of_input = InputDevices {
            in_array: 0,
            devices: devices(&client, &[0]),
        };
        let plan = RemapPlan {
            input_specs: vec![array_spec(&client, None)],
            output_specs: vec![array_spec(&client, None)],
            mappings: vec![Mapping {
                in_array: 0,
                out_array: 0,
                from: vec![every_other],
                to: vec![every_other],
            }],
            input_devices_for_output_map: [(0, vec![of_input])].into(),
        };
        check(
            "remap_plan",
            &plan,
            |proto| remap_plan_from_proto(proto, &*client),
            |plan| remap_plan_to_proto(plan, version),
        );
    }
}

#[test]
fn abstract_array_specs() {
    for (row, spec) in [
        (
            "abstract_spec",
            AbstractArraySpec {
                dtype: DType::S32,
                shape: shape(&[4, 3]),
                sharding_spec: even_spec(),
                memory_kind: MemoryKind::new("pinned_host"),
                layout: Some(Layout::parse("{0,1}").unwrap()),
            },
        ),
        (
            "abstract_spec_default",
            AbstractArraySpec {
                dtype: DType::F6E2M3FN,
                shape: Shape::scalar(),
                sharding_spec: ShardingSpec::single_device(),
                memory_kind: MemoryKind::default(),
                layout: None,
            },
        ),
    ] {
        check(row, &spec, abstract_array_spec_from_proto, |spec| {
            abstract_array_spec_to_proto(spec, SerDesVersion::CURRENT)
        });
    }
}

#[test]
fn programs_and_compile_options() -> Result<()> {
    let client = client(12);
    let program = CustomCallProgram {
        program_type: "t".into(),
        name: "n".into(),
        serialized_program_text: Bytes::from_static(b"a\0b"),
        devices: devices(&client, &[0, 1]),
        input_specs: vec![array_spec(&client, None)],
        output_specs: vec![],
    };
    let wire = serialized("CustomCallProgram", golden("custom_call"));
    let Program::CustomCall(found) = program_from_proto(&wire, &*client)? else {
        panic!("not a custom call");
    };
    assert_eq!(found, program);
    let sizes = CustomCallCompileOptions {
        outputs_bundle_slice_sizes: Some(vec![2, 3]),
    };
    for version in SerDesVersion::all() {
        let written = program_to_proto(&Program::CustomCall(program.clone()), version)?;
        assert_eq!(written, wire);
        let written = compile_options_to_proto(&CompileOptions::CustomCall(sizes.clone()), version);
        if version >= SerDesVersion::BUNDLE_SLICE_SIZES {
            let wire = serialized("CustomCallCompileOptions", golden("custom_call_options"));
            assert_eq!(written?, wire);
            let CompileOptions::CustomCall(found) = compile_options_from_proto(&wire)? else {
                panic!("not options of a custom call");
            };
            assert_eq!(found, sizes);
        } else {
            let text = written.unwrap_err().to_string();
            assert!(text.contains("with outputs_bundle_slice_sizes"), "{text}");
        }
    }
    Ok(())
}

#[test]
fn compile_options_of_xla() -> Result<()> {
    let read =
        |row| match compile_options_from_proto(&serialized("XlaCompileOptions", golden(row)))? {
            CompileOptions::Xla(options) => Ok::<_, Status>(options),
            other => panic!("{other:?}"),
        };
    let client = client(4);
    let old = read("compile_options")?;
    assert_eq!(old.outputs_bundle_slice_sizes, None);
    let build = old.view()?.executable_build_options.unwrap();
    assert_eq!((build.num_replicas, build.num_partitions), (1, 2));
    assert_eq!(old.resolve_devices(&*client)?, devices(&client, &[1, 0]));
    let new = read("compile_options_4")?;
    assert_eq!(new.outputs_bundle_slice_sizes, Some(vec![2, 3]));
    assert_eq!(new.resolve_devices(&*client)?, devices(&client, &[0]));
    let write = |options: &XlaCompileOptions, version| {
        compile_options_to_proto(&CompileOptions::Xla(options.clone()), version)
    };
    let wire = |row| serialized("XlaCompileOptions", golden(row));
    assert_eq!(
        write(&old, SerDesVersion::WEEK_4_OLD)?,
        wire("compile_options")
    );
    assert_eq!(
        write(&new, SerDesVersion::CURRENT)?,
        wire("compile_options_4")
    );
    assert!(write(&new, SerDesVersion::WEEK_4_OLD).is_err());
    Ok(())
}

#[test]
fn every_row_has_a_test() {
    let source = include_str!("golden.rs");
    for name in table().keys() {
        assert!(
            source.contains(&format!("\"{name}\"")),
            "no test takes {name}"
        );
    }
}
