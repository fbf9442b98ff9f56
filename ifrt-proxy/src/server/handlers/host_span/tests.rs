use ifrt::Code;

use super::*;

fn buffer(
    dtype: DType,
    dims: &[i64],
    strides: Option<&[i64]>,
    len: usize,
) -> Result<HostBuffer<'static>> {
    host_buffer(dtype, Shape::new(dims)?, strides, vec![0; len].into())
}

#[track_caller]
fn accepted(dtype: DType, dims: &[i64], strides: Option<&[i64]>, len: usize, used: Option<&[i64]>) {
    let made = buffer(dtype, dims, strides, len).unwrap();
    assert_eq!(made.byte_strides.as_deref(), used);
    // What is accepted here lies inside the data for the runtime as well.
    if dtype != DType::Token {
        assert!(made.byte_range().is_ok());
    }
}

#[test]
fn spans_as_clients_send_them() {
    accepted(DType::F32, &[4], Some(&[4]), 16, None);
    accepted(DType::F32, &[], Some(&[]), 4, None);
    accepted(DType::F32, &[2, 3], None, 24, None);
    // A shard of a larger array, seen from an unmodified client.
    accepted(DType::F32, &[2, 2], Some(&[16, 4]), 24, Some(&[16, 4]));
    // A transposed array.
    accepted(DType::F32, &[2, 3], Some(&[4, 8]), 24, Some(&[4, 8]));
    // Strides of dimensions with one element mean nothing.
    accepted(DType::F32, &[1, 3], Some(&[-7, 4]), 12, None);
    accepted(DType::F64, &[3, 1], Some(&[8, 0]), 24, None);
    // No elements, no bytes.
    accepted(DType::F32, &[0, 5], Some(&[0, -1]), 0, None);
    // Types below a byte take a byte per element.
    accepted(DType::S4, &[5], Some(&[1]), 5, None);
    accepted(DType::F4E2M1FN, &[2, 2], None, 4, None);
    accepted(DType::Token, &[], None, 0, None);
}

#[test]
fn what_cannot_be_is_refused() {
    for (dims, strides, len, code) in [
        (&[4][..], Some(&[4][..]), 15, Code::InvalidArgument),
        (&[4], Some(&[4]), 17, Code::InvalidArgument),
        (&[4], None, 0, Code::InvalidArgument),
        (&[4], Some(&[4, 4]), 16, Code::InvalidArgument),
        (&[4], Some(&[]), 16, Code::InvalidArgument),
        (&[4], Some(&[-4]), 16, Code::Unimplemented),
        (&[4], Some(&[0]), 4, Code::Unimplemented),
        (&[4], Some(&[6]), 22, Code::Unimplemented),
        (&[2], Some(&[i64::MAX - 3]), 8, Code::InvalidArgument),
        (&[i64::MAX], None, 8, Code::InvalidArgument),
        (&[0], Some(&[4]), 1, Code::InvalidArgument),
    ] {
        let error = buffer(DType::F32, dims, strides, len).unwrap_err();
        assert_eq!(error.code(), code, "{dims:?} {strides:?} {len}: {error}");
    }
    assert!(buffer(DType::Token, &[], None, 1).is_err());
}

#[test]
fn strings() {
    // The bytes of ['a', 'bb'], as seen from an unmodified client.
    let bytes = Bytes::from_static(b"\x0a\x01a\x0a\x02bb");
    let shape = |dims: &[i64]| Shape::new(dims).unwrap();
    let made = host_buffer(DType::String, shape(&[2]), None, bytes.clone()).unwrap();
    let HostData::Strings(strings) = made.data else {
        panic!("no strings");
    };
    assert_eq!(&strings[..], ["a", "bb"]);
    assert_eq!(content_bytes(HostValue::Strings(strings)), bytes);

    let error = host_buffer(DType::String, shape(&[3]), None, bytes.clone()).unwrap_err();
    assert_eq!(
        error.message(),
        "String host buffer has 2 elements but shape requires 3 elements"
    );
    assert!(host_buffer(DType::String, shape(&[2]), Some(&[1]), bytes).is_err());
    let garbage = Bytes::from_static(b"\x0a\x7f");
    assert!(host_buffer(DType::String, shape(&[1]), None, garbage).is_err());
}
