//! Data on the host, as the cases know it: the oracle that runtimes are compared with.

use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;

use super::check::{Check, Stop};
use crate::dtype::DType;
use crate::host_buffer::{HostBuffer, HostData};
use crate::index::IndexDomain;
use crate::shape::Shape;
use crate::status::Status;

/// A whole array, dense and major to minor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    pub(crate) bytes: Bytes,
}

pub(crate) fn shape(dims: &[i64]) -> Check<Shape> {
    Ok(Shape::new(dims)?)
}

pub(crate) fn f32s(values: &[f32]) -> Bytes {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

pub(crate) fn i32s(values: &[i32]) -> Bytes {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

impl Host {
    pub(crate) fn new(dtype: DType, dims: &[i64], bytes: Bytes) -> Check<Self> {
        Ok(Self {
            dtype,
            shape: shape(dims)?,
            bytes,
        })
    }

    pub(crate) fn f32(dims: &[i64], values: &[f32]) -> Check<Self> {
        Self::new(DType::F32, dims, f32s(values))
    }

    pub(crate) fn i32(dims: &[i64], values: &[i32]) -> Check<Self> {
        Self::new(DType::S32, dims, i32s(values))
    }

    /// The numbers from zero, in the type `dtype`: `f32`, `s32`, or one byte each.
    pub(crate) fn iota(dtype: DType, dims: &[i64]) -> Check<Self> {
        let count = usize::try_from(shape(dims)?.num_elements()).unwrap_or(0);
        let bytes = match dtype {
            DType::F32 => {
                let number = |n: u16| f32::from(n);
                let numbers: Vec<f32> = (0..).take(count).map(number).collect();
                f32s(&numbers)
            }
            DType::S32 => i32s(&(0..).take(count).collect::<Vec<_>>()),
            // Three bits, so that the numbers are the same as signed and unsigned ones.
            DType::S4 | DType::U4 => (0..8_u8).cycle().take(count).collect(),
            other => {
                return Err(Stop::failed(format_args!("the suite has no {other} data")));
            }
        };
        Self::new(dtype, dims, bytes)
    }

    fn item(&self) -> usize {
        self.dtype.host_byte_size().unwrap_or(0)
    }

    pub(crate) fn buffer(&self) -> HostBuffer<'static> {
        let data = HostData::Shared(self.bytes.clone());
        HostBuffer::dense(data, self.dtype, self.shape.clone())
    }

    /// The part in `domain`, element by element: slow, and nothing to get wrong.
    pub(crate) fn cut(&self, domain: &IndexDomain) -> Check<Self> {
        let mut bytes = Vec::new();
        for place in places(domain) {
            let start = self.offset(&place)?;
            bytes.extend_from_slice(&self.bytes[start..start + self.item()]);
        }
        Ok(Self {
            dtype: self.dtype,
            shape: domain.shape().clone(),
            bytes: bytes.into(),
        })
    }

    fn offset(&self, place: &[i64]) -> Check<usize> {
        let mut number = 0_i64;
        for (coordinate, dim) in place.iter().zip(self.shape.dims()) {
            if coordinate >= dim {
                return Err(Stop::from(Status::internal(
                    "a part lies outside its array",
                )));
            }
            number = number * dim + coordinate;
        }
        Ok(usize::try_from(number).unwrap_or(usize::MAX) * self.item())
    }
}

/// The places of the elements of a domain, major to minor.
fn places(domain: &IndexDomain) -> Vec<Vec<i64>> {
    let mut places = vec![Vec::new()];
    for (origin, dim) in domain.origin().iter().zip(domain.shape().dims()) {
        places = places
            .into_iter()
            .flat_map(|place: Vec<i64>| {
                (*origin..origin + dim).map(move |coordinate| {
                    let mut place = place.clone();
                    place.push(coordinate);
                    place
                })
            })
            .collect();
    }
    places
}

/// Host memory that says when the runtime has let go of it.
pub(crate) fn watched(bytes: &Bytes) -> (Bytes, Watch) {
    let (sender, receiver) = mpsc::channel();
    let memory = Bytes::from_owner(Watched {
        bytes: bytes.clone(),
        sender,
    });
    (memory, Watch(receiver))
}

struct Watched {
    bytes: Bytes,
    sender: mpsc::Sender<()>,
}

impl AsRef<[u8]> for Watched {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Nobody is interested any more if this fails.
        self.sender.send(()).unwrap_or_default();
    }
}

/// The view of the one who lent the memory.
pub(crate) struct Watch(mpsc::Receiver<()>);

impl Watch {
    /// Waits until the memory is given back.
    #[track_caller]
    pub(crate) fn given_back(&self) -> Check {
        let patience = Duration::from_secs(10);
        self.0.recv_timeout(patience).map_err(|_| {
            Stop::failed(format_args!(
                "the runtime still holds host memory {patience:?} after its last use"
            ))
        })
    }
}
