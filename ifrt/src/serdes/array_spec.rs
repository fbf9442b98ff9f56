//! [`ArraySpec`] as `xla.ifrt.ArraySpecProto`.

use super::{
    SerDesVersion, check_version, dtype_from_proto, dtype_to_proto, missing, shape_from_proto,
    shape_to_proto, sharding_from_proto, sharding_to_proto,
};
use crate::array_spec::ArraySpec;
use crate::client::Client;
use crate::layout::Layout;
use crate::proto::xla::ifrt::ArraySpecProto;
use crate::status::{Result, Status};

/// Reads an array spec over devices of `client`.
///
/// # Errors
/// INVALID_ARGUMENT for missing or malformed parts; FAILED_PRECONDITION for a newer format.
pub fn array_spec_from_proto(proto: &ArraySpecProto, client: &dyn Client) -> Result<ArraySpec> {
    const WHAT: &str = "ArraySpec";
    check_version(proto.version_number, 0, WHAT)?;
    let layout = match &proto.layout {
        None => None,
        Some(text) => {
            let text = std::str::from_utf8(text)
                .map_err(|_| Status::invalid_argument("the layout of an ArraySpec is no text"))?;
            Some(Layout::parse(text)?)
        }
    };
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
        layout,
    })
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
        layout: spec
            .layout
            .as_ref()
            .map(|layout| layout.to_string().into_bytes().into()),
        version_number: 0,
    })
}
