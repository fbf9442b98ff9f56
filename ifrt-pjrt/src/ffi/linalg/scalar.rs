//! The four element types of LAPACK: [`Scalar`], and the two real ones: [`Real`].

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use faer::traits::{ComplexField, RealField};
use faer::{MatRef, c32, c64};

/// An element of a matrix: `f32`, `f64`, `c32` or `c64`.
pub(crate) trait Scalar:
    ComplexField
    + Copy
    + Debug
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    /// The type of its parts. It is the same as `faer`'s, which does not know of [`Real`].
    type Part: Real;

    /// True for complex types.
    const IS_COMPLEX: bool;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// A number from its parts; a real type drops the imaginary one.
    fn from_parts(re: Self::Part, im: Self::Part) -> Self;
    /// The real part.
    fn re(self) -> Self::Part;
    /// The imaginary part.
    fn im(self) -> Self::Part;
    /// The Euclidean norm of a vector, without overflow on the way.
    fn norm(vector: &[Self]) -> Self::Part;

    /// A real number as an element.
    fn from_re(re: Self::Part) -> Self {
        Self::from_parts(re, <Self::Part as Scalar>::ZERO)
    }

    /// The conjugate.
    fn conjugate(self) -> Self {
        Self::from_parts(self.re(), -self.im())
    }

    /// The absolute value, without overflow on the way.
    fn modulus(self) -> Self::Part {
        self.re().hypotenuse(self.im())
    }

    /// The sum of the absolute values of the parts, by which LAPACK picks pivots.
    fn size1(self) -> Self::Part {
        self.re().magnitude() + self.im().magnitude()
    }

    /// The number times a real one.
    fn scaled(self, by: Self::Part) -> Self {
        Self::from_parts(self.re() * by, self.im() * by)
    }

    /// True unless a part is infinite or not a number.
    fn finite(self) -> bool {
        self.re().is_a_number() && self.im().is_a_number()
    }

    /// The quotient, without overflow on the way.
    fn divided_by(self, divisor: Self) -> Self {
        if !Self::IS_COMPLEX {
            return Self::from_re(self.re() / divisor.re());
        }
        let (a, b, c, d) = (self.re(), self.im(), divisor.re(), divisor.im());
        if c.magnitude() >= d.magnitude() {
            let ratio = d / c;
            let denominator = c + d * ratio;
            Self::from_parts((a + b * ratio) / denominator, (b - a * ratio) / denominator)
        } else {
            let ratio = c / d;
            let denominator = c * ratio + d;
            Self::from_parts((a * ratio + b) / denominator, (b * ratio - a) / denominator)
        }
    }
}

/// A real element: `f32` or `f64`.
pub(crate) trait Real:
    Scalar<Part = Self> + RealField + PartialOrd + Div<Output = Self> + DivAssign
{
    /// The distance from 1 to the next number.
    const EPSILON: Self;
    /// The smallest number whose reciprocal does not overflow.
    const SAFE_MIN: Self;

    /// The nearest number of this type.
    fn of(value: f64) -> Self;
    /// The absolute value.
    fn magnitude(self) -> Self;
    /// The square root.
    fn root(self) -> Self;
    /// The root of the sum of both squares, without overflow on the way.
    fn hypotenuse(self, other: Self) -> Self;
    /// The magnitude of this number with the sign of `sign`.
    fn with_sign_of(self, sign: Self) -> Self;
    /// Two to the power of `exponent`.
    fn power_of_two(exponent: i32) -> Self;
    /// True unless infinite or not a number.
    fn is_a_number(self) -> bool;

    /// The larger one; the other if one is not a number.
    fn larger(self, other: Self) -> Self {
        if other > self { other } else { self }
    }

    /// The smaller one; the other if one is not a number.
    fn smaller(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
}

macro_rules! real {
    ($($real:ident, $complex:ident;)*) => {$(
        impl Scalar for $real {
            type Part = Self;

            const IS_COMPLEX: bool = false;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            fn from_parts(re: $real, _im: $real) -> Self {
                re
            }

            fn re(self) -> $real {
                self
            }

            fn im(self) -> $real {
                0.0
            }

            fn norm(vector: &[Self]) -> $real {
                if vector.is_empty() {
                    return 0.0;
                }
                MatRef::from_column_major_slice(vector, vector.len(), 1).norm_l2()
            }

            fn modulus(self) -> $real {
                self.abs()
            }
        }

        impl Scalar for $complex {
            type Part = $real;

            const IS_COMPLEX: bool = true;
            const ZERO: Self = Self { re: 0.0, im: 0.0 };
            const ONE: Self = Self { re: 1.0, im: 0.0 };

            fn from_parts(re: $real, im: $real) -> Self {
                Self { re, im }
            }

            fn re(self) -> $real {
                self.re
            }

            fn im(self) -> $real {
                self.im
            }

            fn norm(vector: &[Self]) -> $real {
                if vector.is_empty() {
                    return 0.0;
                }
                MatRef::from_column_major_slice(vector, vector.len(), 1).norm_l2()
            }
        }

        impl Real for $real {
            const EPSILON: Self = $real::EPSILON;
            const SAFE_MIN: Self = $real::MIN_POSITIVE;

            #[allow(
                clippy::cast_possible_truncation,
                reason = "the nearest number of the type is what is asked for"
            )]
            fn of(value: f64) -> Self {
                value as Self
            }

            fn magnitude(self) -> Self {
                self.abs()
            }

            fn root(self) -> Self {
                self.sqrt()
            }

            fn hypotenuse(self, other: Self) -> Self {
                self.hypot(other)
            }

            fn with_sign_of(self, sign: Self) -> Self {
                self.copysign(sign)
            }

            fn power_of_two(exponent: i32) -> Self {
                Self::powi(2.0, exponent)
            }

            fn is_a_number(self) -> bool {
                self.is_finite()
            }
        }
    )*};
}

real! {
    f32, c32;
    f64, c64;
}
