//! [`ShardingSpec`] as IFRT's envelope.

use prost::Message;

use super::envelope::{open, seal};
use super::sharding_param::{param_from_proto, param_to_proto};
use super::{
    SerDesVersion, check_version, dynamic_shape_from_proto, dynamic_shape_to_proto, missing,
    shape_from_proto, shape_to_proto,
};
use crate::proto::xla::ifrt::concrete_sharding_spec_proto::ShapeOrDynamicShape;
use crate::proto::xla::ifrt::{
    ConcreteEvenShardingSpecProto, ConcreteShardingSpecProto, HloShardingSpecProto,
    OpaqueShardingSpecProto, ShapeProto, ShardingParamShardingSpecProto, ShardingSpecProto,
    SingleDeviceShardingSpecProto,
};
use crate::shape::Shape;
use crate::sharding::{ShardingKind, ShardingSpec};
use crate::status::{Result, Status};
use crate::xla::HloSharding;

/// Reads a sharding spec.
///
/// # Errors
/// INVALID_ARGUMENT for malformed bytes and parts that do not fit together; UNIMPLEMENTED for an
/// unknown kind; FAILED_PRECONDITION for a newer format.
pub fn sharding_spec_from_proto(proto: &ShardingSpecProto) -> Result<ShardingSpec> {
    let serialized = proto
        .serialized_sharding_spec
        .as_ref()
        .ok_or_else(|| missing("ShardingSpecProto", "sharding spec"))?;
    let (name, data) = open(serialized, "sharding spec")?;
    match name {
        "SingleDeviceShardingSpec" => {
            let proto = SingleDeviceShardingSpecProto::decode(data)?;
            check_version(proto.version_number, 0, name)?;
            Ok(ShardingSpec::single_device())
        }
        "OpaqueShardingSpec" => {
            let proto = OpaqueShardingSpecProto::decode(data)?;
            check_version(proto.version_number, 0, name)?;
            ShardingSpec::opaque(count(proto.num_shards, name)?)
        }
        "ConcreteShardingSpec" => {
            let proto = ConcreteShardingSpecProto::decode(data)?;
            check_version(proto.version_number, 0, name)?;
            concrete_from_proto(&proto, name)
        }
        "ConcreteEvenShardingSpec" => {
            let proto = ConcreteEvenShardingSpecProto::decode(data)?;
            check_version(proto.version_number, 0, name)?;
            let kind = ShardingKind::ConcreteEven {
                shape: shape(proto.shape.as_ref(), name)?,
                shard_shape: shape(proto.shard_shape.as_ref(), name)?,
                is_fully_replicated: proto.is_fully_replicated,
            };
            ShardingSpec::new(kind, count(proto.num_shards, name)?)
        }
        "ShardingParamShardingSpec" => {
            let proto = ShardingParamShardingSpecProto::decode(data)?;
            check_version(proto.version_number, 0, name)?;
            let param = proto.sharding_param;
            let param = param.ok_or_else(|| missing(name, "sharding_param"))?;
            ShardingSpec::param(param_from_proto(param)?)
        }
        "HloShardingSpec" => {
            let proto = HloShardingSpecProto::decode(data)?;
            check_version(proto.version_number, 0, name)?;
            let hlo = HloSharding::from_proto(&proto.xla_op_sharding.unwrap_or_default())?;
            ShardingSpec::hlo(hlo, count(proto.num_shards, name)?)
        }
        _ => Err(Status::unimplemented(format!(
            "sharding specs of type {:?} are not known",
            serialized.type_name
        ))),
    }
}

fn count(num_shards: i32, name: &str) -> Result<usize> {
    usize::try_from(num_shards)
        .map_err(|_| Status::invalid_argument(format!("{name} has {num_shards} shards")))
}

fn shape(proto: Option<&ShapeProto>, name: &str) -> Result<Shape> {
    shape_from_proto(proto.ok_or_else(|| missing(name, "shape"))?)
}

