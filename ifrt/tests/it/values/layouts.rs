mod asking;

use ifrt::layout::{CompactLayout, LayoutProperties, SplitConfig};
use ifrt::serdes::{
    compact_layout_from_proto, compact_layout_to_proto, layout_from_proto, layout_to_proto,
};
use ifrt::sharding::ShardingKind;
use ifrt::xla::HloSharding;
use ifrt::{ArraySpec, DType, Layout, MemoryKind, Result, Sharding, ShardingRef};

use self::asking::AskingClient;
use super::{assert_invalid, device, list, shape};

fn layout(text: &str) -> Layout {
    Layout::parse(text).unwrap()
}

/// The layout of a compact one with this order.
fn compact(major_to_minor: &[usize]) -> Layout {
    CompactLayout::new(major_to_minor).unwrap().to_layout()
}

fn spec(dims: &[i64], sharding: ShardingRef, layout: Option<Layout>) -> ArraySpec {
    ArraySpec {
        dtype: DType::S32,
        shape: shape(dims),
        sharding,
        layout,
    }
}

#[test]
fn ly_01_compact_layouts_keep_their_order() {
    for order in [&[][..], &[1, 0]] {
        assert_eq!(CompactLayout::new(order).unwrap().major_to_minor(), order);
    }
    assert!(CompactLayout::c_order(0).major_to_minor().is_empty());
    assert_eq!(CompactLayout::c_order(2).major_to_minor(), [0, 1]);
    for (order, part) in [
        (
            &[0, 2][..],
            "elements in range [0, 2), but got major_to_minor=[0,2]",
        ),
        (
            &[0, 0],
            "all elements in range [0, 2), but got major_to_minor=[0,0]",
        ),
    ] {
        assert_invalid(CompactLayout::new(order), part);
    }
}

#[test]
fn ly_02_compact_layouts_pack_elements() {
    for (dtype, dims, size) in [
        (DType::Token, &[][..], None),
        (DType::Opaque, &[], None),
        (DType::String, &[], None),
        (DType::S8, &[], Some(1)),
        (DType::S32, &[], Some(4)),
        (DType::S32, &[3, 2], Some(24)),
        (DType::S4, &[3, 2], Some(3)),
        (DType::S4, &[3], Some(2)),
        (DType::U1, &[9], Some(2)),
    ] {
        let layout = CompactLayout::c_order(dims.len());
        assert_eq!(layout.byte_size(dtype, &shape(dims)), Ok(size), "{dtype}");
    }
}

#[test]
fn ly_03_compact_layouts_fit_the_shape() {
    let scalar = CompactLayout::c_order(0);
    assert_invalid(
        scalar.byte_size(DType::S32, &shape(&[3, 2])),
        "CompactLayout expects Shape with the same number of dimensions as major_to_minor []",
    );
    let huge = CompactLayout::c_order(1).byte_size(DType::C128, &shape(&[i64::MAX]));
    assert_invalid(huge, "more bits than a 64-bit number can count");
}

fn halves(client: &AskingClient) -> ShardingRef {
    let rows = HloSharding::tile([2, 1]).unwrap();
    Sharding::hlo(rows, list(&client.devices, &[0, 1]), MemoryKind::default()).unwrap()
}

#[test]
fn ly_04_and_ly_17_the_size_of_a_shard_in_a_given_or_default_layout() -> Result<()> {
    let client = AskingClient::new(|_| layout("{1,0}"));
    let given = spec(&[6, 2], halves(&client), Some(compact(&[1, 0])));
    assert_eq!(given.shard_byte_size(&client)?, Some(24));
    assert!(client.asked().is_empty());
    let missing = spec(&[6, 2], halves(&client), None);
    assert_eq!(missing.shard_byte_size(&client)?, Some(24));
    let asked = client.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0], (DType::S32, shape(&[3, 2]), 10, "device".into()));
    // A default layout that pads shows that it is taken into account.
    let padding = AskingClient::new(|_| layout("{1,0:T(4,128)}"));
    assert_eq!(
        spec(&[6, 2], halves(&padding), None).shard_byte_size(&padding)?,
        Some(4 * 128 * 4)
    );
    Ok(())
}

