//! [`Element`]: the Rust types that can be elements of arrays.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
#[cfg(feature = "half")]
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
#[cfg(feature = "half")]
use half::vec::{HalfBitsVecExt, HalfFloatVecExt};
#[cfg(feature = "half")]
use half::{bf16, f16};
use ifrt::DType;

/// A complex number.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[allow(clippy::exhaustive_structs, reason = "a number has these two parts")]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

impl<T: fmt::Display + PartialOrd + Default> fmt::Display for Complex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.im < T::default() { "" } else { "+" };
        write!(f, "{}{sign}{}j", self.re, self.im)
    }
}

/// A Rust type that can be the element of an array. Other element types of JAX (4-bit integers,
/// 8-bit floats) are moved as bytes, see [`crate::HostArray`].
///
/// The trait is sealed.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The element type in JAX.
    const DTYPE: DType;
}

pub(crate) mod sealed {
    use super::{Bytes, Cow};

    #[allow(unnameable_types, reason = "nobody else is to implement it")]
    pub trait Sealed: Sized {
        /// The memory of the elements, in the byte order of the machine.
        fn as_bytes(elements: &[Self]) -> Cow<'_, [u8]>;

        /// The same, with the memory handed over.
        fn into_bytes(elements: Vec<Self>) -> Bytes;

        /// Elements from their memory. What is left over at the end is ignored.
        fn from_bytes(bytes: &[u8]) -> Vec<Self>;

        /// Elements in their memory; `None` if it is not aligned for them, or if not all bits are
        /// elements.
        fn view(bytes: &[u8]) -> Option<&[Self]>;
    }
}

/// A vector whose memory is seen as bytes.
struct Owned<T>(Vec<T>);

impl<T: bytemuck::NoUninit> AsRef<[u8]> for Owned<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

macro_rules! plain {
    ($($type:ty = $dtype:ident;)*) => {
        $(
            impl Element for $type {
                const DTYPE: DType = DType::$dtype;
            }

            impl sealed::Sealed for $type {
                fn as_bytes(elements: &[Self]) -> Cow<'_, [u8]> {
                    Cow::Borrowed(bytemuck::cast_slice(elements))
                }

                fn into_bytes(elements: Vec<Self>) -> Bytes {
                    Bytes::from_owner(Owned(elements))
                }

                fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                    let whole = bytes.len() - bytes.len() % size_of::<Self>();
                    bytemuck::pod_collect_to_vec(&bytes[..whole])
                }

                fn view(bytes: &[u8]) -> Option<&[Self]> {
                    bytemuck::try_cast_slice(bytes).ok()
                }
            }
        )*
    };
}

plain! {
    u8 = U8;
    u16 = U16;
    u32 = U32;
    u64 = U64;
    i8 = S8;
    i16 = S16;
    i32 = S32;
    i64 = S64;
    f32 = F32;
    f64 = F64;
}

impl Element for bool {
    const DTYPE: DType = DType::Pred;
}

impl sealed::Sealed for bool {
    fn as_bytes(elements: &[Self]) -> Cow<'_, [u8]> {
        Cow::Borrowed(bytemuck::cast_slice(elements))
    }

    fn into_bytes(elements: Vec<Self>) -> Bytes {
        Bytes::from_owner(Owned(elements))
    }

    fn from_bytes(bytes: &[u8]) -> Vec<Self> {
        bytes.iter().map(|byte| *byte != 0).collect()
    }

    fn view(_: &[u8]) -> Option<&[Self]> {
        None
    }
}

#[cfg(feature = "half")]
macro_rules! half_precision {
    ($($type:ty = $dtype:ident;)*) => {
        $(
            impl Element for $type {
                const DTYPE: DType = DType::$dtype;
            }

            impl sealed::Sealed for $type {
                fn as_bytes(elements: &[Self]) -> Cow<'_, [u8]> {
                    Cow::Borrowed(bytemuck::cast_slice(elements.reinterpret_cast()))
                }

                fn into_bytes(elements: Vec<Self>) -> Bytes {
                    u16::into_bytes(elements.reinterpret_into())
                }

                fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                    u16::from_bytes(bytes).reinterpret_into()
                }

                fn view(bytes: &[u8]) -> Option<&[Self]> {
                    u16::view(bytes).map(<[u16]>::reinterpret_cast)
                }
            }
        )*
    };
}