fn concrete_from_proto(proto: &ConcreteShardingSpecProto, name: &str) -> Result<ShardingSpec> {
    let kind = match &proto.shape_or_dynamic_shape {
        Some(ShapeOrDynamicShape::Shape(shape)) => {
            let shapes = proto.shard_shapes.iter().map(shape_from_proto);
            ShardingKind::concrete(shape_from_proto(shape)?, shapes.collect::<Result<_>>()?)
        }
        Some(ShapeOrDynamicShape::DynamicShape(shape)) => {
            let shapes = proto.shard_dynamic_shapes.iter();
            ShardingKind::ConcreteDynamic {
                shape: dynamic_shape_from_proto(shape)?,
                shard_shapes: shapes
                    .map(dynamic_shape_from_proto)
                    .collect::<Result<_>>()?,
            }
        }
        None => return Err(missing(name, "Shape or DynamicShape")),
    };
    let num_shards = proto
        .shard_shapes
        .len()
        .max(proto.shard_dynamic_shapes.len());
    ShardingSpec::new(kind, num_shards)
}

/// Writes a sharding spec for a reader that knows `version`.
///
/// # Errors
/// FAILED_PRECONDITION if the spec needs a newer version; UNIMPLEMENTED for a concrete one with
/// index domains, which have no serialized form.
pub fn sharding_spec_to_proto(
    spec: &ShardingSpec,
    version: SerDesVersion,
) -> Result<ShardingSpecProto> {
    let num_shards = i32::try_from(spec.num_shards())
        .map_err(|_| Status::invalid_argument("a sharding spec has too many shards"))?;
    let data = match spec.kind() {
        ShardingKind::SingleDevice => SingleDeviceShardingSpecProto::default().encode_to_vec(),
        ShardingKind::Opaque(_) => OpaqueShardingSpecProto {
            version_number: 0,
            num_shards,
        }
        .encode_to_vec(),
        ShardingKind::Concrete {
            index_domains: Some(_),
            ..
        } => {
            return Err(Status::unimplemented(
                "Index domains are not yet supported in ConcreteShardingSpec serialization",
            ));
        }
        ShardingKind::Concrete {
            shape,
            shard_shapes,
            ..
        } => ConcreteShardingSpecProto {
            shape_or_dynamic_shape: Some(ShapeOrDynamicShape::Shape(shape_to_proto(shape))),
            shard_shapes: shard_shapes.iter().map(shape_to_proto).collect(),
            ..ConcreteShardingSpecProto::default()
        }
        .encode_to_vec(),
        ShardingKind::ConcreteDynamic {
            shape,
            shard_shapes,
        } => ConcreteShardingSpecProto {
            shape_or_dynamic_shape: Some(ShapeOrDynamicShape::DynamicShape(
                dynamic_shape_to_proto(shape),
            )),
            shard_dynamic_shapes: shard_shapes.iter().map(dynamic_shape_to_proto).collect(),
            ..ConcreteShardingSpecProto::default()
        }
        .encode_to_vec(),
        ShardingKind::ConcreteEven {
            shape,
            shard_shape,
            is_fully_replicated,
        } => ConcreteEvenShardingSpecProto {
            version_number: 0,
            num_shards,
            shape: Some(shape_to_proto(shape)),
            shard_shape: Some(shape_to_proto(shard_shape)),
            is_fully_replicated: *is_fully_replicated,
        }
        .encode_to_vec(),
        ShardingKind::Param(param) => ShardingParamShardingSpecProto {
            version_number: 0,
            sharding_param: Some(param_to_proto(param, version)?),
        }
        .encode_to_vec(),
        ShardingKind::Hlo(hlo) => HloShardingSpecProto {
            version_number: 0,
            num_shards,
            xla_op_sharding: Some(hlo.to_proto()),
        }
        .encode_to_vec(),
    };
    Ok(ShardingSpecProto {
        serialized_sharding_spec: Some(seal(&format!("{}Spec", spec.kind().name()), data)),
    })
}
