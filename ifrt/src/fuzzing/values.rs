//! Small values, layouts and statuses.

use super::{Kept, check, choose, client};
use crate::layout::Layout;
use crate::proto::tensorflow::StatusProto;
use crate::proto::xla::LayoutProto;
use crate::serdes::{
    attribute_map_from_proto, attribute_map_to_proto, device_list_from_proto, device_list_to_proto,
    dtype_from_proto, dtype_to_proto, dynamic_shape_from_proto, dynamic_shape_to_proto,
    execute_options_from_proto, execute_options_to_proto, index_domain_from_proto,
    index_domain_to_proto, index_from_proto, index_to_proto, layout_from_proto, layout_to_proto,
    shape_from_proto, shape_to_proto, status_from_proto, status_to_proto, xla_layout_from_proto,
    xla_layout_to_proto,
};
use crate::shape::Shape;
use crate::status::Status;
use crate::{DType, user_context};

/// A status, also as it is shown to people.
///
/// # Panics
/// If it does not survive being written and read again.
pub fn status(data: &[u8]) {
    check::<StatusProto, Option<Status>>(
        data,
        |proto| Ok(status_from_proto(proto)),
        |status| Ok(status.as_ref().map(status_to_proto).unwrap_or_default()),
    );
    if let Ok(proto) = prost::Message::decode(data)
        && let Some(status) = status_from_proto(&proto)
    {
        let shown = user_context::expand(user_context::reattach_refs(status.clone()));
        assert!(shown.message().starts_with(status.message()));
    }
}

/// A dtype, shape, index, device list, attribute map or the options of an execution.
///
/// # Panics
/// If it does not survive being written and read again.
pub fn value(data: &[u8]) {
    let Some((kind, data)) = choose(data, &[0, 1, 2, 3, 4, 5, 6, 7]) else {
        return;
    };
    match kind {
        0 => check(data, dtype_from_proto, |dtype| Ok(dtype_to_proto(*dtype))),
        1 => check(data, shape_from_proto, |shape| {
            assert!(shape.num_elements() >= 0);
            Ok(shape_to_proto(shape))
        }),
        2 => check(data, dynamic_shape_from_proto, |shape| {
            assert!(shape.tag().dynamic_dims().contains(&true));
            Ok(dynamic_shape_to_proto(shape))
        }),
        3 => check(data, index_from_proto, |index| Ok(index_to_proto(index))),
        4 => check(data, index_domain_from_proto, |domain| {
            Ok(index_domain_to_proto(domain))
        }),
        5 => {
            let client = client();
            check(
                data,
                |proto| device_list_from_proto(proto, &*client),
                |devices| {
                    assert!(devices.addressable().is_fully_addressable());
                    assert_ne!(devices.stable_hash(), 0);
                    Ok(device_list_to_proto(devices))
                },
            );
        }
        // Not-a-number is not equal to itself, but has one text.
        6 => check(
            data,
            |proto| attribute_map_from_proto(proto).map(|map| (map.to_string(), Kept(map))),
            |(_, map)| Ok(attribute_map_to_proto(&map.0)),
        ),
        _ => check(data, execute_options_from_proto, execute_options_to_proto),
    }
}

/// A layout as text, as XLA's message and in IFRT's envelope, and the sizes that it gives.
///
/// # Panics
/// If it does not survive being written and read again, or a size is smaller than its elements.
pub fn layout(data: &[u8]) {
    check(data, layout_from_proto, layout_to_proto);
    check::<LayoutProto, Layout>(data, xla_layout_from_proto, xla_layout_to_proto);
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(layout) = Layout::parse(text) else {
        return;
    };
    assert_eq!(Layout::parse(&layout.to_string()), Ok(layout.clone()));
    let properties = layout.parse_properties().unwrap_or_default();
    let is_plain = properties.element_size_in_bits == 0 && properties.split_configs.is_empty();
    for size in [0, 1, 3, 1 << 20, i64::MAX] {
        let mut dims = vec![1; layout.minor_to_major().len()];
        if let Some(first) = dims.first_mut() {
            *first = size;
        }
        let Ok(shape) = Shape::new(dims) else {
            continue;
        };
        if let Ok(Some(bytes)) = layout.byte_size(DType::S8, &shape)
            && is_plain
        {
            assert!(i64::try_from(bytes).map_or(true, |bytes| bytes >= shape.num_elements()));
        }
    }
}
