//! The bytes that are sent for a host buffer.
//!
//! The protocol takes the span of memory from the first element to the last, with strides that are
//! positive. Where that is not possible, or would send much that belongs to nothing, the elements are
//! gathered first.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/common/array_util.cc`, which refuses strides that are zero or negative.

use bytes::Bytes;
use ifrt::{DType, HostBuffer, HostData, Result, Shape, Status};
use prost::Message;

use crate::proto::xla::ifrt::proto::StringArrayContents;

/// What is sent.
#[derive(Debug, PartialEq)]
pub(super) struct Span {
    pub(super) data: Bytes,
    /// `None` is dense and major to minor.
    pub(super) byte_strides: Option<Box<[i64]>>,
}

/// What to send for a buffer. Shared memory is kept if it can be; other memory is copied.
///
/// # Errors
/// INVALID_ARGUMENT if the buffer does not hold what it says.
pub(super) fn span(buffer: HostBuffer<'_>) -> Result<Span> {
    let dense = |data| Span {
        data,
        byte_strides: None,
    };
    match (buffer.dtype, &buffer.data) {
        (DType::String, HostData::Strings(strings)) => {
            return strings_span(&buffer, strings).map(dense);
        }
        (DType::String, _) => {
            return Err(Status::invalid_argument(
                "an array of strings cannot be made from bytes",
            ));
        }
        (dtype, HostData::Strings(_)) => {
            return Err(Status::invalid_argument(format!(
                "an array of dtype {dtype} cannot be made from strings"
            )));
        }
        (DType::Token, _) if buffer.shape.rank() == 0 => return Ok(dense(Bytes::new())),
        (DType::Token, _) => {
            return Err(Status::invalid_argument("a token has no dimensions"));
        }
        _ => {}
    }
    let range = buffer.byte_range()?;
    let item = buffer.dtype.host_byte_size().unwrap_or(1);
    let HostBuffer {
        data,
        shape,
        byte_strides,
        offset_bytes,
        ..
    } = buffer;
    if range.is_empty() {
        return Ok(dense(Bytes::new()));
    }
    if let Some(strides) = &byte_strides
        && !can_be_sent(strides, &shape, item, range.len())
    {
        let memory: &[u8] = match &data {
            HostData::Borrowed(memory) => memory,
            HostData::Shared(memory) => memory,
            HostData::Strings(_) => &[],
        };
        return gather(memory, offset_bytes, strides, &shape, item).map(dense);
    }
    let data = match data {
        HostData::Borrowed(memory) => memory.get(range).map(Bytes::copy_from_slice),
        HostData::Shared(memory) => Some(memory.slice(range)),
        HostData::Strings(_) => None,
    };
    let data = data.ok_or_else(|| Status::internal("a checked range lies outside its memory"))?;
    Ok(Span {
        data,
        byte_strides: byte_strides.map(|strides| positive(&strides, &shape, item)),
    })
}

fn strings_span(buffer: &HostBuffer<'_>, strings: &[Bytes]) -> Result<Bytes> {
    if buffer.byte_strides.is_some() || buffer.offset_bytes != 0 {
        return Err(Status::invalid_argument(
            "arrays of strings are dense: they have no strides",
        ));
    }
    if i64::try_from(strings.len()) != Ok(buffer.shape.num_elements()) {
        return Err(Status::invalid_argument(format!(
            "{} strings do not fill the shape {}",
            strings.len(),
            buffer.shape
        )));
    }
    let contents = StringArrayContents {
        strings: strings.to_vec(),
    };
    Ok(contents.encode_to_vec().into())
}

/// True if the protocol has such strides, no two elements overlap as far as one can see, and at most
/// a fifth of the bytes belongs to nothing.
fn can_be_sent(strides: &[i64], shape: &Shape, item: usize, span: usize) -> bool {
    let elements = usize::try_from(shape.num_elements()).unwrap_or(usize::MAX);
    let dense = elements.saturating_mul(item);
    let item = i64::try_from(item).unwrap_or(i64::MAX);
    span >= dense
        && span - dense <= dense / 4
        && strides
            .iter()
            .zip(shape.dims())
            .all(|(stride, dim)| *dim == 1 || (*stride > 0 && stride % item == 0))
}

/// Strides of dimensions without a second element mean nothing, but must not confuse the server.
fn positive(strides: &[i64], shape: &Shape, item: usize) -> Box<[i64]> {
    let item = i64::try_from(item).unwrap_or(i64::MAX);
    let strides = strides.iter().zip(shape.dims());
    strides
        .map(|(stride, dim)| if *dim == 1 { item } else { *stride })
        .collect()
}

