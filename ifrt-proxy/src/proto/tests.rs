//! Messages of others, read and written again. The expected bytes were computed with the protocol
//! buffer library of Google and the descriptors of jaxlib 0.10.2; the sharding inside was captured
//! from a deployed client.

use super::xla::ifrt::proto::{StringArrayContents, Variant, variant};
use super::xla::ifrt::proxy::ifrt_request::Request;
use super::xla::ifrt::proxy::ifrt_response::Response;
use super::xla::ifrt::proxy::loaded_executable_metadata_response::{
    CompiledMemoryStatsOneof, DonatedInputIndicesOneof, ParameterLayouts,
};
use super::xla::ifrt::proxy::{GrpcGetVersionRequest, IfrtRequest, IfrtResponse};
use ifrt::proto::tensorflow::error::Code;
use ifrt::proto::xla::ifrt::HloShardingProto;
use ifrt::proto::xla::ifrt::attribute_map_proto::value::Value;
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

/// As `check`, for a request: its operation and its content.
#[track_caller]
fn check_request(hex: &str) -> (u64, Request) {
    let request: IfrtRequest = check(hex);
    (
        request.request_metadata.unwrap().op_id,
        request.request.unwrap(),
    )
}

#[test]
fn the_version_that_a_deployed_client_offers() {
    let request: GrpcGetVersionRequest = check("0a020810120408191003");
    let (min, max) = (request.min_version.unwrap(), request.max_version.unwrap());
    assert_eq!(
        (min.protocol_version, min.ifrt_serdes_version_number),
        (16, 0)
    );
    assert_eq!(
        (max.protocol_version, max.ifrt_serdes_version_number),
        (25, 3)
    );
}

#[test]
fn making_an_array_carries_the_sharding_as_bytes() {
    let (op_id, request) = check_request(concat!(
        "0a09090200000000000000224f0a02080b12040a0202031a2b0a290a16786c613a3a696672743a3a486c6f53",
        "68617264696e67120f0a030a010112001a066465766963652101000000000000002a040a020c043101000000",
        "00000000"
    ));
    let Request::MakeArrayFromHostBufferRequest(request) = request else {
        panic!("another request: {request:?}");
    };
    assert_eq!(
        (op_id, request.host_buffer_handle, request.array_handle),
        (2, 1, Some(1))
    );
    assert_eq!(request.byte_strides.unwrap().strides, [12, 4]);
    let sharding = request.sharding.unwrap().serialized_sharding.unwrap();
    assert_eq!(sharding.type_name, "xla::ifrt::HloSharding");
    let sharding = HloShardingProto::decode(sharding.data).unwrap();
    assert_eq!(sharding.devices.unwrap().device_ids, [1]);
}

#[test]
fn handles_of_values_are_unpacked_and_those_of_arrays_are_packed() {
    let (_, request) =
        check_request("0a090907000000000000004212090100000000000000090200000000000000");
    let Request::CheckValueReadyRequest(request) = request else {
        panic!("another request: {request:?}");
    };
    assert_eq!(request.value_handles, [1, 2]);

    let (op_id, request) = check_request(concat!(
        "0a120908000000000000002903000000000000004a1212101a000000000000001b00000000000000"
    ));
    let Request::DeleteArrayRequest(request) = request else {
        panic!("another request: {request:?}");
    };
    assert_eq!((op_id, request.array_handle), (8, vec![26, 27]));
}

#[test]
fn both_forms_of_repeated_handles_are_read() {
    let packed = bytes(
        "0a090907000000000000004212\
                        0a1001000000000000000200000000000000",
    );
    let request = IfrtRequest::decode(packed.as_slice()).unwrap();
    let Some(Request::CheckValueReadyRequest(request)) = request.request else {
        panic!("another request: {request:?}");
    };
    assert_eq!(request.value_handles, [1, 2]);
}

#[test]
fn an_error_has_code_message_and_payload() {
    let response: IfrtResponse = check("0a1a090900000000000000120f080312036261641a060a0175120101");
    assert_eq!(response.response, None);
    let status = response.response_metadata.unwrap().status.unwrap();
    assert_eq!(
        (status.code(), status.message.as_str()),
        (Code::InvalidArgument, "bad")
    );
    assert_eq!(status.payload["u"], bytes("01"));
}

#[test]
fn the_answer_to_init_keeps_a_device_and_memory_zero() {
    let response: IfrtResponse = check(concat!(
        "0a09090100000000000000123a0a03637075320538004201003a010040014a0b12066465766963651a01005a",
        "1a0a180a1273657269616c697a655f776974685f73647912021001"
    ));
    let Some(Response::InitResponse(init)) = response.response else {
        panic!("another response: {response:?}");
    };
    assert_eq!((init.platform_name.as_str(), init.session_id), ("cpu", 1));
    assert_eq!(init.all_devices[0].default_memory_id, Some(0));
    assert_eq!(init.memories[0].device_ids, [0]);
    let attributes = init.client_attributes.unwrap().attributes;
    assert_eq!(
        attributes["serialize_with_sdy"].value,
        Some(Value::BoolValue(true))
    );
}

#[test]
fn the_metadata_of_an_executable_has_an_error_or_a_value_per_part() {
    let response: IfrtResponse =
        check("0a0909050000000000000072180a020a002a02080c420a0a08000000000200000052027040");
    let Some(Response::LoadedExecutableMetadataResponse(metadata)) = response.response else {
        panic!("another response: {response:?}");
    };
    assert_eq!(metadata.parameter_shardings.unwrap().shardings.len(), 1);
    assert_eq!(metadata.output_shardings, None);
    let Some(ParameterLayouts::ParameterLayoutsError(error)) = metadata.parameter_layouts else {
        panic!("no error: {:?}", metadata.parameter_layouts);
    };
    assert_eq!(error.code(), Code::Unimplemented);
    let Some(DonatedInputIndicesOneof::DonatedInputIndices(donated)) =
        metadata.donated_input_indices_oneof
    else {
        panic!("no indices: {:?}", metadata.donated_input_indices_oneof);
    };
    assert_eq!(donated.donated_input_indices, [0, 2]);
    let Some(CompiledMemoryStatsOneof::CompiledMemoryStats(stats)) =
        metadata.compiled_memory_stats_oneof
    else {
        panic!("no statistics: {:?}", metadata.compiled_memory_stats_oneof);
    };
    assert_eq!(stats.peak_memory_in_bytes, 64);
}

#[test]
fn small_types() {
    let variant: Variant = check("11ffffffffffffffff");
    assert_eq!(variant.value, Some(variant::Value::Int64Value(-1)));
    let strings: StringArrayContents = check("0a0261620a00");
    assert_eq!(strings.strings, ["ab", ""]);
}
