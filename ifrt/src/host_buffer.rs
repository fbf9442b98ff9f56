//! Data on the host: what arrays are made from and what they are read into.
//!
//! # Mirrors
//! `xla/python/ifrt/client.h`, `Client::HostBuffer` and `HostBufferSemantics`. Where C++ has a raw
//! pointer, an enum of promises and a callback, we have ownership: a borrowed slice is
//! `kImmutableOnlyDuringCall`; a shared [`Bytes`] is `kImmutableZeroCopy`, and dropping it is the
//! callback, which therefore runs exactly once.

use std::sync::Arc;

use bytes::Bytes;

use crate::dtype::DType;
use crate::shape::Shape;
use crate::status::{Result, Status};

/// The bytes or strings of a host buffer.
#[derive(Clone, Debug)]
#[allow(
    clippy::exhaustive_enums,
    reason = "each runtime must say what it does with each kind"
)]
pub enum HostData<'a> {
    /// The runtime copies before the call returns.
    Borrowed(&'a [u8]),
    /// The runtime may keep it for as long as the array lives, and then drops it.
    Shared(Bytes),
    /// The elements of an array of byte strings, major to minor.
    Strings(Arc<[Bytes]>),
}

/// An array in host memory.
///
/// Types below a byte take one byte per element, in its low bits.
#[derive(Clone, Debug)]
pub struct HostBuffer<'a> {
    /// The memory that holds the elements.
    pub data: HostData<'a>,
    /// The element type.
    pub dtype: DType,
    /// The dimensions.
    pub shape: Shape,
    /// Bytes from one element to the next in each dimension, any sign; `None` is dense and major
    /// to minor.
    pub byte_strides: Option<Box<[i64]>>,
    /// Where in `data` the element at index zero stands, in bytes: not zero if a stride is negative.
    pub offset_bytes: usize,
}

impl<'a> HostBuffer<'a> {
    /// A dense buffer, major to minor.
    pub const fn dense(data: HostData<'a>, dtype: DType, shape: Shape) -> Self {
        Self {
            data,
            dtype,
            shape,
            byte_strides: None,
            offset_bytes: 0,
        }
    }

    /// The bytes that the elements are read from: `start .. end` of the data.
    ///
    /// Checks that every element lies inside the data, so a backend may hand the memory to C.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the strides do not fit the shape, an element lies outside the data, or
    /// the dtype has no fixed size.
    pub fn byte_range(&self) -> Result<std::ops::Range<usize>> {
        let len = match &self.data {
            HostData::Borrowed(data) => data.len(),
            HostData::Shared(data) => data.len(),
            HostData::Strings(_) => {
                return Err(Status::invalid_argument(
                    "a buffer of strings has no byte range",
                ));
            }
        };
        let item = self.dtype.host_byte_size().ok_or_else(|| {
            Status::invalid_argument(format!("dtype {} has no size on the host", self.dtype))
        })?;
        let range = self.checked_range(item).ok_or_else(|| {
            Status::invalid_argument(format!(
                "strides {:?} do not describe a buffer of shape {} and dtype {}",
                self.byte_strides, self.shape, self.dtype
            ))
        })?;
        if range.end > len {
            return Err(Status::invalid_argument(format!(
                "a host buffer of {len} bytes is too small: shape {} of dtype {} with strides {:?} \
                 at offset {} needs {}",
                self.shape, self.dtype, self.byte_strides, self.offset_bytes, range.end
            )));
        }
        Ok(range)
    }

    fn checked_range(&self, item: usize) -> Option<std::ops::Range<usize>> {
        let offset = self.offset_bytes;
        if self
            .byte_strides
            .as_ref()
            .is_some_and(|s| s.len() != self.shape.rank())
        {
            return None;
        }
        if self.shape.num_elements() == 0 {
            return Some(offset..offset);
        }
        let (mut first, mut last) = (i64::try_from(offset).ok()?, i64::try_from(offset).ok()?);
        match &self.byte_strides {
            None => {
                let elements = usize::try_from(self.shape.num_elements()).ok()?;
                return Some(offset..offset.checked_add(elements.checked_mul(item)?)?);
            }
            Some(strides) => {
                for (stride, dim) in strides.iter().zip(self.shape.dims()) {
                    let reach = stride.checked_mul(dim - 1)?;
                    if reach < 0 {
                        first = first.checked_add(reach)?;
                    } else {
                        last = last.checked_add(reach)?;
                    }
                }
            }
        }
        Some(usize::try_from(first).ok()?..usize::try_from(last).ok()?.checked_add(item)?)
    }
}

/// The strides of a dense buffer, major to minor, in bytes; `None` if they exceed `i64`.
pub fn dense_byte_strides(shape: &Shape, item_bytes: usize) -> Option<Box<[i64]>> {
    let mut strides = vec![0; shape.rank()];
    let mut step = i64::try_from(item_bytes).ok()?;
    for (stride, dim) in strides.iter_mut().zip(shape.dims()).rev() {
        *stride = step;
        step = step.checked_mul((*dim).max(1))?;
    }
    Some(strides.into())
}

/// What an array holds, on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::exhaustive_enums,
    reason = "an array holds either bytes or strings"
)]
pub enum HostValue {
    /// The elements of an array with a fixed element size.
    Bytes(Bytes),
    /// The elements of an array of byte strings, major to minor.
    Strings(Arc<[Bytes]>),
}

impl HostValue {
    /// The bytes.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if these are strings.
    pub fn into_bytes(self) -> Result<Bytes> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Strings(_) => Err(Status::invalid_argument(
                "an array of strings was read as numbers",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(dims: &[i64], strides: Option<&[i64]>, offset: usize) -> Result<(usize, usize)> {
        let buffer = HostBuffer {
            data: HostData::Borrowed(&[0; 64]),
            dtype: DType::F32,
            shape: Shape::new(dims)?,
            byte_strides: strides.map(Into::into),
            offset_bytes: offset,
        };
        buffer.byte_range().map(|range| (range.start, range.end))
    }

    #[test]
    fn ranges() {
        assert_eq!(range(&[2, 3], None, 0), Ok((0, 24)));
        assert_eq!(range(&[2, 2], Some(&[16, 4]), 0), Ok((0, 24)));
        assert_eq!(range(&[4], Some(&[-4]), 12), Ok((0, 16)));
        assert_eq!(range(&[4], Some(&[0]), 60), Ok((60, 64)));
        assert_eq!(range(&[0, 9], Some(&[999, 999]), 0), Ok((0, 0)));
        assert_eq!(range(&[], None, 60), Ok((60, 64)));
    }

    #[test]
    fn elements_outside_the_data_are_refused() {
        for (dims, strides, offset) in [
            (&[17][..], None, 0),
            (&[2], Some(&[64_i64][..]), 0),
            (&[2], Some(&[-4]), 0),
            (&[2], Some(&[4, 4]), 0),
            (&[], None, 61),
            (&[i64::MAX], Some(&[i64::MAX]), 0),
        ] {
            assert!(
                range(dims, strides, offset).is_err(),
                "{dims:?} {strides:?} {offset}"
            );
        }
    }

    #[test]
    fn dense_strides() {
        let shape = Shape::new([2, 3, 4]).unwrap();
        assert_eq!(
            dense_byte_strides(&shape, 2).as_deref(),
            Some(&[24, 8, 2][..])
        );
    }
}
