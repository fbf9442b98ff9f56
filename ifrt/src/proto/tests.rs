//! Bytes of others, read and written again. The expected bytes were captured from a deployed
//! client, or computed with the protocol buffer library of Google and the descriptors of
//! jaxlib 0.10.2, so they do not depend on anything here.

use super::tensorflow::StatusProto;
use super::xla::ifrt::attribute_map_proto::value::Value;
use super::xla::ifrt::{
    AttributeMapProto, CompactLayoutProto, ConcreteEvenShardingProto, DTypeProto, DeviceListProto,
    ExecuteOptionsProto, HloShardingProto, ShapeProto, ShardingParamShardingProto,
    SingleDeviceShardingProto, XlaCompileOptionsProto, d_type_proto::Kind,
};
use super::xla::op_sharding::Type;
use super::xla::{CompileOptionsProto, HloModuleProtoWithConfig, PrimitiveType};
use prost::Message;

fn bytes(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "{hex} is not whole bytes");
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

/// Decodes the bytes, checks that the message gives them back, and returns it.
#[track_caller]
fn check<M: Message + Default>(hex: &str) -> M {
    let wire = bytes(hex);
    let message = M::decode(wire.as_slice()).unwrap();
    assert_eq!(message.encode_to_vec(), wire);
    message
}

#[test]
fn dtypes_shapes_and_device_lists() {
    assert_eq!(check::<DTypeProto>("080b").kind(), Kind::F32);
    assert_eq!(check::<DTypeProto>("0820").kind(), Kind::S1);
    assert_eq!(check::<ShapeProto>("0a020203").dims, [2, 3]);
    assert_eq!(check::<ShapeProto>("").dims, [0_i64; 0]);
    assert_eq!(check::<DeviceListProto>("0a020a0b").device_ids, [10, 11]);
}

