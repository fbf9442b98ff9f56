//! [`Array`]: data on devices.

use std::fmt;
use std::ops::Range;

use ifrt::DType;
use jaxlib_core::{HostArray, HostRead, Sharding};

use crate::element::Element;
use crate::error::{Error, Result};
use crate::host_view::HostView;

/// An array on devices. A clone is the same array.
///
/// # Deletion
/// [`Array::delete`] gives the memory back now instead of when the last clone is gone. It works on
/// buffers: every clone, shard and alias of the array is dead with it. What still works on a dead
/// array is what needs no data: shape, element type, sharding, printing, [`Array::is_deleted`], and
/// deleting it again. Everything else is [`Error::ArrayDeleted`].
///
/// Programs that were called before, and reads that were started before, are not disturbed.
#[derive(Clone)]
#[must_use = "an array that nobody keeps is released at once"]
pub struct Array(jaxlib_core::Array);

/// The part of an array on one device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shard {
    /// The number of the device.
    pub device_id: i32,
    /// The part of the array that it is: a range per dimension.
    pub index: Vec<Range<usize>>,
    /// How many earlier shards hold the same part.
    pub replica_id: usize,
    /// The part as an array. It shares its buffer with the array that it comes from: deleting the
    /// one deletes the other.
    pub data: Array,
}

impl Array {
    pub(crate) const fn from_core(core: jaxlib_core::Array) -> Self {
        Self(core)
    }

    pub(crate) const fn core(&self) -> &jaxlib_core::Array {
        &self.0
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        self.0.dims()
    }

    /// The number of elements.
    pub fn size(&self) -> usize {
        usize::try_from(self.0.shape().num_elements()).unwrap_or(usize::MAX)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype()
    }

    /// Where its parts are.
    pub fn sharding(&self) -> &Sharding {
        self.0.sharding()
    }

    /// True if the array stays where it is. Others follow the program that they are passed to.
    pub fn is_committed(&self) -> bool {
        self.0.is_committed()
    }

    /// True if its element type yields to that of others in type promotion.
    pub fn weak_type(&self) -> bool {
        self.0.weak_type()
    }

