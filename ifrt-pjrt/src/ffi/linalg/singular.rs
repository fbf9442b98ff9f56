//! Singular values and vectors: `gesdd` and `gesvd`, which differ in method only.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::svd::{ComputeSvdVectors, SvdParams, svd, svd_scratch};
use faer::{Mat, Par, Spec};

use super::scalar::Scalar;
use super::scaling::Scale;
use super::view::View;

/// What LAPACK answers for a matrix with elements that are no numbers.
const NOT_FINITE: i32 = -4;

/// Decomposes a matrix into `U diag(s) V^H`, with falling `s`; destroys it.
///
/// `u` and `vt` are whole or have only as many columns, or rows, as there are singular values; with
/// neither, only the values are computed. Gives 0, -4 if the matrix is not finite, or a positive number
/// if the method did not converge.
pub(crate) fn decompose<T: Scalar>(
    matrix: &mut View<'_, T>,
    values: &mut [T::Part],
    vectors: Option<(&mut View<'_, T>, &mut View<'_, T>)>,
) -> i32 {
    if !matrix.is_finite() {
        return NOT_FINITE;
    }
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let scale = Scale::apply(matrix);
    let mut diagonal = vec![T::ZERO; values.len()];
    let compute = |vectors: usize| match vectors {
        0 => ComputeSvdVectors::No,
        count if count == values.len() => ComputeSvdVectors::Thin,
        _ => ComputeSvdVectors::Full,
    };
    let (u_count, v_count) = match &vectors {
        None => (0, 0),
        Some((u, vt)) => (u.cols(), vt.rows()),
    };
    let params: Spec<SvdParams, T> = Spec::default();
    let mut buffer = MemBuffer::new(svd_scratch::<T>(
        rows,
        cols,
        compute(u_count),
        compute(v_count),
        Par::Seq,
        params,
    ));
    let stack = MemStack::new(&mut buffer);
    let target = DiagMut::from_slice_mut(&mut diagonal);
    let outcome = match vectors {
        None => svd(matrix.faer(), target, None, None, Par::Seq, stack, params),
        Some((u, vt)) => {
            let mut v = Mat::<T>::zeros(cols, v_count);
            let u = Some(u.faer_mut());
            let outcome = svd(
                matrix.faer(),
                target,
                u,
                Some(v.as_mut()),
                Par::Seq,
                stack,
                params,
            );
            vt.faer_mut().copy_from(v.adjoint());
            outcome
        }
    };
    for (value, diagonal) in values.iter_mut().zip(&diagonal) {
        *value = diagonal.re();
    }
    scale.undo(values);
    i32::from(outcome.is_err())
}

#[cfg(test)]
mod tests;
