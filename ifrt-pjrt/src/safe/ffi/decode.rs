//! From a call frame to a [`Call`].

use std::ffi::c_void;
use std::ptr::NonNull;

use ifrt::{Result, Status};

use super::Handler;
use super::call::{Attribute, Call, ElementKind, RawBuffer};
use crate::sys::Sized0;
use crate::sys::ffi::{self, ByteSpan, CallFrame, data_type};

/// Frames with more entries than this are not read.
const MAX_ENTRIES: usize = 64;

/// Ranks above this are not read.
const MAX_RANK: usize = 64;

fn malformed(what: &str) -> Status {
    Status::internal(format!(
        "the call frame of the custom call is malformed: {what}"
    ))
}

/// A struct that states its size first, if it is there and large enough.
///
/// # Safety
/// F1: unless NULL, the pointer leads to a struct that begins with its size.
unsafe fn sized<'a, T: Sized0>(pointer: *const T) -> Option<&'a T> {
    let pointer = NonNull::new(pointer.cast_mut())?;
    // SAFETY: F1; every struct begins with its size.
    let size = unsafe { pointer.cast::<usize>().read() };
    // Nested structs are declared with trailing padding, which is not counted.
    if size < T::STRUCT_SIZE || !pointer.is_aligned() {
        return None;
    }
    // SAFETY: F1; it is as large as its declaration.
    Some(unsafe { pointer.as_ref() })
}

/// `count` entries of a list.
///
/// # Safety
/// F1: unless NULL, the list has so many entries.
unsafe fn list<'a, T>(pointer: *const T, count: usize) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(malformed("a list is missing"));
    }
    // SAFETY: F1.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

fn count_of(size: i64, expected: usize, what: &str) -> Result<usize> {
    match usize::try_from(size) {
        Ok(count) if count == expected && count <= MAX_ENTRIES => Ok(count),
        _ => Err(Status::invalid_argument(format!(
            "the custom call has {size} {what}, expected {expected}"
        ))),
    }
}

/// The frame, if it is whole.
///
/// # Safety
/// F1.
///
/// # Errors
/// INTERNAL if it is not.
pub(super) unsafe fn frame<'a>(frame: *const CallFrame) -> Result<&'a CallFrame> {
    // SAFETY: F1.
    let frame = unsafe { sized(frame) }.ok_or_else(|| malformed("it is too short"))?;
    let parts = [
        (frame.args.struct_size, ffi::Arguments::STRUCT_SIZE),
        (frame.rets.struct_size, ffi::Results::STRUCT_SIZE),
        (frame.attrs.struct_size, ffi::Attributes::STRUCT_SIZE),
    ];
    if parts.iter().any(|(stated, expected)| stated < expected) {
        return Err(malformed("a part of it is too short"));
    }
    Ok(frame)
}

/// The call of a frame, for the handler `H`.
///
/// # Safety
/// F1 and F2, for `'a`.
///
/// # Errors
/// INVALID_ARGUMENT if numbers, types or names are not those of the handler.
pub(super) unsafe fn call<'a, H: Handler>(frame: &'a CallFrame) -> Result<Call<'a>> {
    let (args, rets) = (&frame.args, &frame.rets);
    // SAFETY: F1.
    let operands = unsafe { buffers(args.size, H::OPERANDS, args.types, args.args, "operands") }?;
    // SAFETY: F1.
    let results = unsafe { buffers(rets.size, H::RESULTS, rets.types, rets.rets, "results") }?;
    // SAFETY: F1.
    let attributes = unsafe { attributes(&frame.attrs, H::ATTRIBUTES) }?;
    // SAFETY: F1 and F2.
    unsafe { Call::new(operands, results, attributes, H::IN_PLACE) }
}

/// # Safety
/// F1.
unsafe fn buffers(
    size: i64,
    expected: usize,
    kinds: *const i32,
    entries: *const *mut c_void,
    what: &str,
) -> Result<Vec<RawBuffer>> {
    let count = count_of(size, expected, what)?;
    // SAFETY: F1.
    let kinds = unsafe { list(kinds, count) }?;
    // SAFETY: F1.
    let entries = unsafe { list(entries, count) }?;
    let mut buffers = Vec::with_capacity(count);
    for (index, (kind, entry)) in kinds.iter().zip(entries).enumerate() {
        if *kind != ffi::KIND_BUFFER {
            return Err(malformed(&format!(
                "entry {index} of the {what} is no buffer"
            )));
        }
        // SAFETY: F1.
        let buffer = unsafe { sized(entry.cast_const().cast::<ffi::Buffer>()) }
            .ok_or_else(|| malformed(&format!("a buffer of the {what} is too short")))?;
        // SAFETY: F1.
        buffers.push(unsafe { checked(buffer) }?);
    }
    Ok(buffers)
}

