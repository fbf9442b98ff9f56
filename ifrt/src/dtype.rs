//! [`DType`]: the element type of an array.
//!
//! Two numberings exist outside: the XLA `PrimitiveType` and the kind of `DTypeProto`. They agree
//! except for the newest types. The one table below holds both.
//!
//! # Mirrors
//! `xla/python/ifrt/dtype.h`.

use std::fmt;

use crate::status::{Result, Status};

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident = $primitive:literal, $proto:literal, $bits:expr, $name:literal;)*) => {
        /// The element type of an array.
        ///
        /// The discriminant is XLA's `PrimitiveType` number; [`DType::String`] is not an XLA type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(i32)]
        #[allow(clippy::exhaustive_enums, reason = "closed by an outside standard")]
        pub enum DType {
            $($(#[$doc])* $variant = $primitive,)*
        }

        impl DType {
            /// Every type, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The size of an element in bits; `None` for token, opaque and string.
            pub const fn bit_size(self) -> Option<usize> {
                match self {
                    $(Self::$variant => $bits,)*
                }
            }

            /// The number of the kind in `DTypeProto`.
            pub const fn to_proto_kind(self) -> i32 {
                match self {
                    $(Self::$variant => $proto,)*
                }
            }

            /// The name that XLA uses in HLO text, for example `f32`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            const fn try_from_proto_kind(kind: i32) -> Option<Self> {
                match kind {
                    $($proto => Some(Self::$variant),)*
                    _ => None,
                }
            }

            const fn try_from_primitive_type(number: i32) -> Option<Self> {
                match number {
                    $($primitive => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

dtypes! {
    /// Boolean, one byte on the host.
    Pred = 1, 1, Some(8), "pred";
    /// Signed, 1 bit.
    S1 = 30, 32, Some(1), "s1";
    /// Signed, 2 bits.
    S2 = 26, 26, Some(2), "s2";
    /// Signed, 4 bits.
    S4 = 21, 21, Some(4), "s4";
    /// Signed, 8 bits.
    S8 = 2, 2, Some(8), "s8";
    /// Signed, 16 bits.
    S16 = 3, 3, Some(16), "s16";
    /// Signed, 32 bits.
    S32 = 4, 4, Some(32), "s32";
    /// Signed, 64 bits.
    S64 = 5, 5, Some(64), "s64";
    /// Unsigned, 1 bit.
    U1 = 31, 33, Some(1), "u1";
    /// Unsigned, 2 bits.
    U2 = 27, 27, Some(2), "u2";
    /// Unsigned, 4 bits.
    U4 = 22, 22, Some(4), "u4";
    /// Unsigned, 8 bits.
    U8 = 6, 6, Some(8), "u8";
    /// Unsigned, 16 bits.
    U16 = 7, 7, Some(16), "u16";
    /// Unsigned, 32 bits.
    U32 = 8, 8, Some(32), "u32";
    /// Unsigned, 64 bits.
    U64 = 9, 9, Some(64), "u64";
    /// IEEE half precision.
    F16 = 10, 10, Some(16), "f16";
    /// IEEE single precision.
    F32 = 11, 11, Some(32), "f32";
    /// IEEE double precision.
    F64 = 12, 12, Some(64), "f64";
    /// bfloat16: the upper half of a single.
    BF16 = 16, 16, Some(16), "bf16";
    /// Complex of two singles.
    C64 = 15, 15, Some(64), "c64";
    /// Complex of two doubles.
    C128 = 18, 18, Some(128), "c128";
    /// 4-bit float, 2 exponent bits, finite.
    F4E2M1FN = 32, 30, Some(4), "f4e2m1fn";
    /// 6-bit float, 2 exponent bits, finite.
    F6E2M3FN = 36, 34, Some(6), "f6e2m3fn";
    /// 6-bit float, 3 exponent bits, finite.
    F6E3M2FN = 35, 35, Some(6), "f6e3m2fn";
    /// 8-bit float, 3 exponent bits.
    F8E3M4 = 29, 29, Some(8), "f8e3m4";
    /// 8-bit float, 4 exponent bits.
    F8E4M3 = 28, 28, Some(8), "f8e4m3";
    /// 8-bit float, 4 exponent bits, finite.
    F8E4M3FN = 20, 20, Some(8), "f8e4m3fn";
    /// 8-bit float, 4 exponent bits, bias 11, no negative zero.
    F8E4M3B11FNUZ = 23, 23, Some(8), "f8e4m3b11fnuz";
    /// 8-bit float, 4 exponent bits, no negative zero.
    F8E4M3FNUZ = 25, 25, Some(8), "f8e4m3fnuz";
    /// 8-bit float, 5 exponent bits.
    F8E5M2 = 19, 19, Some(8), "f8e5m2";
    /// 8-bit float, 5 exponent bits, no negative zero.
    F8E5M2FNUZ = 24, 24, Some(8), "f8e5m2fnuz";
    /// 8-bit power of two.
    F8E8M0FNU = 33, 31, Some(8), "f8e8m0fnu";
    /// An ordering token: no data.
    Token = 17, 17, None, "token";
    /// A value that only the runtime understands.
    Opaque = 14, 14, None, "opaque";
    /// Byte strings, kept by the host.
    String = 99, 99, None, "string";
}

impl DType {
    /// The size of an element in bytes; `None` for types below a byte and for those without a size.
    pub const fn byte_size(self) -> Option<usize> {
        match self.bit_size() {
            Some(bits) if bits >= 8 => Some(bits / 8),
            _ => None,
        }
    }

    /// The size in bytes that an element takes in a host buffer: types below a byte take a whole
    /// one each. `None` for token, opaque and string.
    pub const fn host_byte_size(self) -> Option<usize> {
        match self.bit_size() {
            Some(bits) if bits >= 8 => Some(bits / 8),
            Some(_) => Some(1),
            None => None,
        }
    }

    /// True for types with fewer than eight bits.
    pub const fn is_sub_byte(self) -> bool {
        matches!(self.bit_size(), Some(bits) if bits < 8)
    }

    /// XLA's `PrimitiveType` number.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for [`DType::String`], which XLA does not know.
    pub fn to_primitive_type(self) -> Result<i32> {
        match self {
            Self::String => Err(Status::invalid_argument(
                "dtype string has no XLA primitive type",
            )),
            other => Ok(other as i32),
        }
    }

    /// The type for XLA's `PrimitiveType` number.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a number that stands for no element type.
    pub fn from_primitive_type(number: i32) -> Result<Self> {
        Self::try_from_primitive_type(number)
            .filter(|dtype| *dtype != Self::String)
            .ok_or_else(|| Status::invalid_argument(format!("unknown XLA primitive type {number}")))
    }

    /// The type for a kind of `DTypeProto`.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an unknown kind, which would otherwise pass silently as invalid.
    pub fn from_proto_kind(kind: i32) -> Result<Self> {
        Self::try_from_proto_kind(kind)
            .ok_or_else(|| Status::invalid_argument(format!("unknown dtype kind {kind}")))
    }

    /// The name that JAX and NumPy use, for example `float32`.
    pub const fn numpy_name(self) -> &'static str {
        match self {
            Self::Pred => "bool",
            Self::S1 => "int1",
            Self::S2 => "int2",
            Self::S4 => "int4",
            Self::S8 => "int8",
            Self::S16 => "int16",
            Self::S32 => "int32",
            Self::S64 => "int64",
            Self::U1 => "uint1",
            Self::U2 => "uint2",
            Self::U4 => "uint4",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::BF16 => "bfloat16",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
            Self::F4E2M1FN => "float4_e2m1fn",
            Self::F6E2M3FN => "float6_e2m3fn",
            Self::F6E3M2FN => "float6_e3m2fn",
            Self::F8E3M4 => "float8_e3m4",
            Self::F8E4M3 => "float8_e4m3",
            Self::F8E4M3FN => "float8_e4m3fn",
            Self::F8E4M3B11FNUZ => "float8_e4m3b11fnuz",
            Self::F8E4M3FNUZ => "float8_e4m3fnuz",
            Self::F8E5M2 => "float8_e5m2",
            Self::F8E5M2FNUZ => "float8_e5m2fnuz",
            Self::F8E8M0FNU => "float8_e8m0fnu",
            Self::Token => "token",
            Self::Opaque => "opaque",
            Self::String => "string",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn both_numberings_are_injective_and_inverse() {
        let mut protos = HashSet::new();
        let mut names = HashSet::new();
        for &dtype in DType::ALL {
            assert!(protos.insert(dtype.to_proto_kind()), "{dtype}");
            assert!(names.insert(dtype.numpy_name()), "{dtype}");
            assert_eq!(
                DType::from_proto_kind(dtype.to_proto_kind()).unwrap(),
                dtype
            );
            if dtype != DType::String {
                let number = dtype.to_primitive_type().unwrap();
                assert_eq!(DType::from_primitive_type(number).unwrap(), dtype);
            }
        }
        for unknown in [0, -1, 13, 34, 1000] {
            assert!(DType::from_primitive_type(unknown).is_err(), "{unknown}");
        }
        for unknown in [0, -1, 13, 36, 1000] {
            assert!(DType::from_proto_kind(unknown).is_err(), "{unknown}");
        }
        assert!(DType::String.to_primitive_type().is_err());
        assert!(DType::from_primitive_type(99).is_err());
    }

    #[test]
    fn the_newest_types_differ_between_the_numberings() {
        for (dtype, primitive, proto) in [
            (DType::S1, 30, 32),
            (DType::U1, 31, 33),
            (DType::F4E2M1FN, 32, 30),
            (DType::F8E8M0FNU, 33, 31),
            (DType::F6E2M3FN, 36, 34),
            (DType::F6E3M2FN, 35, 35),
        ] {
            assert_eq!((dtype as i32, dtype.to_proto_kind()), (primitive, proto));
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(DType::S4.byte_size(), None);
        assert_eq!(DType::S4.host_byte_size(), Some(1));
        assert_eq!(DType::C128.byte_size(), Some(16));
        assert_eq!(DType::Token.host_byte_size(), None);
        assert!(DType::F6E2M3FN.is_sub_byte() && !DType::Pred.is_sub_byte());
    }
}