#[test]
fn ly_05_and_ly_17_shards_without_a_size() -> Result<()> {
    let client = AskingClient::new(|_| layout("{1,0}"));
    let token = ArraySpec {
        dtype: DType::Token,
        ..spec(
            &[],
            Sharding::single_device(device(&client.devices, 0), MemoryKind::default()),
            None,
        )
    };
    assert_eq!(token.shard_byte_size(&client)?, None);
    let kind = ShardingKind::concrete(shape(&[5, 2]), vec![shape(&[3, 2]), shape(&[2, 2])]);
    let devices = list(&client.devices, &[0, 1]);
    let uneven = Sharding::new(kind, devices, MemoryKind::default())?.into();
    assert_eq!(spec(&[5, 2], uneven, None).shard_byte_size(&client)?, None);
    assert!(client.asked().is_empty());
    Ok(())
}

fn on(client: &AskingClient, position: usize, layout: Option<Layout>) -> ArraySpec {
    let device = device(&client.devices, position);
    spec(
        &[3, 2],
        Sharding::single_device(device, MemoryKind::default()),
        layout,
    )
}

#[test]
fn ly_06_to_ly_09_comparisons_that_need_no_default() -> Result<()> {
    let client = AskingClient::new(|_| compact(&[1, 0]));
    let given = on(&client, 0, Some(compact(&[1, 0])));
    let other = on(&client, 0, Some(compact(&[0, 1])));
    let missing = on(&client, 0, None);
    assert!(!given.has_equivalent_layout(&missing, &client)?);
    assert!(!missing.has_equivalent_layout(&given, &client)?);
    assert!(given.has_equivalent_layout(&given.clone(), &client)?);
    assert!(!given.has_equivalent_layout(&other, &client)?);
    assert!(missing.has_equivalent_layout(&missing.clone(), &client)?);
    assert!(client.asked().is_empty());
    Ok(())
}

#[test]
fn ly_10_and_ly_11_defaults_of_two_devices() -> Result<()> {
    let equal = AskingClient::new(|_| layout("{1,0}"));
    let (one, two) = (on(&equal, 0, None), on(&equal, 1, None));
    assert!(one.has_equivalent_layout(&two, &equal)?);
    assert_eq!(equal.asked().len(), 2);
    let different = AskingClient::new(|id| layout(if id == 10 { "{1,0}" } else { "{0,1}" }));
    let (one, two) = (on(&different, 0, None), on(&different, 1, None));
    assert!(!one.has_equivalent_layout(&two, &different)?);
    Ok(())
}

#[test]
fn ly_12_only_the_shapes_of_shards_count() -> Result<()> {
    let client = AskingClient::new(|_| layout("{1,0}"));
    let tiled = |tiles: [i64; 2], devices: [usize; 2]| {
        let sharding = HloSharding::tile(tiles).unwrap();
        let devices = list(&client.devices, &devices);
        Sharding::hlo(sharding, devices, MemoryKind::default()).unwrap()
    };
    let rows = spec(&[6, 2], tiled([2, 1], [0, 1]), None);
    let columns = spec(&[3, 4], tiled([1, 2], [1, 0]), None);
    assert!(rows.has_equivalent_layout(&columns, &client)?);
    assert!(client.asked().iter().all(|asked| asked.1 == shape(&[3, 2])));
    Ok(())
}

#[test]
fn ly_13_compact_layouts_round_trip() -> Result<()> {
    for order in [&[][..], &[1, 0], &[0, 1, 2]] {
        let compact = CompactLayout::new(order)?;
        let proto = compact_layout_to_proto(&compact)?;
        assert_eq!(compact_layout_from_proto(&proto)?, compact);
        assert_eq!(layout_from_proto(&proto)?, compact.to_layout());
    }
    let other = layout_to_proto(&layout("{1,0}"))?;
    assert_invalid(compact_layout_from_proto(&other), "is not compact");
    Ok(())
}

#[test]
fn ly_14_and_ly_15_layouts_of_xla_round_trip() -> Result<()> {
    for text in [
        "{}",
        "{1,0}",
        "{0,1}",
        "{1,0:T(8,128)}",
        "{1,0:T(8,128)(2,1)}",
        "{2,1,0:T(*,128)}",
        "{0:L(1024)E(4)}",
        "{1,0:T(2,128)SC(1:200,400)}",
    ] {
        let xla = layout(text);
        assert_eq!(xla.to_string(), text);
        assert_eq!(layout_from_proto(&layout_to_proto(&xla)?)?, xla);
    }
    Ok(())
}

