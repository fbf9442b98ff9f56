//! Hermitian matrices: eigenvalues (`syevd`, `heevd`) and the reduction to a real tridiagonal matrix
//! (`sytrd`, `hetrd`).

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{
    ComputeEigenvectors, SelfAdjointEvdParams, self_adjoint_evd, self_adjoint_evd_scratch,
};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par, Spec};

use super::scalar::{Real, Scalar};
use super::scaling::Scale;
use super::view::View;
use super::{Triangle, one_based, reflector};

/// The Hermitian matrix whose values stand in a triangle, whole. Its diagonal is real.
fn whole<T: Scalar>(matrix: &View<'_, T>, triangle: Triangle) -> Vec<T> {
    let order = matrix.rows();
    let mut data = vec![T::ZERO; order * order];
    let mut target = View::new(&mut data, order, order);
    for col in 0..order {
        match triangle {
            Triangle::Lower => target.col_mut(col)[col..].copy_from_slice(&matrix.col(col)[col..]),
            Triangle::Upper => {
                target.col_mut(col)[..=col].copy_from_slice(&matrix.col(col)[..=col])
            }
        }
        let diagonal = T::from_re(matrix.at(col, col).re());
        target.set(col, col, diagonal);
    }
    target.complete_hermitian(triangle);
    data
}

/// Finds the eigenvalues of a Hermitian matrix, rising, and replaces it by the eigenvectors.
///
/// Reads one triangle only. Without `vectors`, the matrix stays as it was. Gives 0, or a positive
/// number if the method did not converge, which no finite matrix should cause.
pub(crate) fn eigen<T: Scalar>(
    matrix: &mut View<'_, T>,
    triangle: Triangle,
    values: &mut [T::Part],
    vectors: bool,
) -> i32 {
    let order = matrix.rows();
    if order == 0 {
        return 0;
    }
    let mut data = whole(matrix, triangle);
    let mut whole = View::new(&mut data, order, order);
    if !whole.is_finite() {
        return one_based(order);
    }
    let scale = Scale::apply(&mut whole);
    let mut diagonal = vec![T::ZERO; order];
    let compute = if vectors {
        ComputeEigenvectors::Yes
    } else {
        ComputeEigenvectors::No
    };
    let params: Spec<SelfAdjointEvdParams, T> = Spec::default();
    let mut buffer = MemBuffer::new(self_adjoint_evd_scratch::<T>(
        order,
        compute,
        Par::Seq,
        params,
    ));
    let outcome = self_adjoint_evd(
        whole.faer(),
        DiagMut::from_slice_mut(&mut diagonal),
        vectors.then(|| matrix.faer_mut()),
        Par::Seq,
        MemStack::new(&mut buffer),
        params,
    );
    for (value, diagonal) in values.iter_mut().zip(&diagonal) {
        *value = diagonal.re();
    }
    scale.undo(values);
    i32::from(outcome.is_err())
}

/// Reduces a Hermitian matrix to the real tridiagonal `Q^H A Q`.
///
/// Only one triangle is read and written: it gets the result, and the reflectors of `Q` beyond it.
pub(crate) fn tridiagonalize<T: Scalar>(
    matrix: &mut View<'_, T>,
    triangle: Triangle,
    diagonal: &mut [T::Part],
    off_diagonal: &mut [T::Part],
    tau: &mut [T],
) {
    let order = matrix.rows();
    let mut data = whole(matrix, triangle);
    if triangle == Triangle::Upper {
        // LAPACK starts at the last column then: the same steps on the matrix turned around.
        data.reverse();
    }
    let mut work = View::new(&mut data, order, order);
    let place = |position: usize, count: usize| match triangle {
        Triangle::Lower => position,
        Triangle::Upper => count - 1 - position,
    };
    let half = <T::Part as Real>::of(0.5);
    for col in 0..order.saturating_sub(1) {
        let tail = order - col - 1;
        let alpha = work.at(col + 1, col);
        let (beta, factor) = reflector::make(alpha, &mut work.col_mut(col)[col + 2..]);
        work.set(col + 1, col, T::from_re(beta));
        off_diagonal[place(col, order - 1)] = beta;
        tau[place(col, order - 1)] = factor;
        if factor == T::ZERO {
            continue;
        }
        let mut v = work.col(col)[col + 1..].to_vec();
        v[0] = T::ONE;
        let v = super::view::matrix(&v, tail, 1);
        let mut w = Mat::<T>::zeros(tail, 1);
        let mut rest = work.rest(col + 1, col + 1);
        matmul(&mut w, Accum::Replace, rest.faer(), v, factor, Par::Seq);
        let mut product = Mat::<T>::zeros(1, 1);
        matmul(
            &mut product,
            Accum::Replace,
            w.adjoint(),
            v,
            T::ONE,
            Par::Seq,
        );
        let correction = -(factor * product[(0, 0)]).scaled(half);
        let pair = Mat::from_fn(tail, 2, |row, which| match which {
            0 => v[(row, 0)],
            _ => w[(row, 0)] + correction * v[(row, 0)],
        });
        let other = pair.as_ref().reverse_cols();
        let rest = rest.faer_mut();
        matmul(
            rest,
            Accum::Add,
            pair.as_ref(),
            other.adjoint(),
            -T::ONE,
            Par::Seq,
        );
    }
    for position in 0..order {
        let value = work.at(position, position).re();
        diagonal[place(position, order)] = value;
        work.set(position, position, T::from_re(value));
    }
    for col in 0..order {
        for row in col..order {
            let (row_out, col_out) = (place(row, order), place(col, order));
            matrix.set(row_out, col_out, work.at(row, col));
        }
    }
}

#[cfg(test)]
mod tests;
