//! QR factorization with column exchanges: `geqp3`.

use super::one_based;
use super::qr;
use super::reflector::{self, Op, Side};
use super::scalar::{Real, Scalar};
use super::view::View;

/// Factors `A P` into `Q R`, in place; the columns of what is left have falling norms.
///
/// On entry, a column with a `pivots` other than 0 is one of the first columns; on exit, `pivots[j]`
/// is the column, counted from 1, that became column `j`.
pub(crate) fn factor<T: Scalar>(matrix: &mut View<'_, T>, pivots: &mut [i32], tau: &mut [T]) {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let fixed = bring_to_front(matrix, pivots).min(rows);
    if fixed > 0 {
        let (mut left, mut right) = matrix.split_at_col(fixed);
        qr::factor(&mut left, &mut tau[..fixed]);
        qr::multiply(
            left.faer(),
            &tau[..fixed],
            &mut right,
            Side::Left,
            Op::Adjoint,
        );
    }
    if fixed < rows.min(cols) {
        let mut rest = matrix.rest(0, fixed);
        factor_free(&mut rest, fixed, &mut pivots[fixed..], &mut tau[fixed..]);
    }
}

/// Moves the columns that must be first; gives their number.
fn bring_to_front<T: Scalar>(matrix: &mut View<'_, T>, pivots: &mut [i32]) -> usize {
    let mut fixed = 0;
    for col in 0..pivots.len() {
        let must_be_first = pivots[col] != 0;
        pivots[col] = one_based(col);
        if must_be_first {
            if col != fixed {
                matrix.swap_cols(col, fixed);
                pivots[col] = pivots[fixed];
                pivots[fixed] = one_based(col);
            }
            fixed += 1;
        }
    }
    fixed
}

/// Factors what stands in and below row `top`, with the longest column first.
fn factor_free<T: Scalar>(matrix: &mut View<'_, T>, top: usize, pivots: &mut [i32], tau: &mut [T]) {
    let (zero, one) = (<T::Part as Scalar>::ZERO, <T::Part as Scalar>::ONE);
    // Below this, what is left of a norm after subtractions is mostly rounding.
    let unreliable = T::Part::EPSILON.root();
    let norm_below =
        |matrix: &View<'_, T>, col: usize, row: usize| T::norm(&matrix.col(col)[row..]);
    let mut norms: Vec<T::Part> = (0..matrix.cols())
        .map(|col| norm_below(matrix, col, top))
        .collect();
    let mut exact = norms.clone();
    let mut v = vec![T::ZERO; matrix.rows()];
    for (position, tau) in tau.iter_mut().enumerate() {
        let row = top + position;
        let mut best = position;
        for col in position + 1..norms.len() {
            if norms[col] > norms[best] {
                best = col;
            }
        }
        if best != position {
            matrix.swap_cols(best, position);
            pivots.swap(best, position);
            norms[best] = norms[position];
            exact[best] = exact[position];
        }
        let Some((alpha, tail)) = matrix.col_mut(position)[row..].split_first_mut() else {
            return;
        };
        let (beta, factor) = reflector::make(*alpha, tail);
        *tau = factor;
        *alpha = T::from_re(beta);
        let v = &mut v[row..];
        v[0] = T::ONE;
        v[1..].copy_from_slice(tail);
        let mut others = matrix.rest(row, position + 1);
        reflector::apply_one(&mut others, v, factor.conjugate(), Side::Left);
        for col in position + 1..norms.len() {
            if norms[col] == zero {
                continue;
            }
            let gone = matrix.at(row, col).modulus() / norms[col];
            let left = (one - gone * gone).larger(zero);
            let ratio = norms[col] / exact[col];
            if left * (ratio * ratio) <= unreliable {
                norms[col] = norm_below(matrix, col, row + 1);
                exact[col] = norms[col];
            } else {
                norms[col] *= left.root();
            }
        }
    }
}

/// The columns of a matrix in the order of `pivots`.
#[cfg(test)]
pub(crate) fn permuted<T: Scalar>(matrix: faer::MatRef<'_, T>, pivots: &[i32]) -> faer::Mat<T> {
    faer::Mat::from_fn(matrix.nrows(), matrix.ncols(), |row, col| {
        matrix[(row, usize::try_from(pivots[col]).unwrap() - 1)]
    })
}

#[cfg(test)]
mod tests;