/// The elements, dense and major to minor. There is at least one, and all lie in `memory`.
fn gather(
    memory: &[u8],
    offset: usize,
    strides: &[i64],
    shape: &Shape,
    item: usize,
) -> Result<Bytes> {
    let outside = || Status::internal("an element of a checked buffer lies outside its memory");
    let elements = usize::try_from(shape.num_elements()).map_err(|_| outside())?;
    let mut out = Vec::new();
    let length = elements.checked_mul(item).ok_or_else(outside)?;
    out.try_reserve_exact(length).map_err(|error| {
        Status::resource_exhausted(format!("there is no memory for {length} bytes: {error}"))
    })?;
    let dims = shape.dims();
    let mut index = vec![0_i64; dims.len()];
    let mut place = i64::try_from(offset).map_err(|_| outside())?;
    for _ in 0..elements {
        let start = usize::try_from(place).map_err(|_| outside())?;
        let element = memory.get(start..start.saturating_add(item));
        out.extend_from_slice(element.ok_or_else(outside)?);
        // The next index in the order of the digits of a number.
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            place = place.wrapping_add(strides[axis]);
            if index[axis] < dims[axis] {
                break;
            }
            place = place.wrapping_sub(strides[axis].wrapping_mul(index[axis]));
            index[axis] = 0;
        }
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer<'a>(
        data: HostData<'a>,
        dims: &[i64],
        strides: Option<&[i64]>,
        offset_bytes: usize,
    ) -> HostBuffer<'a> {
        HostBuffer {
            data,
            dtype: DType::S16,
            shape: Shape::new(dims).unwrap(),
            byte_strides: strides.map(Into::into),
            offset_bytes,
        }
    }

    const MEMORY: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

    fn sent(dims: &[i64], strides: Option<&[i64]>, offset: usize) -> Span {
        span(buffer(HostData::Borrowed(&MEMORY), dims, strides, offset)).unwrap()
    }

    #[test]
    fn what_fits_is_sent_as_it_is() {
        let whole = Bytes::from_static(&MEMORY);
        let sent = |dims: &[i64], strides: Option<&[i64]>| {
            let shared = HostData::Shared(whole.clone());
            span(buffer(shared, dims, strides, 0)).unwrap()
        };
        let dense = sent(&[2, 3], None);
        assert_eq!(dense.data.as_ptr(), whole.as_ptr());
        assert_eq!(dense.byte_strides, None);
        let transposed = sent(&[3, 2], Some(&[2, 6]));
        assert_eq!(transposed.data.as_ptr(), whole.as_ptr());
        assert_eq!(transposed.byte_strides.as_deref(), Some(&[2, 6][..]));
        let ones = sent(&[1, 6], Some(&[-77, 2]));
        assert_eq!(ones.byte_strides.as_deref(), Some(&[2, 2][..]));
    }

    #[test]
    fn what_does_not_fit_is_gathered() {
        let gathered = |dims: &[i64], strides: &[i64], offset| {
            let span = sent(dims, Some(strides), offset);
            assert_eq!(span.byte_strides, None);
            span.data.to_vec()
        };
        assert_eq!(gathered(&[3], &[-2], 4), [4, 5, 2, 3, 0, 1]);
        assert_eq!(gathered(&[2, 2], &[0, 2], 8), [8, 9, 10, 11, 8, 9, 10, 11]);
        assert_eq!(gathered(&[3], &[4], 0), [0, 1, 4, 5, 8, 9]);
        assert_eq!(gathered(&[2], &[3], 1), [1, 2, 4, 5]);
        assert_eq!(
            gathered(&[2, 3], &[-6, -2], 10),
            [10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1]
        );
    }

    #[test]
    fn odd_buffers() {
        assert!(sent(&[0, 3], Some(&[-9, 0]), 3).data.is_empty());
        assert_eq!(sent(&[], None, 2).data, [2, 3][..]);
        let outside = buffer(HostData::Borrowed(&MEMORY), &[7], None, 0);
        assert!(span(outside).is_err());
        let mut strings = buffer(HostData::Strings(Vec::new().into()), &[0], None, 0);
        assert!(span(strings.clone()).is_err(), "numbers are no strings");
        strings.dtype = DType::String;
        assert!(span(strings.clone()).unwrap().data.is_empty());
        strings.shape = Shape::new([1]).unwrap();
        assert!(span(strings).is_err());
    }
}
