//! Moving elements on the host where the plugin cannot be trusted to: strided output, which plugins
//! refuse or ignore, and strided input of types below a byte.

use bytes::Bytes;
use ifrt::host_buffer::{HostBuffer, HostData, dense_byte_strides};
use ifrt::shape::Shape;
use ifrt::{Result, Status};

/// A reordering of the dimensions of a dense array in host memory.
#[derive(Debug)]
pub(crate) struct Reorder {
    dims: Vec<i64>,
    strides: Vec<i64>,
    item: usize,
}

impl Reorder {
    /// The reordering that `strides` describe; `None` if they are those of the dense array.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for the wrong number of strides; UNIMPLEMENTED if they leave gaps, overlap
    /// or go backwards.
    pub(crate) fn new(shape: &Shape, item: usize, strides: &[i64]) -> Result<Option<Self>> {
        if strides.len() != shape.rank() {
            return Err(Status::invalid_argument(format!(
                "{} strides were given for an array with {} dimensions",
                strides.len(),
                shape.rank()
            )));
        }
        let dense = dense_byte_strides(shape, item)
            .ok_or_else(|| Status::invalid_argument(format!("the shape {shape} is too large")))?;
        // Strides of dimensions with one element or of empty arrays do not matter.
        let matters = |(dim, _): &(&i64, &i64)| **dim > 1 && shape.num_elements() > 0;
        let mut order: Vec<(&i64, &i64)> =
            shape.dims().iter().zip(strides).filter(matters).collect();
        order.sort_by_key(|(_, stride)| **stride);
        let mut expected = i64::try_from(item).unwrap_or(i64::MAX);
        for (dim, stride) in order {
            if *stride != expected {
                return Err(Status::unimplemented(format!(
                    "the byte strides {strides:?} are no reordering of the dimensions of shape \
                     {shape}"
                )));
            }
            expected = expected.saturating_mul(*dim);
        }
        let is_dense = shape
            .dims()
            .iter()
            .zip(strides)
            .zip(&*dense)
            .all(|((dim, given), dense)| given == dense || *dim <= 1 || shape.num_elements() == 0);
        Ok((!is_dense).then(|| Self {
            dims: shape.dims().to_vec(),
            strides: strides.to_vec(),
            item,
        }))
    }

    /// The elements of the dense array in the new order.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED without memory for them.
    pub(crate) fn apply(&self, dense: &[u8]) -> Result<Bytes> {
        let mut out = zeroed(dense.len())?;
        let places = Offsets::new(&self.dims, &self.strides, 0);
        for (element, place) in dense.chunks_exact(self.item).zip(places) {
            let place = usize::try_from(place).unwrap_or(usize::MAX);
            let end = place.saturating_add(self.item);
            out.get_mut(place..end)
                .ok_or_else(|| Status::internal("a reordering left the array"))?
                .copy_from_slice(element);
        }
        Ok(Bytes::from(out))
    }
}

/// The elements of a strided buffer of a type below a byte, dense and major to minor.
///
/// # Errors
/// INVALID_ARGUMENT as [`HostBuffer::byte_range`]; RESOURCE_EXHAUSTED without memory for them.
pub(crate) fn pack(buffer: &HostBuffer<'_>, strides: &[i64]) -> Result<Vec<u8>> {
    let range = buffer.byte_range()?;
    let data: &[u8] = match &buffer.data {
        HostData::Borrowed(data) => data,
        HostData::Shared(data) => data,
        HostData::Strings(_) => return Err(Status::internal("strings have no strides")),
    };
    debug_assert!(range.end <= data.len());
    let mut out = zeroed(usize::try_from(buffer.shape.num_elements()).unwrap_or(usize::MAX))?;
    let start = i64::try_from(buffer.offset_bytes).unwrap_or(i64::MAX);
    for (out, place) in out
        .iter_mut()
        .zip(Offsets::new(buffer.shape.dims(), strides, start))
    {
        let element = usize::try_from(place)
            .ok()
            .and_then(|place| data.get(place));
        *out = *element.ok_or_else(|| Status::internal("a stride left the buffer"))?;
    }
    Ok(out)
}

/// Zeros in host memory.
///
/// # Errors
/// RESOURCE_EXHAUSTED without memory for them.
pub(crate) fn zeroed(len: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    out.try_reserve_exact(len).map_err(|error| {
        Status::resource_exhausted(format!("no {len} bytes of host memory: {error}"))
    })?;
    out.resize(len, 0);
    Ok(out)
}