#[test]
fn memory_spaces_are_not_part_of_a_layout() {
    assert_eq!(layout("{1,0:S(5)}"), layout("{1,0}"));
    assert_eq!(layout("{0:T(256)E(4)S(1)}").to_string(), "{0:T(256)E(4)}");
    let properties = LayoutProperties {
        memory_space: 3,
        ..LayoutProperties::default()
    };
    assert_eq!(layout("{0}").with_properties(&properties), layout("{0}"));
}

#[test]
fn a_dimension_without_cuts_is_not_split() {
    let split = |split_indices: &[i64]| SplitConfig {
        dimension: 0,
        split_indices: split_indices.to_vec(),
    };
    let properties = LayoutProperties {
        split_configs: vec![split(&[]), split(&[3]), split(&[])],
        ..LayoutProperties::default()
    };
    let text = layout("{0}").with_properties(&properties).to_string();
    assert_eq!(text, "{0:SC(0:3)}");
    let none = LayoutProperties {
        split_configs: vec![split(&[])],
        ..LayoutProperties::default()
    };
    assert_eq!(layout("{0}").with_properties(&none), layout("{0}"));
}

#[test]
fn properties_that_are_none_are_kept_but_not_understood() {
    for text in [
        "{0:X}",
        "{0:T}",
        "{0:T(a)}",
        "{0:E(4}",
        "{0:E(-4)}",
        "{0:S(1)T(2)}",
        "{0:SC}",
    ] {
        let odd = layout(text);
        assert_eq!(odd.to_string(), text);
        assert_invalid(odd.parse_properties(), "malformed properties");
    }
    for text in ["{0:D(D)}", "{0:#(u32)}", "{0:*(u64)}", "{0:M(8)}"] {
        let error = layout(text).parse_properties().unwrap_err();
        assert_eq!(error.code(), ifrt::Code::Unimplemented, "{text}");
    }
}

#[test]
fn ly_16_sizes() {
    for (text, dtype, dims, size) in [
        ("{}", DType::Token, &[][..], None),
        ("{}", DType::Opaque, &[], None),
        ("{}", DType::S32, &[], Some(4)),
        ("{1,0}", DType::S32, &[3, 2], Some(24)),
        ("{1,0:T(2,128)}", DType::S32, &[1, 127], Some(1024)),
        ("{1,0:T(2,1024)E(4)}", DType::S4, &[1, 1023], Some(1024)),
        // Types below a byte take whole bytes unless the layout says otherwise.
        ("{1,0}", DType::S4, &[3, 2], Some(6)),
        ("{1,0:E(4)}", DType::S4, &[3, 1], Some(2)),
        // The tile belongs to the fastest dimensions, here the first two.
        ("{0,1:T(8)}", DType::S8, &[3, 5], Some(40)),
        ("{:T(256)}", DType::F32, &[], Some(1024)),
        ("{0:L(100)}", DType::S8, &[101], Some(200)),
        // The longest piece counts: 300 of 700 columns.
        (
            "{1,0:T(2,128)SC(1:200,400)}",
            DType::S8,
            &[2, 700],
            Some(2 * 384),
        ),
        ("{1,0}", DType::F32, &[0, 9], Some(0)),
    ] {
        let found = layout(text).byte_size(dtype, &shape(dims));
        assert_eq!(found, Ok(size), "{text} {dtype} {dims:?}");
    }
}

#[test]
fn sizes_that_cannot_be() {
    let huge = [i64::MAX];
    for (text, dims) in [
        ("{1,0}", &[3][..]),
        ("{0}", &huge),
        ("{0:T(0)}", &[3]),
        ("{0:T(9223372036854775807)}", &[9]),
        ("{0:L(0)}", &[3]),
        ("{0:SC(0:9,3)}", &[20]),
        ("{0:SC(0:30)}", &[20]),
        ("{0:T(*)}", &[20]),
    ] {
        assert_invalid(layout(text).byte_size(DType::C128, &shape(dims)), text);
    }
}

#[test]
fn ly_18_layouts_of_xla_from_others() -> Result<()> {
    assert_eq!(CompactLayout::c_order(3).to_layout(), Layout::descending(3));
    assert_eq!(compact(&[1, 0]).to_string(), "{0,1}");
    Ok(())
}
