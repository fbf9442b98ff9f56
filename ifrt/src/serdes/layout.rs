//! [`Layout`] as IFRT's envelope and as XLA's message.

use prost::Message;

use super::envelope::{open, seal};
use super::{check_version, missing};
use crate::layout::{COMBINE_DIMENSION, CompactLayout, Layout, LayoutProperties, SplitConfig};
use crate::proto::xla::ifrt::{CompactLayoutProto, LayoutProto, PjRtLayoutProto};
use crate::proto::xla::{LayoutProto as XlaLayoutProto, SplitConfigProto, TileProto};
use crate::status::{Result, Status};

const COMPACT: &str = "CompactLayout";
const PJRT: &str = "PjRtLayout";

/// Reads IFRT's envelope of a layout. A compact layout becomes the layout of XLA with its order.
///
/// # Errors
/// INVALID_ARGUMENT for malformed bytes; UNIMPLEMENTED for an unknown kind of layout and for sparse
/// and dynamic layouts; FAILED_PRECONDITION for a newer format.
pub fn layout_from_proto(proto: &LayoutProto) -> Result<Layout> {
    let serialized = proto
        .serialized_layout
        .as_ref()
        .ok_or_else(|| missing("LayoutProto", "layout"))?;
    match open(serialized, "layout")? {
        (COMPACT, _) => Ok(compact_layout_from_proto(proto)?.to_layout()),
        (PJRT, data) => {
            let pjrt = PjRtLayoutProto::decode(data)?;
            check_version(pjrt.version_number, 0, PJRT)?;
            xla_layout_from_proto(&pjrt.xla_layout.unwrap_or_default())
        }
        _ => Err(Status::unimplemented(format!(
            "layouts of type {:?} are not known",
            serialized.type_name
        ))),
    }
}

/// Reads IFRT's envelope of a compact layout.
///
/// # Errors
/// INVALID_ARGUMENT for malformed bytes and other kinds of layout; FAILED_PRECONDITION for a newer
/// format.
pub fn compact_layout_from_proto(proto: &LayoutProto) -> Result<CompactLayout> {
    let serialized = proto
        .serialized_layout
        .as_ref()
        .ok_or_else(|| missing("LayoutProto", "layout"))?;
    let (COMPACT, data) = open(serialized, "layout")? else {
        return Err(Status::invalid_argument(format!(
            "a layout of type {:?} is not compact",
            serialized.type_name
        )));
    };
    let compact = CompactLayoutProto::decode(data)?;
    check_version(compact.version_number, 0, COMPACT)?;
    // A negative number lies outside of the permutation as well.
    let dims = compact.major_to_minor.iter();
    CompactLayout::new(
        dims.map(|dim| usize::try_from(*dim).unwrap_or(usize::MAX))
            .collect::<Box<[usize]>>(),
    )
}

/// Writes IFRT's envelope of a compact layout.
///
/// # Errors
/// INVALID_ARGUMENT for more dimensions than 32 bits can count.
pub fn compact_layout_to_proto(layout: &CompactLayout) -> Result<LayoutProto> {
    let dims = layout.major_to_minor().iter();
    let major_to_minor = dims
        .map(|dim| i32::try_from(*dim))
        .collect::<Result<_, _>>()
        .map_err(|_| Status::invalid_argument("a layout has too many dimensions"))?;
    let compact = CompactLayoutProto {
        major_to_minor,
        version_number: 0,
    };
    Ok(LayoutProto {
        serialized_layout: Some(seal(COMPACT, compact.encode_to_vec())),
    })
}

/// Writes IFRT's envelope of a layout.
///
/// # Errors
/// UNIMPLEMENTED for sparse and dynamic layouts.
pub fn layout_to_proto(layout: &Layout) -> Result<LayoutProto> {
    let pjrt = PjRtLayoutProto {
        xla_layout: Some(xla_layout_to_proto(layout)?),
        version_number: 0,
    };
    Ok(LayoutProto {
        serialized_layout: Some(seal(PJRT, pjrt.encode_to_vec())),
    })
}

/// Reads XLA's message.
///
/// # Errors
/// INVALID_ARGUMENT if the order is no permutation or a number is negative; UNIMPLEMENTED for
/// sparse and dynamic layouts.
pub fn xla_layout_from_proto(proto: &XlaLayoutProto) -> Result<Layout> {
    if !proto.dim_level_types.is_empty()
        || proto.physical_shape.is_some()
        || proto.dynamic_shape_metadata_prefix_bytes != 0
        || proto.index_primitive_type != 0
        || proto.pointer_primitive_type != 0
    {
        return Err(Status::unimplemented(
            "sparse and dynamic layouts are not supported",
        ));
    }
    let is_size = |dim: &i64| *dim >= 0 || *dim == COMBINE_DIMENSION;
    let mut dims = proto.tiles.iter().flat_map(|tile| &tile.dimensions);
    let sizes = [
        proto.tail_padding_alignment_in_elements,
        proto.element_size_in_bits,
    ];
    if !dims.all(is_size) || sizes.iter().any(|size| *size < 0) {
        return Err(Status::invalid_argument(
            "a LayoutProto has a negative size of a tile, element or padding",
        ));
    }
    let properties = LayoutProperties {
        tiles: proto.tiles.iter().map(|t| t.dimensions.clone()).collect(),
        // Messages from before the field existed mean no padding.
        tail_padding_alignment_in_elements: proto.tail_padding_alignment_in_elements.max(1),
        element_size_in_bits: proto.element_size_in_bits,
        memory_space: proto.memory_space,
        split_configs: proto.split_configs.iter().map(split_from_proto).collect(),
    };
    let layout = Layout::from_minor_to_major(&proto.minor_to_major[..])?;
    Ok(layout.with_properties(&properties))
}

/// Writes XLA's message.
///
/// # Errors
/// UNIMPLEMENTED for sparse and dynamic layouts.
pub fn xla_layout_to_proto(layout: &Layout) -> Result<XlaLayoutProto> {
    let properties = layout.parse_properties()?;
    let tile = |dimensions| TileProto { dimensions };
    Ok(XlaLayoutProto {
        minor_to_major: layout.minor_to_major().to_vec(),
        tiles: properties.tiles.into_iter().map(tile).collect(),
        tail_padding_alignment_in_elements: properties.tail_padding_alignment_in_elements,
        element_size_in_bits: properties.element_size_in_bits,
        memory_space: properties.memory_space,
        split_configs: properties
            .split_configs
            .iter()
            .map(split_to_proto)
            .collect(),
        ..XlaLayoutProto::default()
    })
}

fn split_from_proto(proto: &SplitConfigProto) -> SplitConfig {
    SplitConfig {
        dimension: proto.dimension,
        split_indices: proto.split_indices.clone(),
    }
}

fn split_to_proto(split: &SplitConfig) -> SplitConfigProto {
    SplitConfigProto {
        dimension: split.dimension,
        split_indices: split.split_indices.clone(),
    }
}
