//! [`Layout`] as IFRT's envelope and as XLA's message.

use prost::Message;

use super::{check_version, missing};
use crate::layout::Layout;
use crate::proto::xla::ifrt::{CompactLayoutProto, LayoutProto, PjRtLayoutProto, Serialized};
use crate::proto::xla::{LayoutProto as XlaLayoutProto, TileProto};
use crate::status::{Result, Status};

const COMPACT: &str = "xla::ifrt::CompactLayout";
const PJRT: &str = "xla::ifrt::PjRtLayout";

/// Reads IFRT's envelope of a layout.
///
/// # Errors
/// INVALID_ARGUMENT for malformed bytes; UNIMPLEMENTED for an unknown kind of layout or one that
/// has no text form here; FAILED_PRECONDITION for a newer format.
pub fn layout_from_proto(proto: &LayoutProto) -> Result<Layout> {
    let serialized = proto
        .serialized_layout
        .as_ref()
        .ok_or_else(|| missing("LayoutProto", "layout"))?;
    match serialized.type_name.as_str() {
        COMPACT => {
            let compact = CompactLayoutProto::decode(serialized.data.clone())?;
            check_version(compact.version_number, 0, "CompactLayout")?;
            let minor_to_major: Vec<i64> = compact
                .major_to_minor
                .iter()
                .rev()
                .map(|dim| i64::from(*dim))
                .collect();
            Layout::from_minor_to_major(minor_to_major)
        }
        PJRT => {
            let pjrt = PjRtLayoutProto::decode(serialized.data.clone())?;
            check_version(pjrt.version_number, 0, "PjRtLayout")?;
            xla_layout_from_proto(&pjrt.xla_layout.unwrap_or_default())
        }
        other => Err(Status::unimplemented(format!(
            "layouts of type {other:?} are not known"
        ))),
    }
}

/// Writes IFRT's envelope of a layout.
///
/// # Errors
/// UNIMPLEMENTED for properties without a form in XLA's message here.
pub fn layout_to_proto(layout: &Layout) -> Result<LayoutProto> {
    let pjrt = PjRtLayoutProto {
        xla_layout: Some(xla_layout_to_proto(layout)?),
        version_number: 0,
    };
    Ok(LayoutProto {
        serialized_layout: Some(Serialized {
            type_name: PJRT.into(),
            data: pjrt.encode_to_vec().into(),
        }),
    })
}

/// Reads XLA's message.
///
/// # Errors
/// INVALID_ARGUMENT if the order is no permutation; UNIMPLEMENTED for sparse and split layouts.
pub fn xla_layout_from_proto(proto: &XlaLayoutProto) -> Result<Layout> {
    if !proto.dim_level_types.is_empty()
        || !proto.split_configs.is_empty()
        || proto.physical_shape.is_some()
        || proto.dynamic_shape_metadata_prefix_bytes != 0
        || proto.index_primitive_type != 0
        || proto.pointer_primitive_type != 0
    {
        return Err(Status::unimplemented(
            "sparse, split and dynamic layouts are not supported",
        ));
    }
    let order = proto
        .minor_to_major
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",");
    let mut properties = String::new();
    if !proto.tiles.is_empty() {
        properties.push('T');
        for tile in &proto.tiles {
            let dims: Vec<String> = tile.dimensions.iter().map(tile_dim).collect();
            properties.push_str(&format!("({})", dims.join(",")));
        }
    }
    if !matches!(proto.tail_padding_alignment_in_elements, 0 | 1) {
        properties.push_str(&format!("L({})", proto.tail_padding_alignment_in_elements));
    }
    if proto.element_size_in_bits != 0 {
        properties.push_str(&format!("E({})", proto.element_size_in_bits));
    }
    if proto.memory_space != 0 {
        properties.push_str(&format!("S({})", proto.memory_space));
    }
    let separator = if properties.is_empty() { "" } else { ":" };
    Layout::parse(&format!("{{{order}{separator}{properties}}}"))
}

/// A tile dimension that merges with the next has its own mark in the text.
const COMBINE: i64 = i64::MIN;

fn tile_dim(dim: &i64) -> String {
    if *dim == COMBINE {
        "*".into()
    } else {
        dim.to_string()
    }
}

/// Writes XLA's message.
///
/// # Errors
/// UNIMPLEMENTED for properties other than tiles, tail padding, element size and memory space.
pub fn xla_layout_to_proto(layout: &Layout) -> Result<XlaLayoutProto> {
    let mut proto = XlaLayoutProto {
        minor_to_major: layout.minor_to_major().to_vec(),
        tail_padding_alignment_in_elements: 1,
        ..XlaLayoutProto::default()
    };
    let unknown = || {
        Status::unimplemented(format!(
            "layout {layout} has properties without a message form"
        ))
    };
    let mut rest = layout.properties();
    while let Some(kind) = rest.chars().next() {
        rest = rest.strip_prefix(kind).unwrap_or_default();
        match kind {
            'T' => {
                while rest.starts_with('(') {
                    let tile = argument(&mut rest).ok_or_else(unknown)?;
                    let dimensions = tile
                        .split(',')
                        .map(|dim| {
                            if dim == "*" {
                                Some(COMBINE)
                            } else {
                                dim.parse().ok()
                            }
                        })
                        .collect::<Option<_>>()
                        .ok_or_else(unknown)?;
                    proto.tiles.push(TileProto { dimensions });
                }
            }
            'L' | 'E' | 'S' => {
                let number = argument(&mut rest)
                    .and_then(|n| n.parse().ok())
                    .ok_or_else(unknown)?;
                match kind {
                    'L' => proto.tail_padding_alignment_in_elements = number,
                    'E' => proto.element_size_in_bits = number,
                    _ => proto.memory_space = number,
                }
            }
            _ => return Err(unknown()),
        }
    }
    Ok(proto)
}

/// Takes `(argument)` off the front of the text.
fn argument<'a>(text: &mut &'a str) -> Option<&'a str> {
    let (argument, rest) = text.strip_prefix('(')?.split_once(')')?;
    *text = rest;
    Some(argument)
}
