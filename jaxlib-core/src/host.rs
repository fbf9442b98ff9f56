//! [`HostArray`]: the contents of an array in host memory, and the moving of blocks between them.

use bytes::Bytes;
use ifrt::{DType, HostBuffer, HostData, HostValue, Result, Shape, Status};

use crate::aval::Aval;
use crate::sharding::Index;

/// The contents of an array in host memory, dense and major to minor.
///
/// Types below a byte take one byte per element. A cheap clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostArray {
    aval: Aval,
    value: HostValue,
}

impl HostArray {
    /// An array of these bytes.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if they are too many or too few for the shape.
    pub fn new(dtype: DType, shape: Shape, data: impl Into<Bytes>) -> Result<Self> {
        Self::from_value(Aval::new(dtype, shape), HostValue::Bytes(data.into()))
    }

    pub(crate) fn from_value(aval: Aval, value: HostValue) -> Result<Self> {
        let elements = usize::try_from(aval.shape.num_elements()).ok();
        let (found, expected) = match &value {
            HostValue::Bytes(bytes) => {
                let item = aval.dtype.host_byte_size();
                let expected = item.zip(elements).and_then(|(item, n)| n.checked_mul(item));
                (bytes.len(), expected)
            }
            HostValue::Strings(strings) => {
                let expected = elements.filter(|_| aval.dtype == DType::String);
                (strings.len(), expected)
            }
        };
        if expected == Some(found) {
            return Ok(Self { aval, value });
        }
        let unit = match &value {
            HostValue::Bytes(_) => "bytes",
            HostValue::Strings(_) => "strings",
        };
        Err(Status::invalid_argument(format!(
            "an array of type {aval} does not consist of {found} {unit}"
        )))
    }

    /// The same bits as elements of another type of the same size. Files often cannot say more than
    /// `uint16` where `bfloat16` is meant.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the sizes of the types differ.
    pub fn with_dtype(&self, dtype: DType) -> Result<Self> {
        let own = self.aval.dtype;
        if own.host_byte_size().is_none() || own.host_byte_size() != dtype.host_byte_size() {
            return Err(Status::invalid_argument(format!(
                "the bits of {} cannot be taken for {}: an element has another size",
                self.aval,
                dtype.numpy_name()
            )));
        }
        Self::from_value(
            Aval::new(dtype, self.aval.shape.clone()),
            self.value.clone(),
        )
    }

    /// The element type.
    pub const fn dtype(&self) -> DType {
        self.aval.dtype
    }

    /// The dimensions.
    pub const fn shape(&self) -> &Shape {
        &self.aval.shape
    }

    /// Shape and element type.
    pub const fn aval(&self) -> &Aval {
        &self.aval
    }

    /// The elements: bytes, or strings.
    pub const fn value(&self) -> &HostValue {
        &self.value
    }

    /// The bytes of the elements.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the elements are strings.
    pub fn bytes(&self) -> Result<&Bytes> {
        match &self.value {
            HostValue::Bytes(bytes) => Ok(bytes),
            HostValue::Strings(_) => Err(Status::invalid_argument(format!(
                "an array of type {} has no bytes",
                self.aval
            ))),
        }
    }

    /// The array as a runtime takes it; it may keep the memory instead of copying it.
    pub fn to_buffer(&self) -> HostBuffer<'static> {
        let data = match &self.value {
            HostValue::Bytes(bytes) => HostData::Shared(bytes.clone()),
            HostValue::Strings(strings) => HostData::Strings(strings.clone()),
        };
        HostBuffer::dense(data, self.aval.dtype, self.aval.shape.clone())
    }
}

/// A block of a dense array: where its rows stand in the array.
struct Rows {
    /// Where each row begins, in elements.
    starts: Vec<usize>,
    /// The elements of a row.
    len: usize,
}

/// The rows of the part `index` of an array of this shape. Dimensions that are whole at the end are
/// one row with the dimension before them.
fn rows(shape: &Shape, index: &Index) -> Option<Rows> {
    let mut starts = vec![0_usize];
    let mut stride = 1_usize;
    let mut len = 1_usize;
    let mut is_contiguous = true;
    for (dim, range) in shape.dims().iter().zip(index).rev() {
        let dim = usize::try_from(*dim).ok()?;
        let (first, count) = match range {
            None => (0, dim),
            Some(range) => (
                usize::try_from(range.start).ok()?,
                usize::try_from(range.end.checked_sub(range.start)?).ok()?,
            ),
        };
        if is_contiguous {
            starts = vec![first.checked_mul(stride)?];
            len = len.checked_mul(count)?;
            is_contiguous = count == dim;
        } else {
            // Dimensions outside the row: one row for each of their elements, in order.
            let outer = (first..first.checked_add(count)?).map(|n| n.checked_mul(stride));
            let inner = starts;
            starts = Vec::with_capacity(count.checked_mul(inner.len())?);
            for offset in outer {
                let offset = offset?;
                for start in &inner {
                    starts.push(offset.checked_add(*start)?);
                }
            }
        }
        stride = stride.checked_mul(dim)?;
    }
    if len == 0 {
        starts.clear();
    }
    Some(Rows { starts, len })
}

