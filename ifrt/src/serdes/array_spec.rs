//! [`ArraySpec`] and [`AbstractArraySpec`].

use bytes::Bytes;

use super::{
    SerDesVersion, check_version, dtype_from_proto, dtype_to_proto, missing, shape_from_proto,
    shape_to_proto, sharding_from_proto, sharding_spec_from_proto, sharding_spec_to_proto,
    sharding_to_proto, unsupported,
};
use crate::array_spec::{AbstractArraySpec, ArraySpec};
use crate::client::Client;
use crate::layout::Layout;
use crate::memory::MemoryKind;
use crate::proto::xla::ifrt::{AbstractArraySpecProto, ArraySpecProto};
use crate::status::{Result, Status};

/// Reads an array spec over devices of `client`.
///
/// # Errors
/// INVALID_ARGUMENT for missing or malformed parts; FAILED_PRECONDITION for a newer format.
pub fn array_spec_from_proto(proto: &ArraySpecProto, client: &dyn Client) -> Result<ArraySpec> {
    const WHAT: &str = "ArraySpec";
    check_version(proto.version_number, 0, WHAT)?;
    Ok(ArraySpec {
        dtype: dtype_from_proto(proto.dtype.as_ref().ok_or_else(|| missing(WHAT, "dtype"))?)?,
        shape: shape_from_proto(proto.shape.as_ref().ok_or_else(|| missing(WHAT, "shape"))?)?,
        sharding: sharding_from_proto(
            proto
                .sharding
                .as_ref()
                .ok_or_else(|| missing(WHAT, "sharding"))?,
            client,
        )?,
        layout: proto.layout.as_ref().map(layout_from_text).transpose()?,
    })
}

/// Specs hold the text of XLA, unlike other messages.
fn layout_from_text(text: &Bytes) -> Result<Layout> {
    let text = std::str::from_utf8(text)
        .map_err(|_| Status::invalid_argument("the layout of an array spec is no text"))?;
    Layout::parse(text)
}

fn layout_to_text(layout: &Layout) -> Bytes {
    layout.to_string().into_bytes().into()
}

/// Writes an array spec for a reader that knows `version`.
///
/// # Errors
/// FAILED_PRECONDITION if a part needs a newer version.
pub fn array_spec_to_proto(spec: &ArraySpec, version: SerDesVersion) -> Result<ArraySpecProto> {
    Ok(ArraySpecProto {
        dtype: Some(dtype_to_proto(spec.dtype)),
        shape: Some(shape_to_proto(&spec.shape)),
        sharding: Some(sharding_to_proto(&spec.sharding, version)?),
        layout: spec.layout.as_ref().map(layout_to_text),
        version_number: 0,
    })
}

const ABSTRACT: &str = "AbstractArraySpec";

/// Reads an abstract array spec.
///
/// # Errors
/// INVALID_ARGUMENT for missing or malformed parts; FAILED_PRECONDITION for another format.
pub fn abstract_array_spec_from_proto(proto: &AbstractArraySpecProto) -> Result<AbstractArraySpec> {
    let only = SerDesVersion::ABSTRACT_ARRAY_SPEC.number();
    if proto.version_number < only {
        return Err(Status::failed_precondition(format!(
            "Unsupported IFRT SerDes version {} for {ABSTRACT} deserialization",
            proto.version_number
        )));
    }
    check_version(proto.version_number, only, ABSTRACT)?;
    let part = |field| missing(ABSTRACT, field);
    let kind = Some(proto.memory_kind.as_str()).filter(|kind| !kind.is_empty());
    Ok(AbstractArraySpec {
        dtype: dtype_from_proto(proto.dtype.as_ref().ok_or_else(|| part("dtype"))?)?,
        shape: shape_from_proto(proto.shape.as_ref().ok_or_else(|| part("shape"))?)?,
        sharding_spec: sharding_spec_from_proto(
            proto
                .sharding_spec
                .as_ref()
                .ok_or_else(|| part("sharding_spec"))?,
        )?,
        memory_kind: MemoryKind::from(kind),
        layout: proto.layout.as_ref().map(layout_from_text).transpose()?,
    })
}

/// Writes an abstract array spec for a reader that knows `version`.
///
/// # Errors
/// FAILED_PRECONDITION if that is older than [`SerDesVersion::ABSTRACT_ARRAY_SPEC`].
pub fn abstract_array_spec_to_proto(
    spec: &AbstractArraySpec,
    version: SerDesVersion,
) -> Result<AbstractArraySpecProto> {
    if version < SerDesVersion::ABSTRACT_ARRAY_SPEC {
        return Err(unsupported(version, ABSTRACT, ""));
    }
    // The message is younger than the old meaning of an absent kind, so the default is left out.
    let kind = Some(&spec.memory_kind).filter(|kind| !kind.is_default());
    Ok(AbstractArraySpecProto {
        version_number: SerDesVersion::ABSTRACT_ARRAY_SPEC.number(),
        dtype: Some(dtype_to_proto(spec.dtype)),
        shape: Some(shape_to_proto(&spec.shape)),
        sharding_spec: Some(sharding_spec_to_proto(&spec.sharding_spec, version)?),
        memory_kind: kind.map_or_else(String::new, |kind| kind.name().to_owned()),
        layout: spec.layout.as_ref().map(layout_to_text),
    })
}