#[cfg(feature = "half")]
half_precision! {
    f16 = F16;
    bf16 = BF16;
}

macro_rules! complex {
    ($($part:ty = $dtype:ident;)*) => {
        $(
            impl Element for Complex<$part> {
                const DTYPE: DType = DType::$dtype;
            }

            impl sealed::Sealed for Complex<$part> {
                fn as_bytes(elements: &[Self]) -> Cow<'_, [u8]> {
                    let parts = elements.iter().flat_map(|number| [number.re, number.im]);
                    Cow::Owned(parts.flat_map(<$part>::to_ne_bytes).collect())
                }

                fn into_bytes(elements: Vec<Self>) -> Bytes {
                    Self::as_bytes(&elements).into_owned().into()
                }

                fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                    let (parts, _) = bytes.as_chunks::<{ size_of::<$part>() }>();
                    let (pairs, _) = parts.as_chunks::<2>();
                    let number = |[re, im]: &[[u8; size_of::<$part>()]; 2]| Self {
                        re: <$part>::from_ne_bytes(*re),
                        im: <$part>::from_ne_bytes(*im),
                    };
                    pairs.iter().map(number).collect()
                }

                fn view(_: &[u8]) -> Option<&[Self]> {
                    None
                }
            }
        )*
    };
}

complex! {
    f32 = C64;
    f64 = C128;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Element + PartialEq + fmt::Debug>(elements: &[T], size: usize) {
        let bytes = T::as_bytes(elements).into_owned();
        assert_eq!(bytes.len(), elements.len() * size);
        assert_eq!(T::DTYPE.byte_size(), Some(size));
        assert_eq!(T::from_bytes(&bytes), elements);
        assert!(T::view(&bytes).is_none_or(|view| view == elements));
        assert_eq!(T::into_bytes(elements.to_vec()), bytes);
        // Memory from elsewhere is not aligned for the type, and may be cut off.
        let mut shifted = vec![0];
        shifted.extend_from_slice(&bytes);
        assert_eq!(T::from_bytes(&shifted[1..]), elements);
        if size > 1 && !elements.is_empty() {
            assert_eq!(
                T::from_bytes(&bytes[..bytes.len() - 1]),
                elements[..elements.len() - 1]
            );
        }
    }

    #[test]
    fn memory_of_every_type() {
        round_trip::<u8>(&[1, 2, 255], 1);
        round_trip::<u16>(&[1, 0xfffe], 2);
        round_trip::<u32>(&[1, u32::MAX], 4);
        round_trip::<u64>(&[1, u64::MAX], 8);
        round_trip::<i8>(&[-1, 2], 1);
        round_trip::<i16>(&[-1, 2], 2);
        round_trip::<i32>(&[-1, 2], 4);
        round_trip::<i64>(&[-1, 2], 8);
        #[cfg(feature = "half")]
        round_trip(&[f16::from_f32(1.5), f16::MAX], 2);
        #[cfg(feature = "half")]
        round_trip(&[bf16::from_f32(1.5), bf16::MAX], 2);
        round_trip(&[1.5_f32, f32::MIN], 4);
        round_trip(&[1.5_f64, f64::MIN], 8);
        round_trip(&[true, false, true], 1);
        round_trip(
            &[
                Complex {
                    re: 1.0_f32,
                    im: -2.0,
                },
                Complex::default(),
            ],
            8,
        );
        round_trip(
            &[Complex {
                re: 1.0_f64,
                im: -2.0,
            }],
            16,
        );
        round_trip::<f32>(&[], 4);
    }

    #[test]
    fn complex_numbers_print_like_python() {
        assert_eq!(Complex { re: 1.5, im: -2.0 }.to_string(), "1.5-2j");
        assert_eq!(Complex { re: 0.0, im: 1.0 }.to_string(), "0+1j");
    }
}
