//! Arrays of the crate `ndarray`, in and out.
//!
//! ```
//! # use jax_api::prelude::*;
//! # fn main() -> jax_api::Result<()> {
//! # let client = Client::from_ifrt(ifrt::fake::FakeClient::new(Default::default()));
//! let matrix = ndarray::array![[1.0_f32, 2.0], [3.0, 4.0]];
//! let x = device_put(&matrix, &client)?;
//! assert_eq!(x.shape(), [2, 2]);
//! assert_eq!(x.to_ndarray::<f32>()?, matrix.into_dyn());
//! // A view of any kind is copied in its own order.
//! let transposed = ndarray::array![[1, 2], [3, 4]].reversed_axes();
//! assert_eq!(device_put(&transposed, &client)?.to_vec::<i32>()?, [1, 3, 2, 4]);
//! # Ok(())
//! # }
//! ```

use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

use crate::array::Array;
use crate::device_put::Input;
use crate::element::Element;
use crate::error::{Error, Result};

/// Dense arrays are borrowed, others are copied.
impl<'a, T, S, D> From<&'a ArrayBase<S, D>> for Input<'a>
where
    T: Element,
    S: Data<Elem = T>,
    D: Dimension,
{
    fn from(array: &'a ArrayBase<S, D>) -> Self {
        match array.as_slice() {
            Some(elements) => Self::borrowed(elements, array.shape()),
            None => Self::owned(array.iter().copied().collect(), array.shape()),
        }
    }
}

impl Array {
    /// The contents as an array of the crate `ndarray`.
    ///
    /// # Blocking
    /// Until the data is there.
    ///
    /// # Errors
    /// As [`Array::to_vec`].
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        let elements = self.to_vec::<T>()?;
        ArrayD::from_shape_vec(IxDyn(self.shape()), elements)
            .map_err(|error| Error::invalid(error.to_string()))
    }
}
