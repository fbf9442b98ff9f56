//! What the tests of all routines need: random matrices, products, comparisons, all four types.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};

use super::scalar::{Real, Scalar};

/// Runs a generic test for each of the four types.
macro_rules! for_each_type {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        mod $name {
            $(#[$meta])*
            #[test]
            fn f32() {
                super::$name::<f32>();
            }

            #[test]
            fn f64() {
                super::$name::<f64>();
            }

            #[test]
            fn c32() {
                super::$name::<faer::c32>();
            }

            #[test]
            fn c64() {
                super::$name::<faer::c64>();
            }
        }
    )*};
}
pub(crate) use for_each_type;

/// Shapes of all kinds: empty, tiny, tall, wide, larger than every block.
pub(crate) const SHAPES: [(usize, usize); 16] = [
    (0, 0),
    (0, 3),
    (3, 0),
    (1, 1),
    (1, 5),
    (5, 1),
    (2, 2),
    (3, 3),
    (4, 7),
    (7, 4),
    (16, 16),
    (33, 20),
    (20, 33),
    (40, 40),
    (130, 70),
    (70, 130),
];

/// Orders of square matrices.
pub(crate) const ORDERS: [usize; 11] = [0, 1, 2, 3, 4, 5, 8, 17, 33, 65, 140];

/// A small generator: the same numbers on every machine.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // 53 bits, from -1 to 1.
        f64::from(u32::try_from(z >> 32).unwrap()) / f64::from(u32::MAX) * 2.0 - 1.0
    }

    pub(crate) fn scalar<T: Scalar>(&mut self) -> T {
        let (re, im) = (self.next(), self.next());
        T::from_parts(<T::Part as Real>::of(re), <T::Part as Real>::of(im))
    }

    pub(crate) fn matrix<T: Scalar>(&mut self, rows: usize, cols: usize) -> Vec<T> {
        (0..rows * cols).map(|_| self.scalar()).collect()
    }

    /// A Hermitian matrix; positive definite with a `shift` of its order or more.
    pub(crate) fn hermitian<T: Scalar>(&mut self, order: usize, shift: usize) -> Vec<T> {
        let mut data = self.matrix::<T>(order, order);
        for col in 0..order {
            for row in 0..=col {
                data[col + row * order] = data[row + col * order].conjugate();
            }
            let shift = <T::Part as Real>::of(f64::from(u32::try_from(2 * shift).unwrap()));
            data[col + col * order] = T::from_re(data[col + col * order].re() + shift);
        }
        data
    }
}

pub(crate) fn mat<T: Scalar>(data: &[T], rows: usize, cols: usize) -> Mat<T> {
    super::view::matrix(data, rows, cols).to_owned()
}

pub(crate) fn times<T: Scalar>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Mat<T> {
    let mut product = Mat::<T>::zeros(a.nrows(), b.ncols());
    matmul(&mut product, Accum::Replace, a, b, T::ONE, Par::Seq);
    product
}

/// The adjoint as a matrix of its own.
pub(crate) fn adjoint<T: Scalar>(a: MatRef<'_, T>) -> Mat<T> {
    Mat::from_fn(a.ncols(), a.nrows(), |row, col| a[(col, row)].conjugate())
}

pub(crate) fn diagonal<T: Scalar>(values: &[T::Part]) -> Mat<T> {
    Mat::from_fn(values.len(), values.len(), |row, col| {
        if row == col {
            T::from_re(values[row])
        } else {
            T::ZERO
        }
    })
}

fn largest<T: Scalar>(a: MatRef<'_, T>) -> f64 {
    let mut largest = 0.0;
    for col in 0..a.ncols() {
        for row in 0..a.nrows() {
            let size = to_f64(a[(row, col)].modulus());
            assert!(!size.is_nan(), "an element is not a number");
            largest = f64::max(largest, size);
        }
    }
    largest
}

/// The value of a real number, for comparisons.
pub(crate) fn to_f64<R: Real>(value: R) -> f64 {
    format!("{value:?}").parse().unwrap()
}

/// Asserts that two matrices differ by no more than rounding, with some room.
#[track_caller]
pub(crate) fn assert_close<T: Scalar>(actual: MatRef<'_, T>, expected: MatRef<'_, T>, what: &str) {
    assert_eq!(actual.shape(), expected.shape(), "{what}");
    let difference = Mat::from_fn(actual.nrows(), actual.ncols(), |row, col| {
        actual[(row, col)] - expected[(row, col)]
    });
    let size = f64::from(u32::try_from(actual.nrows().max(actual.ncols()).max(4)).unwrap());
    let scale = largest(expected).max(f64::MIN_POSITIVE);
    let limit = 16.0 * size * to_f64(T::Part::EPSILON) * scale;
    let error = largest(difference.as_ref());
    assert!(
        error <= limit,
        "{what}: off by {error:e}, allowed are {limit:e}"
    );
}

/// Asserts that the columns are orthonormal.
#[track_caller]
pub(crate) fn assert_orthonormal<T: Scalar>(q: MatRef<'_, T>, what: &str) {
    let products = times(adjoint(q).as_ref(), q);
    let identity = Mat::<T>::identity(q.ncols(), q.ncols());
    assert_close(products.as_ref(), identity.as_ref(), what);
}

/// The part of a matrix on and above a diagonal.
pub(crate) fn upper<T: Scalar>(a: MatRef<'_, T>, rows: usize) -> Mat<T> {
    Mat::from_fn(rows, a.ncols(), |row, col| {
        if row <= col { a[(row, col)] } else { T::ZERO }
    })
}

/// Numbers that must neither hang nor panic a routine.
pub(crate) fn poisons<T: Scalar>() -> [T; 3] {
    let one = <T::Part as Scalar>::ONE;
    let zero = <T::Part as Scalar>::ZERO;
    let infinity = one / zero;
    [
        T::from_re(infinity * zero),
        T::from_re(infinity),
        T::from_re(-infinity),
    ]
}
