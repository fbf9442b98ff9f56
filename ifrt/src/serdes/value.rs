//! Small values: dtype, device list, attributes.

use std::collections::HashMap;
use std::sync::Arc;

use super::check_version;
use crate::attribute_map::{AttributeMap, AttributeValue};
use crate::client::Client;
use crate::device::{DeviceId, DeviceRef};
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::proto::xla::ifrt::attribute_map_proto::Value;
use crate::proto::xla::ifrt::attribute_map_proto::value::{Int64List, Value as Kind};
use crate::proto::xla::ifrt::{AttributeMapProto, DTypeProto, DeviceListProto};
use crate::status::{Result, Status};

/// Reads a dtype.
///
/// # Errors
/// INVALID_ARGUMENT for an unknown kind; FAILED_PRECONDITION for a newer format.
pub fn dtype_from_proto(proto: &DTypeProto) -> Result<DType> {
    check_version(proto.version_number, 0, "DType")?;
    DType::from_proto_kind(proto.kind)
}

/// Writes a dtype.
pub fn dtype_to_proto(dtype: DType) -> DTypeProto {
    DTypeProto {
        kind: dtype.to_proto_kind(),
        version_number: 0,
    }
}

/// Longer lists are read with an index of the devices, because a lookup may look at all of them.
const FEW_DEVICES: usize = 16;

/// Reads a list of devices of `client`.
///
/// # Errors
/// INVALID_ARGUMENT for an unknown device; FAILED_PRECONDITION for a newer format.
pub fn device_list_from_proto(proto: &DeviceListProto, client: &dyn Client) -> Result<DeviceList> {
    check_version(proto.version_number, 0, "DeviceList")?;
    let ids = proto.device_ids.iter().map(|id| DeviceId(*id));
    if ids.len() <= FEW_DEVICES {
        return ids.map(|id| client.lookup_device(id)).collect();
    }
    let devices = client.all_devices().iter();
    let known: HashMap<DeviceId, &DeviceRef> =
        devices.map(|device| (device.id(), device)).collect();
    ids.map(|id| match known.get(&id) {
        Some(device) => Ok(Arc::clone(device)),
        None => client.lookup_device(id),
    })
    .collect()
}

/// Writes a list of devices.
pub fn device_list_to_proto(devices: &DeviceList) -> DeviceListProto {
    DeviceListProto {
        device_ids: devices.ids().map(|id| id.0).collect(),
        version_number: 0,
    }
}

/// Reads attributes.
///
/// # Errors
/// INVALID_ARGUMENT for an attribute without a value; FAILED_PRECONDITION for a newer format.
pub fn attribute_map_from_proto(proto: &AttributeMapProto) -> Result<AttributeMap> {
    check_version(proto.version_number, 0, "AttributeMap")?;
    proto
        .attributes
        .iter()
        .map(|(key, value)| {
            let value = match &value.value {
                Some(Kind::StringValue(value)) => AttributeValue::String(value.clone()),
                Some(Kind::BoolValue(value)) => AttributeValue::Bool(*value),
                Some(Kind::Int64Value(value)) => AttributeValue::Int64(*value),
                Some(Kind::Int64ListValue(value)) => {
                    AttributeValue::Int64List(value.elements.clone())
                }
                Some(Kind::FloatValue(value)) => AttributeValue::Float(*value),
                None => {
                    return Err(Status::invalid_argument(format!(
                        "attribute {key} has no value"
                    )));
                }
            };
            Ok((key.clone(), value))
        })
        .collect()
}

/// Writes attributes.
pub fn attribute_map_to_proto(map: &AttributeMap) -> AttributeMapProto {
    let attributes = map.iter().map(|(key, value)| {
        let value = match value {
            AttributeValue::String(value) => Kind::StringValue(value.clone()),
            AttributeValue::Bool(value) => Kind::BoolValue(*value),
            AttributeValue::Int64(value) => Kind::Int64Value(*value),
            AttributeValue::Int64List(value) => Kind::Int64ListValue(Int64List {
                elements: value.clone(),
            }),
            AttributeValue::Float(value) => Kind::FloatValue(*value),
        };
        (key.to_owned(), Value { value: Some(value) })
    });
    AttributeMapProto {
        attributes: attributes.collect(),
        version_number: 0,
    }
}
