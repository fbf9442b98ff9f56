//! [`device_put`]: data onto devices.

use std::borrow::Cow;

use ifrt::{HostBuffer, HostData, Shape};
use jaxlib_core::HostArray;
use jaxlib_core::device_put::{Source, device_put as put_host, device_put_array as put_array};

use crate::array::Array;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::placement::Placement;

/// What is put onto devices.
///
/// | from | is |
/// |---|---|
/// | `&[T]`, `&[T; N]`, `&Vec<T>` | one dimension; copied |
/// | `(slice, [n, m, …])` | those dimensions, major to minor; copied |
/// | `Vec<T>`, `(Vec<T>, [n, m, …])` | the same; the memory is handed over and need not be copied |
/// | `T` | a scalar |
/// | `&HostArray` | any element type as bytes |
/// | `&Array` | an array that is on devices already |
#[derive(Debug)]
pub struct Input<'a>(Repr<'a>);

#[derive(Debug)]
enum Repr<'a> {
    Host {
        data: HostData<'a>,
        dtype: ifrt::DType,
        /// `None` if a dimension exceeds 64 bits.
        dims: Option<Vec<i64>>,
        elements: usize,
    },
    Whole(HostArray),
    Array(&'a Array),
}

impl<'a> Input<'a> {
    fn host<T: Element>(data: HostData<'a>, elements: usize, dims: &[usize]) -> Self {
        let dims = dims.iter().map(|dim| i64::try_from(*dim).ok());
        Self(Repr::Host {
            data,
            dtype: T::DTYPE,
            dims: dims.collect(),
            elements,
        })
    }

    pub(crate) fn borrowed<T: Element>(elements: &'a [T], dims: &[usize]) -> Self {
        let data = match T::as_bytes(elements) {
            Cow::Borrowed(bytes) => HostData::Borrowed(bytes),
            Cow::Owned(bytes) => HostData::Shared(bytes.into()),
        };
        Self::host::<T>(data, elements.len(), dims)
    }

    pub(crate) fn owned<T: Element>(elements: Vec<T>, dims: &[usize]) -> Self {
        let count = elements.len();
        Self::host::<T>(HostData::Shared(T::into_bytes(elements)), count, dims)
    }
}

impl<'a, T: Element> From<&'a [T]> for Input<'a> {
    fn from(elements: &'a [T]) -> Self {
        Self::borrowed(elements, &[elements.len()])
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Input<'a> {
    fn from(elements: &'a Vec<T>) -> Self {
        Self::borrowed(elements, &[elements.len()])
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for Input<'a> {
    fn from(elements: &'a [T; N]) -> Self {
        Self::borrowed(elements, &[N])
    }
}

impl<'a, T: Element, const R: usize> From<(&'a [T], [usize; R])> for Input<'a> {
    fn from((elements, dims): (&'a [T], [usize; R])) -> Self {
        Self::borrowed(elements, &dims)
    }
}

impl<'a, T: Element, const R: usize> From<(&'a Vec<T>, [usize; R])> for Input<'a> {
    fn from((elements, dims): (&'a Vec<T>, [usize; R])) -> Self {
        Self::borrowed(elements, &dims)
    }
}

impl<'a, T: Element, const N: usize, const R: usize> From<(&'a [T; N], [usize; R])> for Input<'a> {
    fn from((elements, dims): (&'a [T; N], [usize; R])) -> Self {
        Self::borrowed(elements, &dims)
    }
}

impl<'a, T: Element> From<(&'a [T], &[usize])> for Input<'a> {
    fn from((elements, dims): (&'a [T], &[usize])) -> Self {
        Self::borrowed(elements, dims)
    }
}

impl<T: Element> From<Vec<T>> for Input<'_> {
    fn from(elements: Vec<T>) -> Self {
        let count = elements.len();
        Self::owned(elements, &[count])
    }
}

impl<T: Element, const R: usize> From<(Vec<T>, [usize; R])> for Input<'_> {
    fn from((elements, dims): (Vec<T>, [usize; R])) -> Self {
        Self::owned(elements, &dims)
    }
}

