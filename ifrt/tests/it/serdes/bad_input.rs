//! Messages that nobody should send: each is an INVALID_ARGUMENT that names what is wrong.

use ifrt::Code;
use ifrt::proto::xla::OpSharding;
use ifrt::proto::xla::ifrt::remap_plan_proto::MappingProto;
use ifrt::proto::xla::ifrt::{
    ArraySpecProto, DeviceListProto, ExecuteOptionsProto, HloShardingProto, HloShardingSpecProto,
    LayoutProto, OpaqueShardingSpecProto, RemapPlanProto, Serialized, ShapeProto, ShardingProto,
    ShardingSpecProto, SingleDeviceShardingProto,
};
use ifrt::serdes::{
    array_spec_from_proto, compile_options_from_proto, execute_options_from_proto,
    layout_from_proto, program_from_proto, remap_plan_from_proto, shape_from_proto,
    sharding_from_proto, sharding_spec_from_proto, xla_layout_from_proto,
};
use prost::Message;

use super::{client, read_sharding, read_spec, serialized};
use crate::values::assert_invalid;

#[test]
fn newer_formats_are_refused() {
    for version_number in [-1, 1, 99] {
        let single = SingleDeviceShardingProto {
            version_number,
            ..SingleDeviceShardingProto::default()
        };
        let error = read_sharding("SingleDeviceSharding", single.encode_to_vec()).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert_eq!(
            error.message(),
            format!(
                "Unsupported IFRT SerDes version {version_number} for SingleDeviceSharding \
                 deserialization"
            )
        );
        let shape = ShapeProto {
            version_number,
            ..ShapeProto::default()
        };
        let error = shape_from_proto(&shape).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
    }
}

#[test]
fn missing_parts_are_named() {
    let client = client(1);
    assert_invalid(
        sharding_from_proto(&ShardingProto::default(), &*client),
        "ShardingProto has no sharding",
    );
    assert_invalid(
        sharding_spec_from_proto(&ShardingSpecProto::default()),
        "ShardingSpecProto has no sharding spec",
    );
    assert_invalid(
        layout_from_proto(&LayoutProto::default()),
        "LayoutProto has no layout",
    );
    assert_invalid(
        array_spec_from_proto(&ArraySpecProto::default(), &*client),
        "ArraySpec has no dtype",
    );
    for (name, field) in [
        ("OpaqueSharding", "devices"),
        ("ConcreteSharding", "Shape or DynamicShape"),
        ("ConcreteEvenSharding", "shape"),
        ("ShardingParamSharding", "sharding_param"),
        ("HloSharding", "devices"),
    ] {
        assert_invalid(read_sharding(name, ""), &format!("{name} has no {field}"));
    }
    for (name, field) in [
        ("ConcreteShardingSpec", "Shape or DynamicShape"),
        ("ConcreteEvenShardingSpec", "shape"),
        ("ShardingParamShardingSpec", "sharding_param"),
    ] {
        assert_invalid(read_spec(name, ""), &format!("{name} has no {field}"));
    }
}

#[test]
fn unknown_kinds_are_named() {
    let client = client(1);
    let odd = || Serialized {
        type_name: "xla::ifrt::Odd".into(),
        ..Serialized::default()
    };
    let sharding = ShardingProto {
        serialized_sharding: Some(odd()),
    };
    let spec = ShardingSpecProto {
        serialized_sharding_spec: Some(odd()),
    };
    let layout = LayoutProto {
        serialized_layout: Some(odd()),
    };
    for error in [
        sharding_from_proto(&sharding, &*client).unwrap_err(),
        sharding_spec_from_proto(&spec).unwrap_err(),
        layout_from_proto(&layout).unwrap_err(),
    ] {
        assert_eq!(error.code(), Code::Unimplemented);
        assert!(error.message().contains("\"xla::ifrt::Odd\""), "{error}");
    }
}

#[test]
fn devices_and_numbers_that_do_not_exist() {
    let single = |device_id| {
        let proto = SingleDeviceShardingProto {
            device_id,
            ..SingleDeviceShardingProto::default()
        };
        read_sharding("SingleDeviceSharding", proto.encode_to_vec())
    };
    assert_invalid(single(99), "device_id 99");
    assert_invalid(single(-1), "device_id -1");
    for num_shards in [-1, 0, i32::MAX] {
        let proto = OpaqueShardingSpecProto {
            version_number: 0,
            num_shards,
        };
        let result = read_spec("OpaqueShardingSpec", proto.encode_to_vec());
        assert_invalid(result, &num_shards.to_string());
    }
    let options = ExecuteOptionsProto {
        non_donatable_input_indices: vec![0, -1],
        ..ExecuteOptionsProto::default()
    };
    assert_invalid(
        execute_options_from_proto(&options),
        "a non-donatable input index is negative",
    );
}

