//! NumPy's archives of arrays: `.npz` files.
//!
//! ```
//! # use jax_api::prelude::*;
//! # use jax_api::npz;
//! # fn main() -> jax_api::Result<()> {
//! # let client = Client::from_ifrt(ifrt::fake::FakeClient::new(Default::default()));
//! let x = device_put((&[1.0_f32, 2.0, 3.0, 4.0], [2, 2]), &client)?;
//! let bytes = npz::write([("x", x.to_host()?)])?;
//! let arrays = npz::read(bytes)?;
//! assert_eq!(device_put(&arrays["x"], &client)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
//! # Ok(())
//! # }
//! ```
//!
//! # Element types
//! NumPy itself has no bfloat16, no floats of 8 bits and no integers below a byte. Files say of such
//! elements only how many bytes each one takes, and that is how they are written here too. Reading
//! gives their bits, as `uint8`, `uint16` and so on; [`HostArray::with_dtype`] says what they are.
//!
//! What is not here: Python objects and texts in arrays, archives over several files.
//!
//! # Mirrors
//! `numpy.savez`, `numpy.load`.

mod npy;
mod zip;

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use ifrt::DType;
use jaxlib_core::HostArray;

use crate::array::Array;
use crate::error::{Error, Result};
use crate::files;

/// The arrays of a file by name.
///
/// # Errors
/// If the file cannot be read, is no archive of arrays, or is damaged.
///
/// # Mirrors
/// `numpy.load`.
pub fn load(path: impl AsRef<Path>) -> Result<BTreeMap<String, HostArray>> {
    let path = path.as_ref();
    files::about(path, read(files::read(path)?))
}

/// The arrays of an archive by name. Members that are not compressed share the memory of `bytes`.
///
/// # Errors
/// If the bytes are no archive of arrays, or damaged.
pub fn read(bytes: impl Into<Bytes>) -> Result<BTreeMap<String, HostArray>> {
    let mut arrays = BTreeMap::new();
    for member in zip::members(&bytes.into())? {
        let name = member.name.strip_suffix(".npy").unwrap_or(&member.name);
        let array = npy::read(&member.data).map_err(|what| {
            Error::invalid(format!(
                "member '{}' of an npz archive: {what}",
                member.name
            ))
        })?;
        if arrays.insert(name.to_owned(), array).is_some() {
            return Err(Error::invalid(format!(
                "an npz archive has two members with the name '{name}'"
            )));
        }
    }
    Ok(arrays)
}

/// Writes arrays to a file.
///
/// # Blocking
/// Until the data of all arrays is there and written.
///
/// # Errors
/// For a dead array, one whose elements are texts, a name that stands there twice, and a file that
/// cannot be written.
///
/// # Mirrors
/// `numpy.savez`.
pub fn save<'a, N: Into<String>>(
    path: impl AsRef<Path>,
    arrays: impl IntoIterator<Item = (N, &'a Array)>,
) -> Result<()> {
    files::write(path.as_ref(), &write(files::to_host(arrays)?)?)
}

/// The archive of these arrays.
///
/// # Errors
/// For arrays whose elements are texts, and for a name that stands there twice.
pub fn write<N: Into<String>>(arrays: impl IntoIterator<Item = (N, HostArray)>) -> Result<Vec<u8>> {
    let mut archive = zip::Writer::default();
    for (name, array) in arrays {
        let name = name.into();
        let (header, data) = npy::write(&array)
            .map_err(|what| Error::invalid(format!("array '{name}' in an npz archive: {what}")))?;
        archive.add(&format!("{name}.npy"), &[&header, &data])?;
    }
    archive.finish()
}

/// True for the element types that NumPy itself has; of others a file keeps only the bits.
pub fn is_numpy_type(dtype: DType) -> bool {
    npy::is_numpy_type(dtype)
}

#[cfg(test)]
mod tests;
