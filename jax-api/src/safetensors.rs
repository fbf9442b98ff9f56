//! The files that hold the weights of many published models: `.safetensors`.
//!
//! ```
//! # use jax_api::prelude::*;
//! # use jax_api::safetensors;
//! # fn main() -> jax_api::Result<()> {
//! # let client = Client::from_ifrt(ifrt::fake::FakeClient::new(Default::default()));
//! let w = device_put(&[1.0_f32, 2.0], &client)?;
//! let bytes = safetensors::write([("layer.w", w.to_host()?)])?;
//! let weights = safetensors::read(bytes)?;
//! let w = device_put(&weights["layer.w"], &client)?;
//! assert_eq!(w.to_vec::<f32>()?, [1.0, 2.0]);
//! # Ok(())
//! # }
//! ```
//!
//! A file is the length of a header, the header (JSON: type, shape and place of each array), and the
//! elements without gaps.
//!
//! What is not here: elements below a byte, which the format packs in ways of its own; the free text
//! that files may carry about themselves.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use ifrt::{DType, Shape};
use jaxlib_core::HostArray;
use serde_json::{Map, Value, json};

use crate::array::Array;
use crate::error::{Error, Result};
use crate::files;

/// No honest header is longer; the format says so as well.
const MAX_HEADER_BYTES: usize = 100_000_000;
/// The entry with free text about the file.
const METADATA: &str = "__metadata__";

const NAMES: [(&str, DType); 19] = [
    ("BOOL", DType::Pred),
    ("I8", DType::S8),
    ("I16", DType::S16),
    ("I32", DType::S32),
    ("I64", DType::S64),
    ("U8", DType::U8),
    ("U16", DType::U16),
    ("U32", DType::U32),
    ("U64", DType::U64),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("F32", DType::F32),
    ("F64", DType::F64),
    ("C64", DType::C64),
    ("F8_E4M3", DType::F8E4M3FN),
    ("F8_E5M2", DType::F8E5M2),
    ("F8_E8M0", DType::F8E8M0FNU),
    ("F8_E4M3FNUZ", DType::F8E4M3FNUZ),
    ("F8_E5M2FNUZ", DType::F8E5M2FNUZ),
];

fn malformed(what: &str) -> Error {
    Error::invalid(format!(
        "this is not a safetensors file, or it is damaged: {what}"
    ))
}

fn about_array(name: &str, what: &str) -> Error {
    Error::invalid(format!("array '{name}' in a safetensors file: {what}"))
}

/// The arrays of a file by name.
///
/// # Errors
/// If the file cannot be read, or is damaged, or has elements of a type that JAX does not have.
pub fn load(path: impl AsRef<Path>) -> Result<BTreeMap<String, HostArray>> {
    let path = path.as_ref();
    files::about(path, read(files::read(path)?))
}

/// The arrays of a file's contents by name; they share its memory.
///
/// # Errors
/// If the bytes are damaged, or have elements of a type that JAX does not have.
pub fn read(bytes: impl Into<Bytes>) -> Result<BTreeMap<String, HostArray>> {
    let bytes = bytes.into();
    let (len, _) = bytes
        .split_first_chunk()
        .ok_or_else(|| malformed("it is too short"))?;
    let len = usize::try_from(u64::from_le_bytes(*len))
        .ok()
        .filter(|len| *len <= MAX_HEADER_BYTES)
        .ok_or_else(|| malformed("its header is longer than 100 MB"))?;
    let header = bytes
        .get(8..8 + len)
        .ok_or_else(|| malformed("its header is cut off"))?;
    let header: Map<String, Value> = serde_json::from_slice(header)
        .map_err(|error| malformed(&format!("its header is no JSON object: {error}")))?;
    let data = bytes.slice(8 + len..);
    let mut arrays = BTreeMap::new();
    let mut places = Vec::new();
    for (name, entry) in &header {
        if name == METADATA {
            continue;
        }
        let (array, begin, end) =
            entry_array(entry, &data).map_err(|what| about_array(name, &what))?;
        places.push((begin, end, name));
        arrays.insert(name.clone(), array);
    }
    // Every byte belongs to one array. Anything else is damage, or hides something.
    places.sort_unstable();
    let mut position = 0;
    for (begin, end, name) in places {
        if begin != position {
            return Err(about_array(
                name,
                &format!("it begins at byte {begin}, where {position} is free"),
            ));
        }
        position = end;
    }
    if position != data.len() {
        return Err(malformed(&format!(
            "its arrays take {position} bytes, but {} follow the header",
            data.len()
        )));
    }
    Ok(arrays)
}

