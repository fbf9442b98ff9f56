//! How far two arrays are apart.

use std::fmt;

use jax_api::{DType, HostArray, Result};

/// How far two arrays are apart.
#[derive(Debug)]
pub(crate) enum Difference {
    /// Of numbers that are rounded.
    Rounded {
        /// The largest error.
        absolute: f64,
        /// The largest error as a part of the expected value, or of 1 if that is more.
        scaled: f64,
    },
    /// Of elements that are equal or not: how many are not.
    Exact { different: usize, of: usize },
}

impl Difference {
    pub(crate) fn fits(&self, tolerance: f64) -> bool {
        match self {
            Self::Rounded { scaled, .. } => *scaled <= tolerance,
            Self::Exact { different, .. } => *different == 0,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rounded { absolute, scaled } => {
                write!(f, "largest error {absolute:.3e}, scaled {scaled:.3e}")
            }
            Self::Exact { different: 0, of } => write!(f, "all {of} elements equal"),
            Self::Exact { different, of } => write!(f, "{different} of {of} elements differ"),
        }
    }
}

/// What a type of 16 bits may be wrong by, and what others may.
pub(crate) const fn default_tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::BF16 | DType::F16 => 1e-2,
        _ => 1e-5,
    }
}

/// Compares two arrays of one type.
pub(crate) fn difference(found: &HostArray, expected: &HostArray) -> Result<Difference> {
    let (found_bytes, expected_bytes) = (found.bytes()?, expected.bytes()?);
    let (Some(found_numbers), Some(expected_numbers)) = (
        numbers(found.dtype(), found_bytes),
        numbers(expected.dtype(), expected_bytes),
    ) else {
        let item = found.dtype().host_byte_size().unwrap_or(1);
        let pairs = found_bytes.chunks(item).zip(expected_bytes.chunks(item));
        return Ok(Difference::Exact {
            different: pairs.filter(|(found, expected)| found != expected).count(),
            of: expected_bytes.len() / item,
        });
    };
    let (mut absolute, mut scaled) = (0.0_f64, 0.0_f64);
    for (found, expected) in found_numbers.iter().zip(&expected_numbers) {
        // Equal infinities, and two that are no numbers, agree. One that is none does not.
        let error = if found == expected || (found.is_nan() && expected.is_nan()) {
            0.0
        } else if found.is_finite() && expected.is_finite() {
            (found - expected).abs()
        } else {
            f64::INFINITY
        };
        absolute = absolute.max(error);
        scaled = scaled.max(error / expected.abs().max(1.0));
    }
    Ok(Difference::Rounded { absolute, scaled })
}

/// The parts of the elements as numbers; `None` for a type whose elements are not rounded.
fn numbers(dtype: DType, bytes: &[u8]) -> Option<Vec<f64>> {
    macro_rules! read {
        ($bytes:literal, $convert:expr) => {
            Some(bytes.as_chunks::<$bytes>().0.iter().map($convert).collect())
        };
    }
    match dtype {
        DType::F32 | DType::C64 => read!(4, |part| f64::from(f32::from_ne_bytes(*part))),
        DType::F64 | DType::C128 => read!(8, |part| f64::from_ne_bytes(*part)),
        DType::F16 => read!(2, |part| half::f16::from_ne_bytes(*part).to_f64()),
        DType::BF16 => read!(2, |part| half::bf16::from_ne_bytes(*part).to_f64()),
        _ => None,
    }
}
