use ifrt::Shape;
use ifrt::proto::xla::ifrt::{DynamicShapeProto, ShapeProto};
use ifrt::serdes::{
    dynamic_shape_from_proto, dynamic_shape_to_proto, shape_from_proto, shape_to_proto,
};
use ifrt::shape::{BoundedDynamicShapeTag, DynamicShape};

use super::{assert_hash_is_consistent, assert_invalid, shape};

fn dynamic(dims: &[i64], dynamic_dims: &[bool]) -> DynamicShape {
    let tag = BoundedDynamicShapeTag::new(dynamic_dims).unwrap();
    DynamicShape::new(shape(dims), tag).unwrap()
}

#[test]
fn sh_01_and_sh_02_large_and_many_dimensions_are_kept() {
    assert_eq!(shape(&[i64::MAX]).dims(), [i64::MAX]);
    assert_eq!(shape(&[1; 65536]).rank(), 65536);
}

#[test]
fn sh_03_the_number_of_elements() {
    for (dims, count) in [
        (&[][..], 1),
        (&[0], 0),
        (&[1, 0], 0),
        (&[0, 1], 0),
        (&[0, 0], 0),
        (&[2], 2),
        (&[2, 3], 6),
    ] {
        assert_eq!(shape(dims).num_elements(), count, "{dims:?}");
    }
}

#[test]
fn sh_04_and_sh_06_round_trip() {
    for dims in [&[][..], &[1, 2], &[100, 200]] {
        let proto = shape_to_proto(&shape(dims));
        assert_eq!(proto.dims, dims);
        assert_eq!(shape_from_proto(&proto), Ok(shape(dims)));
    }
}

#[test]
fn sh_05_products_and_dimensions_that_cannot_be() {
    let read = |dims: &[i64]| {
        shape_from_proto(&ShapeProto {
            dims: dims.to_vec(),
            version_number: 0,
        })
    };
    let huge = [3_037_000_500, 3_037_000_500, 4];
    assert_invalid(read(&huge), "more elements than a 64-bit number can count");
    assert_invalid(read(&[2, -1]), "negative dimension -1");
    // Nothing is too large next to an empty dimension.
    assert_eq!(read(&[i64::MAX, i64::MAX, 0]).unwrap().num_elements(), 0);
}

#[test]
fn sh_07_hash() {
    let dims: [&[i64]; 8] = [
        &[],
        &[1],
        &[2],
        &[1, 2],
        &[1, 3],
        &[2, 1],
        &[1, 2, 3],
        &[1, 2, 4],
    ];
    let make = || dims.map(shape);
    assert_hash_is_consistent(&make(), &make());
}

#[test]
fn sh_08_a_tag_has_a_dynamic_dimension() {
    for none in [&[false, false][..], &[]] {
        assert_invalid(
            BoundedDynamicShapeTag::new(none),
            "At least one dimension needs to be dynamically sized",
        );
    }
}

#[test]
fn sh_09_and_sh_14_dynamic_shapes_round_trip() {
    let shape = dynamic(&[2, 4], &[true, false]);
    let proto = dynamic_shape_to_proto(&shape);
    assert_eq!(dynamic_shape_from_proto(&proto), Ok(shape.clone()));
    assert_eq!(shape.tag().dynamic_dims(), [true, false]);
    let untagged = DynamicShapeProto { tag: None, ..proto };
    assert_invalid(
        dynamic_shape_from_proto(&untagged),
        "Only support bounded dynamic shape.",
    );
}

#[test]
fn sh_10_a_tag_fits_its_shape() {
    let tag = BoundedDynamicShapeTag::new([true, true]).unwrap();
    let result = DynamicShape::new(shape(&[1, 2, 3]), tag);
    assert_invalid(result, "must have the same number of dimensions");
}

#[test]
fn sh_11_and_sh_16_dynamic_shapes_differ_by_bound_tag_and_rank() {
    let make = || {
        [
            dynamic(&[1, 2], &[true, true]),
            dynamic(&[1, 3], &[true, true]),
            dynamic(&[1, 2], &[true, false]),
            dynamic(&[1, 2, 3], &[true, true, true]),
        ]
    };
    assert_hash_is_consistent(&make(), &make());
}

#[test]
fn sh_12_dynamic_dimensions() {
    let shape = dynamic(&[1, 2, 3], &[true, false, true]);
    let found = [0, 1, 2, 3].map(|dim| shape.is_dynamic_dim(dim));
    assert_eq!(found, [true, false, true, false]);
}

#[test]
fn sh_13_the_padded_shape_is_the_bound() {
    let all = dynamic(&[1, 2, 3], &[true, true, true]);
    assert_eq!(*all.padded_shape(), shape(&[1, 2, 3]));
}

#[test]
fn sh_15_text() {
    assert_eq!(dynamic(&[2, 4], &[true, true]).to_string(), "[<=2,<=4]");
    assert_eq!(dynamic(&[2, 4], &[false, true]).to_string(), "[2,<=4]");
    assert_eq!(Shape::scalar().to_string(), "[]");
}
