use bytes::Bytes;
use ifrt::proto::xla::ifrt::{AttributeMapProto, attribute_map_proto::Value};
use ifrt::serdes::{attribute_map_from_proto, attribute_map_to_proto};
use ifrt::{AttributeMap, AttributeValue, Code};

use super::assert_invalid;

fn five() -> AttributeMap {
    [
        ("string", AttributeValue::from("value")),
        ("bool", true.into()),
        ("int64", 123_i64.into()),
        ("list", vec![1_i64, 2].into()),
        ("float", 1.5_f32.into()),
    ]
    .into_iter()
    .collect()
}

#[test]
fn am_01_equal_maps() {
    assert_eq!(five(), five());
    let mut other = five();
    other.set("int64", 124_i64);
    assert_ne!(five(), other);
}

#[test]
fn am_02_typed_access() {
    let map = five();
    assert_eq!(map.get_str("string"), Ok("value"));
    assert_eq!(map.get_bytes("string"), Ok(&Bytes::from("value")));
    assert_eq!(map.get_bool("bool"), Ok(true));
    assert_eq!(map.get_i64("int64"), Ok(123));
    assert_eq!(map.get_i64_list("list"), Ok(&[1, 2][..]));
    assert_eq!(map.get_f32("float"), Ok(1.5));
    let mismatch = |key| format!("Value type mismatch for key: {key}");
    assert_invalid(map.get_str("float"), &mismatch("float"));
    assert_invalid(map.get_bytes("float"), &mismatch("float"));
    assert_invalid(map.get_i64_list("string"), &mismatch("string"));
    assert_invalid(map.get_bool("int64"), &mismatch("int64"));
    assert_invalid(map.get_i64("bool"), &mismatch("bool"));
    assert_invalid(map.get_f32("list"), &mismatch("list"));
    let missing = map.get("nothing").unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    assert_eq!(missing.message(), "Key not found: nothing");
}

#[test]
fn am_03_setting_values() {
    let mut map = AttributeMap::new();
    assert!(map.is_empty());
    map.set("string", "old");
    map.set("string", String::from("value"));
    map.set("bool", true);
    map.set("int64", 123_i64);
    map.set("list", vec![1_i64, 2]);
    map.set("float", 1.5_f32);
    assert_eq!((map.len(), &map), (5, &five()));
}

#[test]
fn am_04_round_trip() {
    let proto = attribute_map_to_proto(&five());
    assert_eq!(attribute_map_from_proto(&proto), Ok(five()));
    let mut empty = AttributeMapProto::default();
    empty.attributes.insert("k".into(), Value { value: None });
    assert_invalid(attribute_map_from_proto(&empty), "attribute k has no value");
}

#[test]
fn text_is_cut() {
    assert_eq!(
        five().to_string(),
        "AttributeMap([bool=true, float=1.5, int64=123, list=[1, 2], string=\"value\"])"
    );
    let long: AttributeMap = [
        ("l", AttributeValue::from((0..17).collect::<Vec<i64>>())),
        ("s", "x".repeat(65).into()),
    ]
    .into_iter()
    .collect();
    assert_eq!(
        long.to_string(),
        format!(
            "AttributeMap([l=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15...], \
             s=\"{}...\"])",
            "x".repeat(64)
        )
    );
}
