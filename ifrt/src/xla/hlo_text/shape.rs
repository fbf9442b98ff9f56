//! Shapes, and lists of things.

use crate::dtype::DType;
use crate::proto::xla::ShapeProto;
use crate::serdes::xla_layout_from_proto;

/// Tuples of tuples deeper than this are not printed: the bytes come from a plugin.
const MAX_DEPTH: usize = 32;

/// `f32[2,3]{1,0}`, or `(…, …)` for a tuple.
pub(super) fn shape(proto: &ShapeProto, with_layout: bool) -> String {
    nested(proto, with_layout, 0)
}

fn nested(proto: &ShapeProto, with_layout: bool, depth: usize) -> String {
    const TUPLE: i32 = 13;
    if proto.element_type == TUPLE {
        if depth == MAX_DEPTH {
            return "(...)".into();
        }
        let leaves = proto.tuple_shapes.iter();
        return format!(
            "({})",
            list(leaves.map(|leaf| nested(leaf, with_layout, depth + 1)))
        );
    }
    let name = DType::from_primitive_type(proto.element_type).map_or("?", DType::name);
    let dims: Vec<String> = proto
        .dimensions
        .iter()
        .zip(
            proto
                .is_dynamic_dimension
                .iter()
                .copied()
                .chain(std::iter::repeat(false)),
        )
        .map(|(dim, dynamic)| {
            if dynamic {
                format!("<={dim}")
            } else {
                dim.to_string()
            }
        })
        .collect();
    let layout = match &proto.layout {
        Some(layout) if with_layout => xla_layout_from_proto(layout)
            .map(|layout| layout.to_string())
            .unwrap_or_default(),
        _ => String::new(),
    };
    let layout = if layout == "{}" { "" } else { &layout };
    format!("{name}[{}]{layout}", dims.join(","))
}

/// Things separated by commas, with XLA's mark before every fifth.
pub(super) fn list(items: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for (position, item) in items.enumerate() {
        if position > 0 {
            out.push_str(", ");
            if position % 5 == 0 {
                out.push_str(&format!("/*index={position}*/"));
            }
        }
        out.push_str(&item);
    }
    out
}

/// `{1,2,3}`.
pub(super) fn braces(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}
