//! Elements in host memory: sizes, strided copies, blocks of arrays, types below a byte.
//!
//! The fake keeps every shard dense and major to minor, in the form that host buffers have: types
//! below a byte take a byte per element. Only sizes and bit casts speak of packed elements.

use bytes::Bytes;

use crate::dtype::DType;
use crate::host_buffer::HostValue;
use crate::index::IndexDomain;
use crate::shape::Shape;
use crate::status::{Result, Status};

/// The bytes that a shard takes on a device, where types below a byte are packed; zero for types
/// without a size.
///
/// # Errors
/// RESOURCE_EXHAUSTED if that is more than `u64` counts.
pub(super) fn device_bytes(dtype: DType, shape: &Shape) -> Result<u64> {
    let bits = u128::try_from(dtype.bit_size().unwrap_or(0)).unwrap_or(u128::MAX);
    let elements = u128::try_from(shape.num_elements()).unwrap_or(0);
    u64::try_from((bits * elements).div_ceil(8)).map_err(|_| too_large(dtype, shape))
}

/// The bytes that an array takes on the host.
///
/// # Errors
/// INVALID_ARGUMENT for types without a size; RESOURCE_EXHAUSTED beyond the address space.
pub(super) fn host_bytes(dtype: DType, shape: &Shape) -> Result<usize> {
    let item = dtype.host_byte_size().ok_or_else(|| {
        Status::invalid_argument(format!("dtype {dtype} has no size on the host"))
    })?;
    usize::try_from(shape.num_elements())
        .ok()
        .and_then(|elements| elements.checked_mul(item))
        .ok_or_else(|| too_large(dtype, shape))
}

fn too_large(dtype: DType, shape: &Shape) -> Status {
    Status::resource_exhausted(format!("an array {dtype}{shape} does not fit any memory"))
}

/// A place in strided data: where element zero stands, and the way to the next in each dimension.
/// Units are those of the slice that it is a place in.
pub(super) struct Place<'a> {
    pub(super) offset: usize,
    pub(super) strides: &'a [i64],
}

/// Major-to-minor strides of dense data with `item` units per element.
pub(super) fn dense_strides(shape: &Shape, item: usize) -> Result<Box<[i64]>> {
    crate::host_buffer::dense_byte_strides(shape, item)
        .ok_or_else(|| Status::resource_exhausted(format!("shape {shape} is too large")))
}