/// The array of an entry, and where it begins and ends.
fn entry_array(entry: &Value, data: &Bytes) -> Result<(HostArray, usize, usize), String> {
    let name = entry["dtype"].as_str().ok_or("it has no 'dtype'")?;
    let (_, dtype) = NAMES
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| format!("elements of type {name} cannot be read"))?;
    let numbers = |key: &str| -> Option<Vec<i64>> {
        entry[key].as_array()?.iter().map(Value::as_i64).collect()
    };
    let dims = numbers("shape").ok_or("its 'shape' is no list of sizes")?;
    let shape = Shape::new(dims).map_err(|status| status.message().to_owned())?;
    let offsets = numbers("data_offsets").unwrap_or_default();
    let [begin, end] = offsets.as_slice() else {
        return Err("its 'data_offsets' are not two numbers".to_owned());
    };
    let place = usize::try_from(*begin).ok().zip(usize::try_from(*end).ok());
    let (begin, end) = place
        .filter(|(begin, end)| begin <= end && *end <= data.len())
        .ok_or_else(|| format!("it is said to be at {begin}..{end} of {} bytes", data.len()))?;
    let array = HostArray::new(*dtype, shape, data.slice(begin..end))
        .map_err(|status| status.message().to_owned())?;
    Ok((array, begin, end))
}

/// Writes arrays to a file.
///
/// # Blocking
/// Until the data of all arrays is there and written.
///
/// # Errors
/// For a dead array, an element type that the format does not have, a name that stands there twice,
/// and a file that cannot be written.
pub fn save<'a, N: Into<String>>(
    path: impl AsRef<Path>,
    arrays: impl IntoIterator<Item = (N, &'a Array)>,
) -> Result<()> {
    files::write(path.as_ref(), &write(files::to_host(arrays)?)?)
}

/// The contents of a file with these arrays.
///
/// # Errors
/// For an element type that the format does not have, and for a name that stands there twice.
pub fn write<N: Into<String>>(arrays: impl IntoIterator<Item = (N, HostArray)>) -> Result<Vec<u8>> {
    let mut header = Map::new();
    let mut parts = Vec::new();
    let mut position = 0_usize;
    let mut arrays: Vec<(String, HostArray)> = arrays
        .into_iter()
        .map(|(name, array)| (name.into(), array))
        .collect();
    // Large elements first, so that all of them are aligned where the file begins aligned.
    arrays.sort_by_key(|(_, array)| std::cmp::Reverse(array.dtype().host_byte_size()));
    for (name, array) in arrays {
        let dtype = array.dtype();
        let (known, _) = NAMES
            .iter()
            .find(|(_, known)| *known == dtype)
            .ok_or_else(|| {
                about_array(
                    &name,
                    &format!("the format has no elements of type {}", dtype.numpy_name()),
                )
            })?;
        let data = array.bytes()?.clone();
        let end = position.saturating_add(data.len());
        let entry = json!({
            "dtype": known,
            "shape": array.shape().dims(),
            "data_offsets": [position, end],
        });
        if name == METADATA {
            return Err(about_array(&name, "this name is reserved by the format"));
        }
        if header.insert(name.clone(), entry).is_some() {
            return Err(about_array(&name, "the name stands there twice"));
        }
        parts.push(data);
        position = end;
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    let len = u64::try_from(header.len()).unwrap_or(u64::MAX);
    let mut out = len.to_le_bytes().to_vec();
    out.extend(header);
    for part in parts {
        out.extend_from_slice(&part);
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
