//! Elementary reflectors `H = I - tau v v^H` and blocks of them, as LAPACK stores them.
//!
//! The first element of `v` is 1 and not stored. `tau` is complex for complex types, which makes
//! the diagonal of the factor `R` real. `larfg`, `larft`, `larfb`.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};

use super::scalar::{Real, Scalar};
use super::view::View;

/// How often a vector is made longer: enough for the smallest number of every type.
const MAX_STEPS: usize = 20;

/// Makes the reflector whose adjoint maps `(alpha, x)` to `(beta, 0)`.
///
/// Writes `v` without its leading 1 over `x`; gives the real `beta` and `tau`.
pub(crate) fn make<T: Scalar>(alpha: T, x: &mut [T]) -> (T::Part, T) {
    let zero = <T::Part as Scalar>::ZERO;
    let norm = T::norm(x);
    if norm == zero && alpha.im() == zero {
        return (alpha.re(), T::ZERO);
    }
    let mut alpha = alpha;
    let beta_of =
        |alpha: T, norm: T::Part| -(alpha.modulus().hypotenuse(norm).with_sign_of(alpha.re()));
    let mut beta = beta_of(alpha, norm);
    let smallest = T::Part::SAFE_MIN / T::Part::EPSILON;
    let mut steps = 0;
    if beta.magnitude() < smallest {
        // A vector this short loses digits: it is made longer, and the result shorter again.
        let longer = <T::Part as Scalar>::ONE / smallest;
        while beta.magnitude() < smallest && steps < MAX_STEPS {
            steps += 1;
            x.iter_mut()
                .for_each(|element| *element = element.scaled(longer));
            alpha = alpha.scaled(longer);
            beta *= longer;
        }
        beta = beta_of(alpha, T::norm(x));
    }
    let tau = T::from_parts((beta - alpha.re()) / beta, -alpha.im() / beta);
    let scale = T::ONE.divided_by(alpha - T::from_re(beta));
    x.iter_mut().for_each(|element| *element *= scale);
    for _ in 0..steps {
        beta *= smallest;
    }
    (beta, tau)
}

/// `matrix -= scale left right^H` for two columns.
pub(crate) fn rank_one<T: Scalar>(
    matrix: MatMut<'_, T>,
    left: MatRef<'_, T>,
    right: MatRef<'_, T>,
    scale: T,
) {
    matmul(matrix, Accum::Add, left, right.adjoint(), -scale, Par::Seq);
}

/// Where a reflector acts on a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// `Q C`.
    Left,
    /// `C Q`.
    Right,
}

/// Whether a reflector or its adjoint acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// `H`.
    Plain,
    /// `H^H`.
    Adjoint,
}

/// Applies one reflector with the whole vector `v` to a matrix.
pub(crate) fn apply_one<T: Scalar>(matrix: &mut View<'_, T>, v: &[T], tau: T, side: Side) {
    if tau == T::ZERO || matrix.rows() == 0 || matrix.cols() == 0 {
        return;
    }
    let v = MatRef::from_column_major_slice(v, v.len(), 1);
    match side {
        Side::Left => {
            let mut image = Mat::<T>::zeros(matrix.cols(), 1);
            matmul(
                &mut image,
                Accum::Replace,
                matrix.faer().adjoint(),
                v,
                T::ONE,
                Par::Seq,
            );
            rank_one(matrix.faer_mut(), v, image.as_ref(), tau);
        }
        Side::Right => {
            let mut image = Mat::<T>::zeros(matrix.rows(), 1);
            matmul(
                &mut image,
                Accum::Replace,
                matrix.faer(),
                v,
                T::ONE,
                Par::Seq,
            );
            rank_one(matrix.faer_mut(), image.as_ref(), v, tau);
        }
    }
}

/// The product of some reflectors, `I - V T V^H`.
#[derive(Debug)]
pub(crate) struct Block<T> {
    v: Mat<T>,
    t: Mat<T>,
}

impl<T: Scalar> Block<T> {
    /// The block of the reflectors that stand below the diagonal of `panel`.
    pub(crate) fn new(panel: MatRef<'_, T>, tau: &[T]) -> Self {
        let (rows, count) = (panel.nrows(), tau.len());
        let v = Mat::from_fn(rows, count, |row, col| match row.cmp(&col) {
            std::cmp::Ordering::Less => T::ZERO,
            std::cmp::Ordering::Equal => T::ONE,
            std::cmp::Ordering::Greater => panel[(row, col)],
        });
        let mut products = Mat::<T>::zeros(count, count);
        matmul(
            &mut products,
            Accum::Replace,
            v.adjoint(),
            &v,
            T::ONE,
            Par::Seq,
        );
        let mut t = Mat::<T>::zeros(count, count);
        for col in 0..count {
            // T[..col, col] = -tau T[..col, ..col] (V^H v)[..col]
            for row in 0..col {
                let mut sum = T::ZERO;
                for inner in row..col {
                    sum += t[(row, inner)] * products[(inner, col)];
                }
                t[(row, col)] = -(tau[col] * sum);
            }
            t[(col, col)] = tau[col];
        }
        Self { v, t }
    }

    /// Applies the product, or its adjoint, to a matrix.
    pub(crate) fn apply(&self, mut matrix: MatMut<'_, T>, side: Side, op: Op) {
        let count = self.t.ncols();
        match side {
            Side::Left => {
                let cols = matrix.ncols();
                let (mut first, mut second) = (Mat::zeros(count, cols), Mat::zeros(count, cols));
                let (v, c) = (self.v.as_ref(), matrix.as_ref());
                matmul(&mut first, Accum::Replace, v.adjoint(), c, T::ONE, Par::Seq);
                match op {
                    Op::Plain => {
                        matmul(
                            &mut second,
                            Accum::Replace,
                            &self.t,
                            &first,
                            T::ONE,
                            Par::Seq,
                        );
                    }
                    Op::Adjoint => {
                        let t = self.t.adjoint();
                        matmul(&mut second, Accum::Replace, t, &first, T::ONE, Par::Seq);
                    }
                }
                matmul(matrix.as_mut(), Accum::Add, v, &second, -T::ONE, Par::Seq);
            }
            Side::Right => {
                let rows = matrix.nrows();
                let (mut first, mut second) = (Mat::zeros(rows, count), Mat::zeros(rows, count));
                let (v, c) = (self.v.as_ref(), matrix.as_ref());
                matmul(&mut first, Accum::Replace, c, v, T::ONE, Par::Seq);
                match op {
                    Op::Plain => {
                        matmul(
                            &mut second,
                            Accum::Replace,
                            &first,
                            &self.t,
                            T::ONE,
                            Par::Seq,
                        );
                    }
                    Op::Adjoint => {
                        let t = self.t.adjoint();
                        matmul(&mut second, Accum::Replace, &first, t, T::ONE, Par::Seq);
                    }
                }
                matmul(
                    matrix.as_mut(),
                    Accum::Add,
                    &second,
                    v.adjoint(),
                    -T::ONE,
                    Par::Seq,
                );
            }
        }
    }
}