/// Where the elements of a strided array stand, major to minor. Without end for a scalar.
struct Offsets<'a> {
    dims: &'a [i64],
    strides: &'a [i64],
    index: Vec<i64>,
    next: i64,
}

impl<'a> Offsets<'a> {
    fn new(dims: &'a [i64], strides: &'a [i64], start: i64) -> Self {
        Self {
            dims,
            strides,
            index: vec![0; dims.len()],
            next: start,
        }
    }
}

impl Iterator for Offsets<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let current = self.next;
        let axes = self.index.iter_mut().zip(self.dims).zip(self.strides).rev();
        for ((index, dim), stride) in axes {
            *index += 1;
            self.next = self.next.wrapping_add(*stride);
            if *index < *dim {
                break;
            }
            self.next = self.next.wrapping_sub(stride.wrapping_mul(*index));
            *index = 0;
        }
        Some(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ifrt::{Code, dtype::DType};

    fn shape(dims: &[i64]) -> Shape {
        Shape::new(dims).unwrap()
    }

    #[test]
    fn dense_strides_need_no_reordering() {
        for (dims, strides) in [
            (&[2, 3][..], &[12, 4][..]),
            (&[], &[]),
            (&[1, 3], &[999, 4]),
            (&[0, 3], &[7, 7]),
            (&[5], &[4]),
        ] {
            assert!(
                Reorder::new(&shape(dims), 4, strides).unwrap().is_none(),
                "{dims:?}"
            );
        }
    }

    #[test]
    fn elements_go_where_the_strides_say() {
        let reorder = Reorder::new(&shape(&[2, 3]), 1, &[1, 2]).unwrap().unwrap();
        assert_eq!(
            &*reorder.apply(&[1, 2, 3, 4, 5, 6]).unwrap(),
            [1, 4, 2, 5, 3, 6]
        );
        let reorder = Reorder::new(&shape(&[2, 1, 2]), 2, &[2, 77, 4])
            .unwrap()
            .unwrap();
        let dense = [1, 1, 2, 2, 3, 3, 4, 4];
        assert_eq!(&*reorder.apply(&dense).unwrap(), [1, 1, 3, 3, 2, 2, 4, 4]);
        let reorder = Reorder::new(&shape(&[2, 2, 2]), 1, &[1, 4, 2])
            .unwrap()
            .unwrap();
        assert_eq!(
            &*reorder.apply(&[0, 1, 2, 3, 4, 5, 6, 7]).unwrap(),
            [0, 4, 1, 5, 2, 6, 3, 7]
        );
    }

    #[test]
    fn what_is_no_reordering_is_refused() {
        for strides in [&[8, 4][..], &[4, 4], &[-12, 4], &[0, 4], &[24, 8]] {
            let error = Reorder::new(&shape(&[2, 3]), 4, strides).unwrap_err();
            assert_eq!(error.code(), Code::Unimplemented, "{strides:?}");
        }
        let error = Reorder::new(&shape(&[2, 3]), 4, &[4]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }

    #[test]
    fn strided_elements_are_packed() {
        let buffer = |dims: &[i64], offset_bytes| HostBuffer {
            data: HostData::Borrowed(&[0, 1, 2, 3, 4, 5, 6, 7]),
            dtype: DType::S4,
            shape: shape(dims),
            byte_strides: None,
            offset_bytes,
        };
        let packed = |dims: &[i64], offset, strides: &[i64]| {
            let mut buffer = buffer(dims, offset);
            buffer.byte_strides = Some(strides.into());
            pack(&buffer, strides)
        };
        assert_eq!(packed(&[3], 7, &[-2]).unwrap(), [7, 5, 3]);
        assert_eq!(packed(&[2, 2], 0, &[1, 4]).unwrap(), [0, 4, 1, 5]);
        assert_eq!(packed(&[2, 2], 3, &[0, 0]).unwrap(), [3; 4]);
        assert_eq!(packed(&[], 5, &[]).unwrap(), [5]);
        assert_eq!(packed(&[0], 5, &[3]).unwrap(), []);
        assert_eq!(
            packed(&[9], 0, &[1]).unwrap_err().code(),
            Code::InvalidArgument
        );
    }
}
