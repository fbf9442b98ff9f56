//! [`Sharding`] as IFRT's envelope.

use std::sync::Arc;

use prost::Message;

use super::envelope::{open, seal};
use super::sharding_param::{param_from_proto, param_to_proto};
use super::{
    SerDesVersion, check_version, device_list_from_proto, device_list_to_proto,
    dynamic_shape_from_proto, dynamic_shape_to_proto, missing, shape_from_proto, shape_to_proto,
};
use crate::client::Client;
use crate::device::DeviceId;
use crate::device_list::DeviceList;
use crate::memory::MemoryKind;
use crate::proto::xla::ifrt::concrete_sharding_proto::ShapeOrDynamicShape;
use crate::proto::xla::ifrt::{
    ConcreteEvenShardingProto, ConcreteShardingProto, DeviceListProto, HloShardingProto,
    OpaqueShardingProto, ShapeProto, ShardingParamShardingProto, ShardingProto,
    SingleDeviceShardingProto,
};
use crate::shape::Shape;
use crate::sharding::{Sharding, ShardingKind, ShardingRef};
use crate::status::{Result, Status};
use crate::xla::HloSharding;

/// Reads a sharding over devices of `client`.
///
/// # Errors
/// INVALID_ARGUMENT for malformed bytes, unknown devices and parts that do not fit together;
/// UNIMPLEMENTED for an unknown kind; FAILED_PRECONDITION for a newer format.
pub fn sharding_from_proto(proto: &ShardingProto, client: &dyn Client) -> Result<ShardingRef> {
    let serialized = proto
        .serialized_sharding
        .as_ref()
        .ok_or_else(|| missing("ShardingProto", "sharding"))?;
    let (name, data) = open(serialized, "sharding")?;
    let reader = Reader { name, client };
    let (kind, devices, memory_kind) = match name {
        "SingleDeviceSharding" => {
            let proto = SingleDeviceShardingProto::decode(data)?;
            reader.version(proto.version_number)?;
            let device = client.lookup_device(DeviceId(proto.device_id))?;
            (
                ShardingKind::SingleDevice,
                DeviceList::new([device]),
                proto.memory_kind,
            )
        }
        "OpaqueSharding" => {
            let proto = OpaqueShardingProto::decode(data)?;
            reader.version(proto.version_number)?;
            (
                ShardingKind::opaque(),
                reader.devices(proto.devices)?,
                proto.memory_kind,
            )
        }
        "ConcreteSharding" => {
            let proto = ConcreteShardingProto::decode(data)?;
            reader.version(proto.version_number)?;
            let kind = concrete_from_proto(&proto, name)?;
            (kind, reader.devices(proto.devices)?, proto.memory_kind)
        }
        "ConcreteEvenSharding" => {
            let proto = ConcreteEvenShardingProto::decode(data)?;
            reader.version(proto.version_number)?;
            let kind = ShardingKind::ConcreteEven {
                shape: reader.shape(proto.shape)?,
                shard_shape: reader.shape(proto.shard_shape)?,
                is_fully_replicated: proto.is_fully_replicated,
            };
            (kind, reader.devices(proto.devices)?, proto.memory_kind)
        }
        "ShardingParamSharding" => {
            let proto = ShardingParamShardingProto::decode(data)?;
            reader.version(proto.version_number)?;
            let param = proto.sharding_param;
            let param = param.ok_or_else(|| missing(name, "sharding_param"))?;
            let param = param_from_proto(param)?;
            (
                ShardingKind::Param(param),
                reader.devices(proto.devices)?,
                proto.memory_kind,
            )
        }
        "HloSharding" => {
            let proto = HloShardingProto::decode(data)?;
            reader.version(proto.version_number)?;
            let hlo = HloSharding::from_proto(&proto.xla_op_sharding.unwrap_or_default())?;
            (
                ShardingKind::Hlo(hlo),
                reader.devices(proto.devices)?,
                proto.memory_kind,
            )
        }
        _ => {
            return Err(Status::unimplemented(format!(
                "shardings of type {:?} are not known",
                serialized.type_name
            )));
        }
    };
    // An empty kind means the same as none: jaxlib 0.10.2 writes it for the default.
    let memory_kind = MemoryKind::from(memory_kind.as_deref().filter(|kind| !kind.is_empty()));
    Sharding::new(kind, devices, memory_kind).map(Arc::new)
}

