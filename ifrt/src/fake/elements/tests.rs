use super::*;

fn shape(dims: &[i64]) -> Shape {
    Shape::new(dims).unwrap()
}

#[test]
fn sizes_on_the_device_are_packed() {
    for (dtype, dims, bytes) in [
        (DType::F32, &[2, 3][..], 24),
        (DType::S4, &[3], 2),
        (DType::S1, &[9], 2),
        (DType::F6E2M3FN, &[4], 3),
        (DType::Pred, &[5], 5),
        (DType::C128, &[], 16),
        (DType::Token, &[], 0),
        (DType::F32, &[0, 7], 0),
    ] {
        assert_eq!(
            device_bytes(dtype, &shape(dims)),
            Ok(bytes),
            "{dtype} {dims:?}"
        );
    }
    let huge = shape(&[i64::MAX]);
    assert!(device_bytes(DType::C128, &huge).is_err());
    assert!(host_bytes(DType::C128, &huge).is_err());
}

#[test]
fn a_block_is_copied_between_any_strides() {
    let source: Vec<u8> = (0..24).collect();
    // The transpose of 4 x 6 bytes, read backwards along its second dimension.
    let from = Place {
        offset: 18,
        strides: &[1, -6],
    };
    let to = Place {
        offset: 1,
        strides: &[5, 1],
    };
    let mut target = vec![99; 32];
    copy_block(&[6, 4], 1, (&source, &from), (&mut target, &to)).unwrap();
    let rows: Vec<&[u8]> = target[1..]
        .chunks(5)
        .map(|row| &row[..row.len().min(4)])
        .collect();
    assert_eq!(rows[0], [18, 12, 6, 0]);
    assert_eq!(rows[5], [23, 17, 11, 5]);
    assert_eq!((target[0], target[5]), (99, 99), "gaps keep what they had");
}

#[test]
fn a_block_outside_its_data_is_an_error() {
    let place = |offset| Place {
        offset,
        strides: &[2, 1],
    };
    let mut target = [0; 4];
    for (from, to) in [(1, 0), (0, 1), (usize::MAX, 0)] {
        let source = [0; 4];
        let copied = copy_block(
            &[2, 2],
            1,
            (&source, &place(from)),
            (&mut target, &place(to)),
        );
        assert!(copied.is_err(), "{from} {to}");
    }
}

#[test]
fn cut_and_join_are_inverse() {
    let whole = HostValue::Bytes((0..48).collect());
    let array = shape(&[4, 6]);
    let domains: Vec<IndexDomain> = [[0, 0], [0, 4], [2, 0], [2, 4]]
        .iter()
        .map(|origin| IndexDomain::new(*origin, shape(&[2, if origin[1] == 0 { 4 } else { 2 }])))
        .collect();
    let blocks: Vec<HostValue> = domains
        .iter()
        .map(|domain| cut(&whole, DType::S16, &array, domain).unwrap())
        .collect();
    assert_eq!(
        blocks[3],
        HostValue::Bytes(Bytes::from_static(&[32, 33, 34, 35, 44, 45, 46, 47]))
    );
    assert_eq!(join(&blocks, &domains, DType::S16, &array), Ok(whole));
}

#[test]
fn strings_are_cut_and_joined_too() {
    let text = |text: &'static str| Bytes::from_static(text.as_bytes());
    let whole = HostValue::Strings(["a", "bb", "", "d"].map(text).into());
    let domains = [0, 2].map(|origin| IndexDomain::new([origin], shape(&[2])));
    let blocks: Vec<HostValue> = domains
        .iter()
        .map(|domain| cut(&whole, DType::String, &shape(&[4]), domain).unwrap())
        .collect();
    assert_eq!(blocks[1], HostValue::Strings(["", "d"].map(text).into()));
    assert_eq!(
        join(&blocks, &domains, DType::String, &shape(&[4])),
        Ok(whole)
    );
}

#[test]
fn types_below_a_byte_are_extended_or_masked() {
    for (dtype, input, expected) in [
        (DType::S4, 0x0f, 0xff),
        (DType::S4, 0x78, 0xf8),
        (DType::S4, 0xf7, 0x07),
        (DType::U4, 0xff, 0x0f),
        (DType::S1, 0x01, 0xff),
        (DType::U2, 0x07, 0x03),
        (DType::F6E3M2FN, 0xff, 0x3f),
        (DType::S8, 0xff, 0xff),
    ] {
        let mut data = [input];
        normalize(dtype, &mut data);
        assert_eq!(data, [expected], "{dtype} {input:#x}");
    }
}

#[test]
fn bit_casts_keep_the_bits() {
    let nibbles = Bytes::from_static(&[0x01, 0xfe, 0x07, 0xf8]);
    let bytes = bitcast(&nibbles, DType::S4, DType::U8).unwrap();
    assert_eq!(bytes, [0xe1, 0x87][..]);
    assert_eq!(bitcast(&bytes, DType::U8, DType::S4), Ok(nibbles));
    let pairs = bitcast(&bytes, DType::U8, DType::U2).unwrap();
    assert_eq!(pairs, [1, 0, 2, 3, 3, 1, 0, 2][..]);
    assert_eq!(bitcast(&bytes, DType::S16, DType::F16), Ok(bytes.clone()));
    let code = |from, to| bitcast(&bytes, from, to).unwrap_err().code();
    assert_eq!(code(DType::F6E2M3FN, DType::U8), crate::Code::Unimplemented);
    assert_eq!(code(DType::S4, DType::String), crate::Code::InvalidArgument);
}
