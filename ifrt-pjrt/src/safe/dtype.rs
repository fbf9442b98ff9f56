//! Element types of the C API.
//!
//! A plugin looks an element type up in a table without checking it, so an unknown number crashes
//! the process. This table says which version knows which number.

use ifrt::dtype::DType;
use ifrt::{Result, Status};

/// The number of a dtype in the C API, and the minor version that brought it.
const TYPES: &[(DType, i32, i32)] = &[
    (DType::Pred, 1, 0),
    (DType::S8, 2, 0),
    (DType::S16, 3, 0),
    (DType::S32, 4, 0),
    (DType::S64, 5, 0),
    (DType::U8, 6, 0),
    (DType::U16, 7, 0),
    (DType::U32, 8, 0),
    (DType::U64, 9, 0),
    (DType::F16, 10, 0),
    (DType::F32, 11, 0),
    (DType::F64, 12, 0),
    (DType::BF16, 13, 0),
    (DType::C64, 14, 0),
    (DType::C128, 15, 0),
    (DType::F8E5M2, 16, 0),
    (DType::F8E4M3FN, 17, 0),
    (DType::F8E4M3B11FNUZ, 18, 0),
    (DType::F8E5M2FNUZ, 19, 0),
    (DType::F8E4M3FNUZ, 20, 0),
    (DType::S4, 21, 0),
    (DType::U4, 22, 0),
    (DType::Token, 23, 50),
    (DType::S2, 24, 0),
    (DType::U2, 25, 0),
    (DType::F8E4M3, 26, 55),
    (DType::F8E3M4, 27, 55),
    (DType::F8E8M0FNU, 28, 63),
    (DType::F4E2M1FN, 29, 63),
    (DType::S1, 30, 94),
    (DType::U1, 31, 94),
    (DType::F6E2M3FN, 32, 114),
    (DType::F6E3M2FN, 33, 114),
];

/// The number to give to a plugin of this minor version for data that is stored.
///
/// # Errors
/// INVALID_ARGUMENT for types that no buffer can be made of: a token has no data, and plugins abort
/// when asked to make one. UNIMPLEMENTED if the plugin is older than the type.
pub(crate) fn to_pjrt(dtype: DType, minor: i32) -> Result<i32> {
    if dtype == DType::Token {
        return Err(Status::invalid_argument(
            "no buffer can be made of tokens; pass an array of dtype pred and shape [0] for one",
        ));
    }
    match TYPES.iter().find(|(known, ..)| *known == dtype) {
        Some((_, number, since)) if *since <= minor => Ok(*number),
        Some((.., since)) => Err(Status::unimplemented(format!(
            "dtype {dtype} came with PJRT C API 0.{since}; this plugin has 0.{minor}"
        ))),
        None => Err(Status::invalid_argument(format!(
            "PJRT has no buffers of dtype {dtype}"
        ))),
    }
}

/// The dtype for a number from a plugin.
///
/// # Errors
/// INTERNAL for a number that stands for none.
pub(crate) fn from_pjrt(number: i32) -> Result<DType> {
    TYPES
        .iter()
        .find(|(_, known, _)| *known == number)
        .map(|(dtype, ..)| *dtype)
        .ok_or_else(|| Status::internal(format!("the plugin gave the unknown type {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ifrt::Code;

    #[test]
    fn numbers_are_dense_and_inverse() {
        for (position, (dtype, number, _)) in (1..).zip(TYPES) {
            assert_eq!(*number, position);
            assert_eq!(from_pjrt(*number).unwrap(), *dtype);
        }
        for unknown in [0, -1, 34, i32::MAX] {
            assert_eq!(from_pjrt(unknown).unwrap_err().code(), Code::Internal);
        }
    }

    #[test]
    fn every_dtype_has_an_answer() {
        for dtype in DType::ALL {
            let answer = to_pjrt(*dtype, i32::MAX);
            match dtype {
                DType::Token | DType::Opaque | DType::String => {
                    assert_eq!(answer.unwrap_err().code(), Code::InvalidArgument, "{dtype}");
                }
                _ => assert_eq!(from_pjrt(answer.unwrap()).unwrap(), *dtype),
            }
        }
    }

    #[test]
    fn older_plugins_never_see_newer_numbers() {
        for (dtype, before, since) in [
            (DType::F6E2M3FN, 113, 114),
            (DType::S1, 93, 94),
            (DType::F4E2M1FN, 62, 63),
            (DType::F8E3M4, 54, 55),
        ] {
            assert_eq!(
                to_pjrt(dtype, before).unwrap_err().code(),
                Code::Unimplemented,
                "{dtype}"
            );
            assert!(to_pjrt(dtype, since).is_ok(), "{dtype}");
        }
    }
}