impl<T: Element> From<T> for Input<'_> {
    fn from(scalar: T) -> Self {
        Self::owned(vec![scalar], &[])
    }
}

impl From<&HostArray> for Input<'_> {
    fn from(array: &HostArray) -> Self {
        Self(Repr::Whole(array.clone()))
    }
}

impl<'a> From<&'a Array> for Input<'a> {
    fn from(array: &'a Array) -> Self {
        Self(Repr::Array(array))
    }
}

/// What may happen to an array that is put elsewhere. Host data is not affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing by themselves"]
pub struct PutOptions {
    donate: bool,
    may_alias: Option<bool>,
}

impl PutOptions {
    /// The result may share buffers with the array.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the array is used up, if the runtime can make use of that.
    pub const fn donate(mut self, donate: bool) -> Self {
        self.donate = donate;
        self
    }

    /// Whether the result may share buffers with the array, so that both are deleted together.
    pub const fn may_alias(mut self, may_alias: bool) -> Self {
        self.may_alias = Some(may_alias);
        self
    }

    fn source(self) -> Result<Source> {
        match (self.donate, self.may_alias) {
            (true, Some(true)) => Err(Error::invalid(
                "may_alias and donate cannot be True at the same time.",
            )),
            (true, _) => Ok(Source::Donate),
            (false, Some(false)) => Ok(Source::Copy),
            (false, _) => Ok(Source::MayAlias),
        }
    }
}

/// Puts data onto devices: see [`Input`] for what, [`Placement`] for where.
///
/// # Blocking
/// May copy the data before it returns; does not wait for devices, except for an array that has to
/// be split differently.
///
/// # Errors
/// If the number of elements does not fit the dimensions, a sharding does not split the data
/// evenly, a device is not addressable, or an array is dead; and what the runtime reports.
///
/// # Examples
/// ```
/// # use jax_api::prelude::*;
/// # fn main() -> jax_api::Result<()> {
/// # let client = Client::from_ifrt(ifrt::fake::FakeClient::new(Default::default()));
/// let matrix = device_put((&[1_i32, 2, 3, 4, 5, 6], [2, 3]), &client)?;
/// assert_eq!(matrix.shape(), [2, 3]);
/// let scalar = device_put(2.5_f64, &client.devices()[1])?;
/// let elsewhere = device_put(&scalar, &client.devices()[2])?;
/// assert_eq!(elsewhere.item::<f64>()?, 2.5);
/// # Ok(())
/// # }
/// ```
///
/// # Mirrors
/// `jax.device_put`.
pub fn device_put<'a>(x: impl Into<Input<'a>>, to: impl Into<Placement>) -> Result<Array> {
    device_put_with(x, to, PutOptions::new())
}

/// [`device_put`] with options.
///
/// # Blocking
/// As [`device_put`].
///
/// # Errors
/// As [`device_put`]; also for options that contradict each other.
pub fn device_put_with<'a>(
    x: impl Into<Input<'a>>,
    to: impl Into<Placement>,
    options: PutOptions,
) -> Result<Array> {
    let Placement { client, target } = to.into();
    let source = options.source()?;
    let core = match x.into().0 {
        Repr::Array(array) if !array.core().client().is_same(&client) => {
            let host = array.core().to_host()?;
            put_host(&client, &host.to_buffer(), target)?
        }
        Repr::Array(array) => put_array(array.core(), target, source)?,
        Repr::Whole(host) => put_host(&client, &host.to_buffer(), target)?,
        Repr::Host {
            data,
            dtype,
            dims,
            elements,
        } => {
            let shape = shape(dims, elements)?;
            put_host(&client, &HostBuffer::dense(data, dtype, shape), target)?
        }
    };
    Ok(Array::from_core(core))
}

fn shape(dims: Option<Vec<i64>>, elements: usize) -> Result<Shape> {
    let Some(dims) = dims else {
        return Err(Error::invalid("a dimension exceeds 64 bits"));
    };
    let shape = Shape::new(dims)?;
    if usize::try_from(shape.num_elements()) != Ok(elements) {
        return Err(Error::invalid(format!(
            "cannot reshape array of size {elements} into shape {shape}"
        )));
    }
    Ok(shape)
}