#[test]
fn tiles_that_no_machine_has() {
    let spec = |dims: &[i64], iota: &[i64]| {
        let proto = HloShardingSpecProto {
            num_shards: 1 << 24,
            xla_op_sharding: Some(OpSharding {
                r#type: 3,
                tile_assignment_dimensions: dims.to_vec(),
                iota_reshape_dims: iota.to_vec(),
                iota_transpose_perm: vec![0],
                ..OpSharding::default()
            }),
            ..HloShardingSpecProto::default()
        };
        read_spec("HloShardingSpec", proto.encode_to_vec())
    };
    for dims in [[i64::MAX, 2], [-1, -1], [0, 5], [1 << 20, 1 << 20]] {
        assert_invalid(spec(&dims, &[1 << 40]), "not positive or too large");
    }
    assert_invalid(
        spec(&[1 << 24], &[1 << 23]),
        "does not give each device one tile",
    );
    assert!(spec(&[1 << 24], &[1 << 24]).is_ok());
}

#[test]
fn remap_plans_of_other_shapes() {
    let client = client(2);
    let plan = |mapping| RemapPlanProto {
        mappings: vec![mapping],
        ..RemapPlanProto::default()
    };
    let read = |mapping| remap_plan_from_proto(&plan(mapping), &*client);
    let negative = MappingProto {
        in_array: -1,
        ..MappingProto::default()
    };
    assert_invalid(read(negative), "names the array -1");
    let uneven = MappingProto {
        from_start: vec![0],
        ..MappingProto::default()
    };
    assert_eq!(read(uneven).unwrap_err().code(), Code::Internal);
    let one_sided = MappingProto {
        from_start: vec![0],
        from_end: vec![1],
        from_step: vec![1],
        ..MappingProto::default()
    };
    assert_eq!(read(one_sided).unwrap_err().code(), Code::Internal);
}

#[test]
fn layouts_that_are_none() {
    use ifrt::proto::xla::{LayoutProto, TileProto};
    let layout = |minor_to_major: &[i64]| LayoutProto {
        minor_to_major: minor_to_major.to_vec(),
        ..LayoutProto::default()
    };
    assert_invalid(xla_layout_from_proto(&layout(&[0, 2])), "is no permutation");
    let negative = LayoutProto {
        tiles: vec![TileProto {
            dimensions: vec![-2],
        }],
        ..layout(&[0])
    };
    assert_invalid(xla_layout_from_proto(&negative), "negative size");
    let sparse = LayoutProto {
        dim_level_types: vec![1],
        ..layout(&[0])
    };
    assert_eq!(
        xla_layout_from_proto(&sparse).unwrap_err().code(),
        Code::Unimplemented
    );
    let spec = ArraySpecProto {
        layout: Some("\u{fffd}".into()),
        ..ArraySpecProto::default()
    };
    assert!(array_spec_from_proto(&spec, &*client(1)).is_err());
}

/// A length prefix of 4 GiB on a message of a few bytes.
#[test]
fn lengths_beyond_the_message() {
    let huge = b"\x0a\xff\xff\xff\xff\x0f\x00";
    for name in [
        "OpaqueSharding",
        "ConcreteSharding",
        "ConcreteEvenSharding",
        "ShardingParamSharding",
        "HloSharding",
    ] {
        assert_invalid(read_sharding(name, &huge[..]), "malformed protocol buffer");
    }
    let huge = b"\x22\xff\xff\xff\xff\x0f\x00";
    assert_invalid(
        read_spec("ConcreteShardingSpec", &huge[..]),
        "malformed protocol buffer",
    );
    let client = client(2);
    let huge = b"\x0a\xff\xff\xff\xff\x0f\x00";
    let wire = |name: &str| Serialized {
        type_name: format!("xla::ifrt::{name}"),
        data: huge[..].into(),
    };
    assert_invalid(
        program_from_proto(&wire("CustomCallProgram"), &*client),
        "malformed protocol buffer",
    );
    for name in ["XlaCompileOptions", "CustomCallCompileOptions"] {
        assert_invalid(
            compile_options_from_proto(&wire(name)),
            "malformed protocol buffer",
        );
    }
    for name in ["CompactLayout", "PjRtLayout"] {
        let layout = LayoutProto {
            serialized_layout: Some(wire(name)),
        };
        assert_invalid(layout_from_proto(&layout), "malformed protocol buffer");
    }
}

/// Two bytes per leaf become a structure of hundreds of bytes.
#[test]
fn messages_that_would_grow() {
    let leaf = [0x2a, 0];
    let op_sharding = leaf.repeat(3 << 20);
    let mut data = vec![0x12];
    prost::encoding::encode_varint(u64::try_from(op_sharding.len()).unwrap(), &mut data);
    data.extend(op_sharding);
    assert_invalid(
        read_sharding("HloSharding", data),
        "exceeds the limit of 4194304",
    );
}

#[test]
fn tuples_in_tuples() {
    let nested = |depth| {
        let mut sharding = OpSharding::default();
        for _ in 0..depth {
            sharding = OpSharding {
                r#type: 2,
                tuple_shardings: vec![sharding],
                ..OpSharding::default()
            };
        }
        let proto = HloShardingProto {
            devices: Some(DeviceListProto {
                device_ids: vec![0],
                version_number: 0,
            }),
            xla_op_sharding: Some(sharding),
            ..HloShardingProto::default()
        };
        read_sharding("HloSharding", proto.encode_to_vec())
    };
    assert!(nested(8).is_ok());
    assert_invalid(nested(9), "nests tuples too deeply");
    assert_invalid(nested(200), "malformed protocol buffer");
    let wire = serialized("HloSharding", "\u{12}");
    assert_invalid(
        read_sharding("HloSharding", wire.data),
        "malformed protocol buffer",
    );
}
