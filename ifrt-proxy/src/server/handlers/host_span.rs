//! How the bytes of a host buffer stand for an array.
//!
//! A client sends the smallest span of memory that holds all elements: with strides there may be
//! bytes in between that belong to nothing. Types below a byte take a byte per element.
//!
//! # Mirrors
//! `xla/python/ifrt_proxy/common/array_util.cc`.

use bytes::Bytes;
use ifrt::host_buffer::dense_byte_strides;
use ifrt::{DType, HostBuffer, HostData, HostValue, Result, Shape, Status};
use prost::Message;

use crate::proto::xla::ifrt::proto::StringArrayContents;

/// The host buffer that `bytes` are.
///
/// # Errors
/// INVALID_ARGUMENT if there is another number of bytes or strings than the shape needs;
/// UNIMPLEMENTED for strides that the protocol does not have.
pub(super) fn host_buffer(
    dtype: DType,
    shape: Shape,
    byte_strides: Option<&[i64]>,
    bytes: Bytes,
) -> Result<HostBuffer<'static>> {
    if dtype == DType::String {
        return string_buffer(shape, byte_strides, bytes);
    }
    let strides = check_strides(dtype, &shape, byte_strides)?;
    let needed = span_bytes(dtype, &shape, strides.as_deref())?;
    if u64::try_from(bytes.len()).ok() != Some(needed) {
        return Err(Status::invalid_argument(format!(
            "a host buffer of dtype {dtype}, shape {shape} and strides {byte_strides:?} takes \
             {needed} bytes, but {} were sent",
            bytes.len()
        )));
    }
    let mut buffer = HostBuffer::dense(HostData::Shared(bytes), dtype, shape);
    buffer.byte_strides = strides;
    Ok(buffer)
}

/// The strides to read the bytes with; `None` if they are dense and major to minor.
fn check_strides(
    dtype: DType,
    shape: &Shape,
    byte_strides: Option<&[i64]>,
) -> Result<Option<Box<[i64]>>> {
    let Some(strides) = byte_strides else {
        return Ok(None);
    };
    if strides.len() != shape.rank() {
        return Err(Status::invalid_argument(format!(
            "a host buffer of shape {shape} has {} strides",
            strides.len()
        )));
    }
    let Some(item) = dtype.host_byte_size() else {
        return Ok(None);
    };
    let Some(dense) = dense_byte_strides(shape, item) else {
        return Err(too_large(dtype, shape));
    };
    if shape.num_elements() == 0 {
        return Ok(None);
    }
    let item = i64::try_from(item).map_err(|_| too_large(dtype, shape))?;
    let mut used = dense.clone();
    for ((used, stride), dim) in used.iter_mut().zip(strides).zip(shape.dims()) {
        if *dim == 1 {
            continue;
        }
        if *stride <= 0 {
            return Err(Status::unimplemented(
                "Negative or zero strides are not fully supported",
            ));
        }
        if stride % item != 0 {
            return Err(Status::unimplemented(format!(
                "a stride of {stride} bytes is no multiple of the {item} bytes of an element"
            )));
        }
        *used = *stride;
    }
    Ok((used != dense).then_some(used))
}

/// The bytes from the first element to the end of the last one.
fn span_bytes(dtype: DType, shape: &Shape, strides: Option<&[i64]>) -> Result<u64> {
    let Some(item) = dtype.host_byte_size() else {
        return Ok(0);
    };
    let span = if shape.num_elements() == 0 {
        Some(0)
    } else {
        let dense;
        let strides = match strides {
            Some(strides) => strides,
            None => {
                dense = dense_byte_strides(shape, item).ok_or_else(|| too_large(dtype, shape))?;
                &dense
            }
        };
        strides.iter().zip(shape.dims()).try_fold(
            i64::try_from(item).unwrap_or(i64::MAX),
            |span, (stride, dim)| span.checked_add(stride.checked_mul(dim - 1)?),
        )
    };
    span.and_then(|span| u64::try_from(span).ok())
        .ok_or_else(|| too_large(dtype, shape))
}

fn too_large(dtype: DType, shape: &Shape) -> Status {
    Status::invalid_argument(format!(
        "a host buffer of dtype {dtype} and shape {shape} is larger than any memory"
    ))
}

fn string_buffer(
    shape: Shape,
    byte_strides: Option<&[i64]>,
    bytes: Bytes,
) -> Result<HostBuffer<'static>> {
    if byte_strides.is_some() {
        return Err(Status::unimplemented("an array of strings has no strides"));
    }
    let contents = StringArrayContents::decode(bytes)?;
    let elements = shape.num_elements();
    if i64::try_from(contents.strings.len()).ok() != Some(elements) {
        return Err(Status::invalid_argument(format!(
            "String host buffer has {} elements but shape requires {elements} elements",
            contents.strings.len()
        )));
    }
    let strings = HostData::Strings(contents.strings.into());
    Ok(HostBuffer::dense(strings, DType::String, shape))
}

/// What a client fetches as the content of an array.
pub(super) fn content_bytes(value: HostValue) -> Bytes {
    match value {
        HostValue::Bytes(bytes) => bytes,
        HostValue::Strings(strings) => StringArrayContents {
            strings: strings.to_vec(),
        }
        .encode_to_vec()
        .into(),
    }
}

#[cfg(test)]
mod tests;
