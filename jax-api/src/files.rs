//! Files of arrays: what the formats share.

use std::path::Path;

use bytes::Bytes;
#[cfg(any(feature = "npz", feature = "safetensors"))]
use jaxlib_core::HostArray;

#[cfg(any(feature = "npz", feature = "safetensors"))]
use crate::array::Array;
use crate::error::{Error, Result};

fn file_error(path: &Path, error: &std::io::Error) -> Error {
    Error::File {
        path: path.display().to_string(),
        message: error.to_string(),
    }
}

pub(crate) fn read(path: &Path) -> Result<Bytes> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes.into()),
        Err(error) => Err(file_error(path, &error)),
    }
}

#[cfg(any(feature = "npz", feature = "safetensors"))]
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(|error| file_error(path, &error))
}

/// Names the file in an error about its contents.
pub(crate) fn about<T>(path: &Path, result: Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        Error::Runtime(status) => {
            Error::Runtime(status.annotate(format!("in the file {}", path.display())))
        }
        other => other,
    })
}

/// Reads all arrays; the copies run side by side.
#[cfg(any(feature = "npz", feature = "safetensors"))]
pub(crate) fn to_host<'a, N: Into<String>>(
    arrays: impl IntoIterator<Item = (N, &'a Array)>,
) -> Result<Vec<(String, HostArray)>> {
    let begun = arrays
        .into_iter()
        .map(|(name, array)| Ok((name.into(), array.read()?)))
        .collect::<Result<Vec<_>>>()?;
    begun
        .into_iter()
        .map(|(name, read)| Ok((name, read.wait()?)))
        .collect()
}
