//! [`HostView`]: the contents of an array, to look at.

use std::borrow::Cow;

use bytes::Bytes;
use ifrt::DType;
use jaxlib_core::HostArray;

use crate::element::Element;
use crate::error::{Error, Result};

/// The contents of an array, to look at; from [`crate::Array::host_view`]. A cheap clone.
///
/// It is independent of its array: deleting or donating that changes nothing here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostView(HostArray);

impl HostView {
    pub(crate) const fn new(host: HostArray) -> Self {
        Self(host)
    }

    /// The dimensions.
    pub fn shape(&self) -> Vec<usize> {
        let dims = self.0.shape().dims().iter();
        dims.map(|dim| usize::try_from(*dim).unwrap_or(usize::MAX))
            .collect()
    }

    /// The element type.
    pub const fn dtype(&self) -> DType {
        self.0.dtype()
    }

    /// The memory of the elements, major to minor.
    ///
    /// # Errors
    /// If the elements are strings.
    pub fn bytes(&self) -> Result<&Bytes> {
        Ok(self.0.bytes()?)
    }

    /// The elements, major to minor: in place if their memory is aligned for the type, else a copy.
    ///
    /// # Errors
    /// If they are of another type.
    pub fn elements<T: Element>(&self) -> Result<Cow<'_, [T]>> {
        if self.dtype() != T::DTYPE {
            return Err(Error::DtypeMismatch {
                asked: T::DTYPE,
                found: self.dtype(),
            });
        }
        let bytes = self.0.bytes()?;
        Ok(match T::view(bytes) {
            Some(elements) => Cow::Borrowed(elements),
            None => Cow::Owned(T::from_bytes(bytes)),
        })
    }
}

/// The same data with its type and shape.
impl From<HostView> for HostArray {
    fn from(view: HostView) -> Self {
        view.0
    }
}