fn outside(aval: &Aval) -> Status {
    Status::internal(format!("a part lies outside an array of type {aval}"))
}

/// A part of host data, dense: the very memory if its elements stand side by side, else a copy.
pub(crate) fn part<'a>(buffer: &HostBuffer<'a>, index: &Index) -> Result<HostBuffer<'a>> {
    let aval = Aval::new(buffer.dtype, buffer.shape.clone());
    let item = match &buffer.data {
        HostData::Strings(_) => 1,
        _ => buffer.dtype.host_byte_size().unwrap_or(1),
    };
    let Rows { starts, len } = rows(&buffer.shape, index).ok_or_else(|| outside(&aval))?;
    let dims: Vec<i64> = buffer
        .shape
        .dims()
        .iter()
        .zip(index)
        .map(|(dim, range)| range.as_ref().map_or(*dim, |range| range.end - range.start))
        .collect();
    let range = |start: usize| start * item..(start + len) * item;
    let data = match (&buffer.data, starts.as_slice()) {
        (HostData::Borrowed(data), [start]) => {
            HostData::Borrowed(data.get(range(*start)).ok_or_else(|| outside(&aval))?)
        }
        (HostData::Shared(data), [start]) if range(*start).end <= data.len() => {
            HostData::Shared(data.slice(range(*start)))
        }
        (HostData::Borrowed(data), _) => HostData::Shared(gather(data, &starts, range, &aval)?),
        (HostData::Shared(data), _) => HostData::Shared(gather(data, &starts, range, &aval)?),
        (HostData::Strings(strings), _) => {
            let mut own = Vec::with_capacity(starts.len() * len);
            for start in &starts {
                let row = strings.get(range(*start)).ok_or_else(|| outside(&aval))?;
                own.extend_from_slice(row);
            }
            HostData::Strings(own.into())
        }
    };
    Ok(HostBuffer::dense(data, buffer.dtype, Shape::new(dims)?))
}

fn gather(
    data: &[u8],
    starts: &[usize],
    range: impl Fn(usize) -> std::ops::Range<usize>,
    aval: &Aval,
) -> Result<Bytes> {
    let mut own = Vec::with_capacity(starts.len() * range(0).len());
    for start in starts {
        own.extend_from_slice(data.get(range(*start)).ok_or_else(|| outside(aval))?);
    }
    Ok(own.into())
}

/// Puts parts together to a whole array. Each part comes with its place.
pub(crate) fn assemble(aval: &Aval, parts: &[(Index, HostValue)]) -> Result<HostArray> {
    let elements = usize::try_from(aval.shape.num_elements()).unwrap_or(usize::MAX);
    let value = if aval.dtype == DType::String {
        let mut whole = vec![Bytes::new(); elements];
        for (index, part) in parts {
            let HostValue::Strings(part) = part else {
                return Err(outside(aval));
            };
            scatter(&mut whole, part, &aval.shape, index, 1).ok_or_else(|| outside(aval))?;
        }
        HostValue::Strings(whole.into())
    } else {
        let item = aval.dtype.host_byte_size().unwrap_or(1);
        let mut whole = vec![0_u8; elements.saturating_mul(item)];
        for (index, part) in parts {
            let HostValue::Bytes(part) = part else {
                return Err(outside(aval));
            };
            scatter(&mut whole, part, &aval.shape, index, item).ok_or_else(|| outside(aval))?;
        }
        HostValue::Bytes(whole.into())
    };
    HostArray::from_value(aval.clone(), value)
}

fn scatter<T: Clone>(
    whole: &mut [T],
    part: &[T],
    shape: &Shape,
    index: &Index,
    item: usize,
) -> Option<()> {
    let Rows { starts, len } = rows(shape, index)?;
    let len = len.checked_mul(item)?;
    if part.len() != len.checked_mul(starts.len())? {
        return None;
    }
    for (start, row) in starts.iter().zip(part.chunks(len.max(1))) {
        let start = start.checked_mul(item)?;
        whole
            .get_mut(start..start.checked_add(len)?)?
            .clone_from_slice(row);
    }
    Some(())
}

#[cfg(test)]
mod tests;
