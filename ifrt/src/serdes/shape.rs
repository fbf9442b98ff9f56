//! Shapes, indices and index domains.

use super::{check_version, missing};
use crate::index::{Index, IndexDomain};
use crate::proto::xla::ifrt::dynamic_shape_proto::Tag;
use crate::proto::xla::ifrt::{
    BoundedDynamicShapeTagProto, DynamicShapeProto, IndexDomainProto, IndexProto, ShapeProto,
};
use crate::shape::{BoundedDynamicShapeTag, DynamicShape, Shape};
use crate::status::{Result, Status};

/// Reads a shape.
///
/// # Errors
/// INVALID_ARGUMENT for dimensions that are negative or too large; FAILED_PRECONDITION for a newer
/// format.
pub fn shape_from_proto(proto: &ShapeProto) -> Result<Shape> {
    check_version(proto.version_number, 0, "Shape")?;
    Shape::new(&proto.dims[..])
}

/// Writes a shape.
pub fn shape_to_proto(shape: &Shape) -> ShapeProto {
    ShapeProto {
        dims: shape.dims().to_vec(),
        version_number: 0,
    }
}

/// Reads a shape with dimensions that are only bounded.
///
/// # Errors
/// INVALID_ARGUMENT without a tag, for a tag that does not fit, and as [`shape_from_proto`];
/// FAILED_PRECONDITION for a newer format.
pub fn dynamic_shape_from_proto(proto: &DynamicShapeProto) -> Result<DynamicShape> {
    const WHAT: &str = "DynamicShape";
    check_version(proto.version_number, 0, WHAT)?;
    let Some(Tag::BoundedDynamicShapeTag(tag)) = &proto.tag else {
        return Err(Status::invalid_argument(
            "Only support bounded dynamic shape.",
        ));
    };
    check_version(tag.version_number, 0, "BoundedDynamicShapeTag")?;
    let bounds = proto.shape.as_ref().ok_or_else(|| missing(WHAT, "shape"))?;
    DynamicShape::new(
        shape_from_proto(bounds)?,
        BoundedDynamicShapeTag::new(&tag.is_dynamic_dims[..])?,
    )
}

/// Writes a shape with dimensions that are only bounded.
pub fn dynamic_shape_to_proto(shape: &DynamicShape) -> DynamicShapeProto {
    let tag = BoundedDynamicShapeTagProto {
        is_dynamic_dims: shape.tag().dynamic_dims().to_vec(),
        version_number: 0,
    };
    DynamicShapeProto {
        shape: Some(shape_to_proto(shape.padded_shape())),
        tag: Some(Tag::BoundedDynamicShapeTag(tag)),
        version_number: 0,
    }
}

/// Reads an index.
///
/// # Errors
/// INVALID_ARGUMENT for negative numbers; FAILED_PRECONDITION for a newer format.
pub fn index_from_proto(proto: &IndexProto) -> Result<Index> {
    check_version(proto.version_number, 0, "Index")?;
    Index::new(&proto.elements[..])
}

/// Writes an index.
pub fn index_to_proto(index: &Index) -> IndexProto {
    IndexProto {
        elements: index.elements().to_vec(),
        version_number: 0,
    }
}

/// Reads an index domain. A missing origin or shape is that of a scalar, as in the reference.
///
/// # Errors
/// INVALID_ARGUMENT for an origin that does not fit the shape, and as [`index_from_proto`] and
/// [`shape_from_proto`]; FAILED_PRECONDITION for a newer format.
pub fn index_domain_from_proto(proto: &IndexDomainProto) -> Result<IndexDomain> {
    check_version(proto.version_number, 0, "IndexDomain")?;
    let origin = proto.origin.as_ref().map(index_from_proto).transpose()?;
    let shape = proto.shape.as_ref().map(shape_from_proto).transpose()?;
    IndexDomain::try_new(origin.unwrap_or_default(), shape.unwrap_or_default())
}

/// Writes an index domain.
pub fn index_domain_to_proto(domain: &IndexDomain) -> IndexDomainProto {
    IndexDomainProto {
        origin: Some(index_to_proto(domain.origin_index())),
        shape: Some(shape_to_proto(domain.shape())),
        version_number: 0,
    }
}
