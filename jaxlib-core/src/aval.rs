//! [`Aval`]: shape and element type of an array, and how JAX writes them.
//!
//! # Mirrors
//! `jax/_src/core.py`, `ShapedArray`.

use std::fmt;

use ifrt::{DType, Result, Shape, Status};

/// Shape and element type of an array; displayed like `float32[16,3]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::exhaustive_structs,
    reason = "whoever has both parts can write it down"
)]
pub struct Aval {
    /// The element type.
    pub dtype: DType,
    /// The dimensions.
    pub shape: Shape,
}

impl Aval {
    /// Shape and element type of an array.
    pub const fn new(dtype: DType, shape: Shape) -> Self {
        Self { dtype, shape }
    }

    /// About the memory that the elements take, in bytes.
    pub(crate) fn byte_size(&self) -> u64 {
        let elements = u64::try_from(self.shape.num_elements()).unwrap_or(0);
        let bits = u64::try_from(self.dtype.bit_size().unwrap_or(0)).unwrap_or(0);
        elements.saturating_mul(bits).div_ceil(8)
    }

    /// Reads what [`fmt::Display`] wrote.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let malformed = || Status::invalid_argument(format!("malformed array type {text:?}"));
        let (name, rest) = text.split_once('[').ok_or_else(malformed)?;
        let dims = rest.strip_suffix(']').ok_or_else(malformed)?;
        let dtype = DType::ALL
            .iter()
            .copied()
            .find(|dtype| dtype.numpy_name() == name)
            .ok_or_else(malformed)?;
        let dims: Vec<i64> = if dims.is_empty() {
            Vec::new()
        } else {
            dims.split(',')
                .map(|dim| dim.parse().map_err(|_| malformed()))
                .collect::<Result<_>>()?
        };
        Ok(Self::new(dtype, Shape::new(dims)?))
    }
}

impl fmt::Display for Aval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype.numpy_name(), self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trip() {
        for text in [
            "float32[16]",
            "bfloat16[]",
            "bool[2,3]",
            "float8_e4m3fn[0,7]",
        ] {
            assert_eq!(Aval::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "float32",
            "float32[",
            "float32[a]",
            "float33[1]",
            "float32[-1]",
        ] {
            assert!(Aval::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn byte_sizes() {
        for (text, bytes) in [("float32[16]", 64), ("int4[3]", 2), ("token[]", 0)] {
            assert_eq!(Aval::parse(text).unwrap().byte_size(), bytes, "{text}");
        }
    }
}