/// Copies a block of `dims` elements of `item` units each between two strided places.
///
/// # Errors
/// INTERNAL if the block leaves one of the slices.
pub(super) fn copy_block<T: Clone>(
    dims: &[i64],
    item: usize,
    from: (&[T], &Place<'_>),
    to: (&mut [T], &Place<'_>),
) -> Result<()> {
    let ((source, from), (target, to)) = (from, to);
    if dims.contains(&0) {
        return Ok(());
    }
    let outside = || Status::internal("a block of an array lies outside its data");
    // Trailing dimensions that are dense on both sides are copied at once.
    let mut run = item;
    let mut outer = dims.len();
    while let Some(axis) = outer.checked_sub(1) {
        let step = i64::try_from(run).map_err(|_| outside())?;
        if from.strides.get(axis) != Some(&step) || to.strides.get(axis) != Some(&step) {
            break;
        }
        let dim = usize::try_from(dims[axis]).map_err(|_| outside())?;
        run = run.checked_mul(dim).ok_or_else(outside)?;
        outer = axis;
    }
    let mut index = vec![0_i64; outer];
    loop {
        let at = |place: &Place<'_>| -> Option<std::ops::Range<usize>> {
            let mut offset = i64::try_from(place.offset).ok()?;
            for (index, stride) in index.iter().zip(place.strides) {
                offset = offset.checked_add(index.checked_mul(*stride)?)?;
            }
            let start = usize::try_from(offset).ok()?;
            Some(start..start.checked_add(run)?)
        };
        let read = at(from).and_then(|range| source.get(range));
        let write = at(to).and_then(|range| target.get_mut(range));
        write
            .ok_or_else(outside)?
            .clone_from_slice(read.ok_or_else(outside)?);
        let mut axis = outer;
        loop {
            if axis == 0 {
                return Ok(());
            }
            axis -= 1;
            index[axis] += 1;
            if index[axis] < dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

/// A new vector of `len` copies of `value`.
///
/// # Errors
/// RESOURCE_EXHAUSTED if the host has no room.
pub(super) fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>> {
    let mut data = Vec::new();
    data.try_reserve_exact(len)
        .map_err(|_| Status::resource_exhausted(format!("no room for {len} elements")))?;
    data.resize(len, value);
    Ok(data)
}

/// The block `domain` of an array of `shape`.
pub(super) fn cut(
    value: &HostValue,
    dtype: DType,
    shape: &Shape,
    domain: &IndexDomain,
) -> Result<HostValue> {
    match value {
        HostValue::Bytes(data) => {
            let item = dtype.host_byte_size().unwrap_or(1);
            let mut out = filled(host_bytes(dtype, domain.shape())?, 0)?;
            move_block(data, &mut out, shape, domain, item, Direction::Cut)?;
            Ok(HostValue::Bytes(out.into()))
        }
        HostValue::Strings(data) => {
            let mut out = filled(elements(domain.shape())?, Bytes::new())?;
            move_block(data, &mut out, shape, domain, 1, Direction::Cut)?;
            Ok(HostValue::Strings(out.into()))
        }
    }
}

/// The array of `shape` whose blocks `domains` are `blocks`; where blocks overlap they are copies.
pub(super) fn join(
    blocks: &[HostValue],
    domains: &[IndexDomain],
    dtype: DType,
    shape: &Shape,
) -> Result<HostValue> {
    if dtype == DType::String {
        let mut out = filled(elements(shape)?, Bytes::new())?;
        for (block, domain) in blocks.iter().zip(domains) {
            if let HostValue::Strings(data) = block {
                move_block(data, &mut out, shape, domain, 1, Direction::Paste)?;
            }
        }
        return Ok(HostValue::Strings(out.into()));
    }
    let item = dtype.host_byte_size().unwrap_or(1);
    let mut out = filled(host_bytes(dtype, shape)?, 0)?;
    for (block, domain) in blocks.iter().zip(domains) {
        if let HostValue::Bytes(data) = block {
            move_block(data, &mut out, shape, domain, item, Direction::Paste)?;
        }
    }
    Ok(HostValue::Bytes(out.into()))
}

fn elements(shape: &Shape) -> Result<usize> {
    usize::try_from(shape.num_elements()).map_err(|_| too_large(DType::String, shape))
}

#[derive(Clone, Copy)]
enum Direction {
    /// From the whole to the block.
    Cut,
    /// From the block to the whole.
    Paste,
}

fn move_block<T: Clone>(
    source: &[T],
    target: &mut [T],
    shape: &Shape,
    domain: &IndexDomain,
    item: usize,
    direction: Direction,
) -> Result<()> {
    let whole = dense_strides(shape, item)?;
    let block = dense_strides(domain.shape(), item)?;
    let offset: i64 = domain.origin().iter().zip(&whole).map(|(o, s)| o * s).sum();
    let whole = Place {
        offset: usize::try_from(offset)
            .map_err(|_| Status::internal("a block before its array"))?,
        strides: &whole,
    };
    let block = Place {
        offset: 0,
        strides: &block,
    };
    let (from, to) = match direction {
        Direction::Cut => (&whole, &block),
        Direction::Paste => (&block, &whole),
    };
    copy_block(domain.shape().dims(), item, (source, from), (target, to))
}

/// Gives types below a byte the form that reads promise: signed ones extended, others masked.
pub(super) fn normalize(dtype: DType, data: &mut [u8]) {
    let Some(bits @ 1..8) = dtype.bit_size() else {
        return;
    };
    let (mask, sign) = ((1_u8 << bits) - 1, 1_u8 << (bits - 1));
    let signed = matches!(dtype, DType::S1 | DType::S2 | DType::S4);
    for byte in data {
        *byte &= mask;
        if signed && *byte & sign != 0 {
            *byte |= !mask;
        }
    }
}

/// The same bits as elements of another type.
///
/// # Errors
/// INVALID_ARGUMENT if the sizes differ; UNIMPLEMENTED for types whose elements straddle bytes.
pub(super) fn bitcast(data: &Bytes, from: DType, to: DType) -> Result<Bytes> {
    if from == to || !(from.is_sub_byte() || to.is_sub_byte()) {
        return Ok(data.clone());
    }
    let packed = pack(data, from)?;
    unpack(&packed, to)
}

fn bits_dividing_a_byte(dtype: DType) -> Result<usize> {
    match dtype.bit_size() {
        Some(bits) if bits < 8 && 8 % bits != 0 => Err(Status::unimplemented(format!(
            "the fake does not bitcast dtype {dtype}"
        ))),
        Some(bits) => Ok(bits),
        None => Err(Status::invalid_argument(format!(
            "dtype {dtype} has no bits to cast"
        ))),
    }
}

fn pack(data: &Bytes, dtype: DType) -> Result<Bytes> {
    let bits = bits_dividing_a_byte(dtype)?;
    if bits >= 8 {
        return Ok(data.clone());
    }
    let mask = (1_u8 << bits) - 1;
    let join = |chunk: &[u8]| {
        let parts = chunk.iter().zip((0..).step_by(bits));
        parts.fold(0, |byte, (part, shift)| byte | ((part & mask) << shift))
    };
    Ok(data.chunks(8 / bits).map(join).collect())
}

fn unpack(packed: &[u8], dtype: DType) -> Result<Bytes> {
    let bits = bits_dividing_a_byte(dtype)?;
    if bits >= 8 {
        return Ok(Bytes::copy_from_slice(packed));
    }
    let mut data: Vec<u8> = packed
        .iter()
        .flat_map(|byte| (0..8).step_by(bits).map(move |shift| byte >> shift))
        .collect();
    normalize(dtype, &mut data);
    Ok(data.into())
}

#[cfg(test)]
mod tests;