fn concrete_from_proto(proto: &ConcreteShardingProto, name: &str) -> Result<ShardingKind> {
    match &proto.shape_or_dynamic_shape {
        Some(ShapeOrDynamicShape::Shape(shape)) => {
            let shapes = proto.shard_shapes.iter().map(shape_from_proto);
            Ok(ShardingKind::concrete(
                shape_from_proto(shape)?,
                shapes.collect::<Result<_>>()?,
            ))
        }
        Some(ShapeOrDynamicShape::DynamicShape(shape)) => {
            let shapes = proto.shard_dynamic_shapes.iter();
            Ok(ShardingKind::ConcreteDynamic {
                shape: dynamic_shape_from_proto(shape)?,
                shard_shapes: shapes
                    .map(dynamic_shape_from_proto)
                    .collect::<Result<_>>()?,
            })
        }
        None => Err(missing(name, "Shape or DynamicShape")),
    }
}

struct Reader<'a> {
    name: &'a str,
    client: &'a dyn Client,
}

impl Reader<'_> {
    fn version(&self, found: i32) -> Result<()> {
        check_version(found, 0, self.name)
    }

    fn devices(&self, proto: Option<DeviceListProto>) -> Result<DeviceList> {
        let proto = proto.ok_or_else(|| missing(self.name, "devices"))?;
        device_list_from_proto(&proto, self.client)
    }

    fn shape(&self, proto: Option<ShapeProto>) -> Result<Shape> {
        shape_from_proto(&proto.ok_or_else(|| missing(self.name, "shape"))?)
    }
}

/// Writes a sharding for a reader that knows `version`.
///
/// The memory kind is always written, which every reader understands.
///
/// # Errors
/// FAILED_PRECONDITION if the sharding needs a newer version; UNIMPLEMENTED for a concrete one with
/// index domains, which have no serialized form and would be lost.
pub fn sharding_to_proto(sharding: &Sharding, version: SerDesVersion) -> Result<ShardingProto> {
    let devices = Some(device_list_to_proto(sharding.devices()));
    let memory_kind = Some(sharding.memory_kind().name().to_owned());
    let data = match sharding.kind() {
        ShardingKind::SingleDevice => {
            let device_id = sharding.devices().ids().next().map_or(0, |id| id.0);
            SingleDeviceShardingProto {
                device_id,
                memory_kind,
                version_number: 0,
            }
            .encode_to_vec()
        }
        ShardingKind::Opaque(_) => OpaqueShardingProto {
            devices,
            memory_kind,
            version_number: 0,
        }
        .encode_to_vec(),
        ShardingKind::Concrete {
            index_domains: Some(_),
            ..
        } => {
            return Err(Status::unimplemented(
                "Index domains are not yet supported in ConcreteSharding serialization",
            ));
        }
        ShardingKind::ConcreteDynamic {
            shape,
            shard_shapes,
        } => ConcreteShardingProto {
            devices,
            shape_or_dynamic_shape: Some(ShapeOrDynamicShape::DynamicShape(
                dynamic_shape_to_proto(shape),
            )),
            shard_dynamic_shapes: shard_shapes.iter().map(dynamic_shape_to_proto).collect(),
            memory_kind,
            ..ConcreteShardingProto::default()
        }
        .encode_to_vec(),
        ShardingKind::Concrete {
            shape,
            shard_shapes,
            ..
        } => ConcreteShardingProto {
            devices,
            shape_or_dynamic_shape: Some(ShapeOrDynamicShape::Shape(shape_to_proto(shape))),
            shard_shapes: shard_shapes.iter().map(shape_to_proto).collect(),
            memory_kind,
            ..ConcreteShardingProto::default()
        }
        .encode_to_vec(),
        ShardingKind::ConcreteEven {
            shape,
            shard_shape,
            is_fully_replicated,
        } => ConcreteEvenShardingProto {
            devices,
            shape: Some(shape_to_proto(shape)),
            shard_shape: Some(shape_to_proto(shard_shape)),
            memory_kind,
            is_fully_replicated: *is_fully_replicated,
            version_number: 0,
        }
        .encode_to_vec(),
        ShardingKind::Param(param) => ShardingParamShardingProto {
            sharding_param: Some(param_to_proto(param, version)?),
            devices,
            memory_kind,
            version_number: 0,
        }
        .encode_to_vec(),
        ShardingKind::Hlo(hlo) => HloShardingProto {
            devices,
            xla_op_sharding: Some(hlo.to_proto()),
            memory_kind,
            version_number: 0,
        }
        .encode_to_vec(),
    };
    Ok(ShardingProto {
        serialized_sharding: Some(seal(sharding.kind().name(), data)),
    })
}