    /// True if each device has the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        self.0.is_fully_replicated()
    }

    /// Deletes the array: its memory is given back as soon as no program that was called needs it.
    ///
    /// It cannot fail. Deleting again does nothing. If the runtime fails to delete, that is logged
    /// and counted ([`crate::Client::deletion_stats`]), and the array is dead all the same.
    ///
    /// # Blocking
    /// Never, whatever the runtime does.
    ///
    /// # Examples
    /// ```
    /// # use jax_api::prelude::*;
    /// # fn main() -> jax_api::Result<()> {
    /// # let client = Client::from_ifrt(ifrt::fake::FakeClient::new(Default::default()));
    /// let x = device_put(&[1.0_f32; 16], &client)?;
    /// let same = x.clone();
    /// x.delete();
    /// x.delete();
    /// assert!(same.is_deleted());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Mirrors
    /// `jax.Array.delete`.
    pub fn delete(&self) {
        self.0.delete();
    }

    /// True once the array was deleted or donated, here or under another alias. Never becomes
    /// false again.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Mirrors
    /// `jax.Array.is_deleted`.
    pub fn is_deleted(&self) -> bool {
        self.0.is_deleted()
    }

    /// Waits until the data is there.
    ///
    /// # Blocking
    /// Until then.
    ///
    /// # Errors
    /// For a dead array; and the error of what made the array.
    ///
    /// # Mirrors
    /// `jax.Array.block_until_ready`.
    pub fn block_until_ready(&self) -> Result<&Self> {
        self.0.block_until_ready()?;
        Ok(self)
    }

    /// Ready when the data is there: [`Array::block_until_ready`] for asynchronous programs. Needs no
    /// particular executor. Dropping it cancels nothing.
    ///
    /// # Errors
    /// Through the future, as [`Array::block_until_ready`].
    pub fn ready(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        let ready = self.0.ready();
        async move { Ok(ready.await?) }
    }

    /// True if the data is there or has failed.
    ///
    /// # Errors
    /// For a dead array.
    ///
    /// # Mirrors
    /// `jax.Array.is_ready`.
    pub fn is_ready(&self) -> Result<bool> {
        Ok(self.0.is_ready()?)
    }

    /// Starts to copy the contents to the host and keeps what arrives for those who read them later,
    /// until the array is deleted, donated or gone.
    ///
    /// # Errors
    /// As [`Array::read`].
    ///
    /// # Mirrors
    /// `jax.Array.copy_to_host_async`.
    pub fn copy_to_host_async(&self) -> Result<()> {
        Ok(self.0.copy_to_host_async()?)
    }

    /// The contents, to look at. They stay as they are for as long as the view is held, whatever
    /// happens to the array, and nobody waits for the view.
    ///
    /// The memory is what the runtime answers with: its own if it can share it, else a copy.
    ///
    /// # Blocking
    /// Until the data is there.
    ///
    /// # Errors
    /// As [`Array::to_host`].
    ///
    /// # Examples
    /// ```
    /// # use jax_api::prelude::*;
    /// # fn main() -> jax_api::Result<()> {
    /// # let client = Client::from_ifrt(ifrt::fake::FakeClient::new(Default::default()));
    /// let x = device_put(&[1.0_f32, 2.0], &client)?;
    /// let view = x.host_view()?;
    /// x.delete();
    /// assert_eq!(*view.elements::<f32>()?, [1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn host_view(&self) -> Result<HostView> {
        Ok(HostView::new(self.to_host()?))
    }

    /// Starts to copy the contents to the host.
    ///
    /// # Errors
    /// For a dead array, or one with parts that this process cannot reach.
    pub fn read(&self) -> Result<HostRead> {
        Ok(self.0.read()?)
    }

    /// The contents as bytes.
    ///
    /// # Blocking
    /// Until the data is there.
    ///
    /// # Errors
    /// As [`Array::read`]; and the error of what made the array.
    pub fn to_host(&self) -> Result<HostArray> {
        Ok(self.0.to_host()?)
    }

    /// The elements, major to minor.
    ///
    /// # Blocking
    /// Until the data is there.
    ///
    /// # Errors
    /// As [`Array::to_host`]; also if the array has another element type.
    ///
    /// # Mirrors
    /// `numpy.asarray`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.0.check_alive()?;
        if self.dtype() != T::DTYPE {
            return Err(Error::DtypeMismatch {
                asked: T::DTYPE,
                found: self.dtype(),
            });
        }
        Ok(T::from_bytes(self.to_host()?.bytes()?))
    }

    /// The only element.
    ///
    /// # Blocking
    /// Until the data is there.
    ///
    /// # Errors
    /// As [`Array::to_vec`]; also if there are more elements or none.
    ///
    /// # Mirrors
    /// `jax.Array.item`.
    pub fn item<T: Element>(&self) -> Result<T> {
        let elements = self.to_vec::<T>()?;
        match elements.as_slice() {
            [one] => Ok(*one),
            _ => Err(Error::invalid(
                "can only convert an array of size 1 to a Python scalar",
            )),
        }
    }

    /// The parts on devices that this process can reach.
    ///
    /// # Errors
    /// For a dead array.
    ///
    /// # Mirrors
    /// `jax.Array.addressable_shards`.
    pub fn addressable_shards(&self) -> Result<Vec<Shard>> {
        let shards = self.0.addressable_shards()?.into_iter();
        let bound = |value: i64| usize::try_from(value).unwrap_or(usize::MAX);
        Ok(shards
            .map(|shard| Shard {
                device_id: shard.device.id().0,
                index: shard
                    .index
                    .iter()
                    .zip(self.shape())
                    .map(|(range, dim)| match range {
                        None => 0..*dim,
                        Some(range) => bound(range.start)..bound(range.end),
                    })
                    .collect(),
                replica_id: shard.replica_id,
                data: Self(shard.data),
            })
            .collect())
    }
}

/// The same array.
impl From<&Self> for Array {
    fn from(array: &Self) -> Self {
        array.clone()
    }
}

/// Deletes several arrays; the runtime hears of them in one call. As total, silent and quick as
/// [`Array::delete`].
///
/// # Blocking
/// Never.
///
/// # Examples
/// ```
/// # use jax_api::prelude::*;
/// # fn main() -> jax_api::Result<()> {
/// # let client = Client::from_ifrt(ifrt::fake::FakeClient::new(Default::default()));
/// let (x, y) = (device_put(1_u8, &client)?, device_put(2_u8, &client)?);
/// delete_all([&x, &y]);
/// assert!(x.is_deleted() && y.is_deleted());
/// # Ok(())
/// # }
/// ```
pub fn delete_all<'a>(arrays: impl IntoIterator<Item = &'a Array>) {
    jaxlib_core::Array::delete_all(arrays.into_iter().map(|array| &array.0));
}

/// Says nothing about the contents and never waits.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