/// # Safety
/// F1.
unsafe fn checked(buffer: &ffi::Buffer) -> Result<RawBuffer> {
    let kind = ElementKind::from_number(buffer.dtype).ok_or_else(|| {
        Status::invalid_argument(format!(
            "the custom call has a buffer with elements of type {}, which its handler cannot read",
            buffer.dtype
        ))
    })?;
    let rank = usize::try_from(buffer.rank)
        .ok()
        .filter(|rank| *rank <= MAX_RANK)
        .ok_or_else(|| malformed(&format!("a buffer has the rank {}", buffer.rank)))?;
    // SAFETY: F1.
    let dims = unsafe { list(buffer.dims, rank) }?;
    let dims = dims
        .iter()
        .map(|dim| usize::try_from(*dim).map_err(|_| malformed("a dimension is negative")))
        .collect::<Result<Vec<_>>>()?;
    let bytes = dims
        .iter()
        .try_fold(kind.size(), |bytes, dim| bytes.checked_mul(*dim))
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .ok_or_else(|| malformed(&format!("a buffer of {dims:?} elements")))?;
    let data = match NonNull::new(buffer.data.cast::<u8>()) {
        Some(data) => data,
        None if bytes == 0 => NonNull::dangling(),
        None => return Err(malformed("a buffer has no memory")),
    };
    Ok(RawBuffer {
        kind,
        dims,
        data,
        bytes,
    })
}

/// # Safety
/// F1.
unsafe fn attributes<'a>(
    attributes: &'a ffi::Attributes,
    expected: &[&str],
) -> Result<Vec<(&'a str, Attribute)>> {
    let count = count_of(attributes.size, expected.len(), "attributes")?;
    // SAFETY: F1.
    let kinds = unsafe { list(attributes.types, count) }?;
    // SAFETY: F1.
    let names = unsafe { list(attributes.names, count) }?;
    // SAFETY: F1.
    let values = unsafe { list(attributes.attrs, count) }?;
    let mut found = Vec::with_capacity(count);
    for ((kind, name), value) in kinds.iter().zip(names).zip(values) {
        // SAFETY: F1.
        let name = unsafe { list(*name, 1) }?;
        // SAFETY: F1.
        let name = unsafe { text(name) }?;
        if !expected.contains(&name) {
            return Err(Status::invalid_argument(format!(
                "the custom call has an attribute {name:?}, expected {expected:?}"
            )));
        }
        let value = match *kind {
            // SAFETY: F1.
            ffi::KIND_SCALAR => unsafe { scalar(*value) }?,
            _ => Attribute::Other,
        };
        found.push((name, value));
    }
    Ok(found)
}

/// # Safety
/// F1.
unsafe fn text<'a>(span: &[ByteSpan]) -> Result<&'a str> {
    let span = span.first().ok_or_else(|| malformed("a name is missing"))?;
    // SAFETY: F1.
    let bytes = unsafe { list(span.ptr, span.len) }?;
    std::str::from_utf8(bytes).map_err(|_| malformed("a name is not UTF-8"))
}

/// # Safety
/// F1: the pointer leads to a scalar, and that to a value of its type.
unsafe fn scalar(pointer: *const c_void) -> Result<Attribute> {
    // SAFETY: F1.
    let scalar = unsafe { list(pointer.cast::<ffi::Scalar>(), 1) }?;
    let scalar = scalar
        .first()
        .ok_or_else(|| malformed("an attribute is missing"))?;
    if scalar.value.is_null() {
        return Err(malformed("an attribute has no value"));
    }
    Ok(match scalar.dtype {
        // SAFETY: F1; any byte is accepted.
        data_type::PRED => Attribute::Bool(unsafe { scalar.value.cast::<u8>().read() } != 0),
        // SAFETY: F1.
        data_type::U8 => Attribute::U8(unsafe { scalar.value.cast::<u8>().read() }),
        // SAFETY: F1.
        data_type::S32 => Attribute::I32(unsafe { scalar.value.cast::<i32>().read_unaligned() }),
        // SAFETY: F1.
        data_type::S64 => Attribute::I64(unsafe { scalar.value.cast::<i64>().read_unaligned() }),
        _ => Attribute::Other,
    })
}