#[test]
fn shardings_of_the_deployed_client() {
    let single: HloShardingProto = check("0a030a010112001a06646576696365");
    assert_eq!(single.devices.unwrap().device_ids, [1]);
    assert_eq!(single.xla_op_sharding.unwrap().r#type(), Type::Replicated);
    assert_eq!(single.memory_kind.as_deref(), Some("device"));

    let grid: HloShardingProto =
        check("0a060a0400010203120c08031a0202024a01045201001a06646576696365");
    let grid = grid.xla_op_sharding.unwrap();
    assert_eq!(grid.r#type(), Type::Other);
    assert_eq!(grid.tile_assignment_dimensions, [2, 2]);
    assert_eq!(
        (grid.iota_reshape_dims, grid.iota_transpose_perm),
        (vec![4], vec![0])
    );

    let partial: HloShardingProto =
        check("0a060a0400010203121108031a0302010230014a020202520201001a06646576696365");
    let partial = partial.xla_op_sharding.unwrap();
    assert!(partial.replicate_on_last_tile_dim);
    assert_eq!(partial.tile_assignment_dimensions, [2, 1, 2]);

    let pinned: HloShardingProto = check("0a030a010012001a0b70696e6e65645f686f7374");
    assert_eq!(pinned.memory_kind.as_deref(), Some("pinned_host"));
}

#[test]
fn shardings_that_do_not_depend_on_xla() {
    let unset: SingleDeviceShardingProto = check("0801");
    assert_eq!((unset.device_id, unset.memory_kind), (1, None));
    let pinned: SingleDeviceShardingProto = check("0801120b70696e6e65645f686f7374");
    assert_eq!(pinned.memory_kind.as_deref(), Some("pinned_host"));

    let even: ConcreteEvenShardingProto = check("0a040a02000112040a0204031a040a020203");
    assert_eq!(even.shape.unwrap().dims, [4, 3]);
    assert_eq!(even.shard_shape.unwrap().dims, [2, 3]);
    assert!(!even.is_fully_replicated);

    let param: ShardingParamShardingProto = check("0a0a0a0202011201001a010212040a0200011a03616263");
    let grid = param.sharding_param.unwrap();
    assert_eq!((grid.dim_shards, grid.permutation), (vec![2, 1], vec![0]));
    assert_eq!(grid.axis_sizes, [2]);
    assert_eq!(param.memory_kind.as_deref(), Some("abc"));

    assert_eq!(
        check::<CompactLayoutProto>("0a020100").major_to_minor,
        [1, 0]
    );
}

#[test]
fn attributes_and_options() {
    let one: AttributeMapProto = check("0a0e0a0161120919ffffffffffffffff");
    assert_eq!(one.attributes["a"].value, Some(Value::Int64Value(-1)));

    let list: AttributeMapProto = check("0a190a016c121422120a1001000000000000000200000000000000");
    let Some(Value::Int64ListValue(list)) = &list.attributes["l"].value else {
        panic!("not a list: {list:?}");
    };
    assert_eq!(list.elements, [1, 2]);

    let options: ExecuteOptionsProto = check("18d2093a0200034801520e0a0c0a03666f6f12050a03626172");
    assert_eq!((options.launch_id, options.fill_status), (1234, true));
    assert_eq!(options.non_donatable_input_indices, [0, 3]);
    let custom = options.custom_options.unwrap();
    assert_eq!(
        custom.attributes["foo"].value,
        Some(Value::StringValue("bar".into()))
    );
}

#[test]
fn maps_are_written_in_the_order_of_their_keys() {
    let mut status = StatusProto {
        code: 3,
        ..StatusProto::default()
    };
    for key in ["b", "a", "c"] {
        status
            .payload
            .insert(key.to_owned(), key.as_bytes().to_vec().into());
    }
    assert_eq!(
        status.encode_to_vec(),
        bytes("08031a060a01611201611a060a01621201621a060a0163120163")
    );
}

#[test]
fn compile_options_keep_what_we_do_not_know() {
    let envelope: XlaCompileOptionsProto =
        check("0a221a2008ffffffffffffffffff011a03980601200228014a0a080210011a040a020001");
    let view = CompileOptionsProto::decode(envelope.compile_options).unwrap();
    let build = view.executable_build_options.unwrap();
    assert_eq!(
        (
            build.device_ordinal,
            build.num_replicas,
            build.num_partitions
        ),
        (-1, 2, 1)
    );
    assert_eq!(build.debug_options, bytes("980601"));
    let assignment = build.device_assignment.unwrap();
    assert_eq!(
        (assignment.replica_count, assignment.computation_count),
        (2, 1)
    );
    assert_eq!(assignment.computation_devices[0].replica_device_ids, [0, 1]);
}

#[test]
fn an_unknown_field_of_an_envelope_is_dropped() {
    // Why payloads that are passed on must be bytes: field 15 does not survive.
    let shape = ShapeProto::decode(bytes("0a0202037801").as_slice()).unwrap();
    assert_eq!(shape.encode_to_vec(), bytes("0a020203"));
}

#[test]
fn the_header_of_a_module_is_read_without_its_computations() {
    // The module has a computation `main`, which must be skipped.
    let wire = bytes(concat!(
        "0a340a056a69745f6612046d61696e1a0b0a046d61696e12030a017822071205100b1a0102",
        "280342060a04100120019201040a02080212021005"
    ));
    let program = HloModuleProtoWithConfig::decode(wire.as_slice()).unwrap();
    assert_eq!(program.config, bytes("1005"));
    let module = program.hlo_module.unwrap();
    assert_eq!((module.name.as_str(), module.id), ("jit_f", 3));
    assert_eq!(module.entry_computation_name, "main");
    let result = module.host_program_shape.unwrap().result.unwrap();
    assert_eq!(
        (result.element_type(), result.dimensions),
        (PrimitiveType::F32, vec![2])
    );
    assert_eq!(
        module.input_output_alias.unwrap().entries[0].parameter_number,
        1
    );
    assert_eq!(module.buffer_donor.unwrap().entries[0].parameter_number, 2);
}
