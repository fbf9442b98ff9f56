//! LU factorization with row exchanges: `getrf`.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::{Accum, Par};

use super::one_based;
use super::scalar::{Real, Scalar};
use super::view::View;

/// Panels this narrow are factored column by column.
const NARROW: usize = 8;

/// Factors a matrix into `P L U`, in place.
///
/// `pivots[i]` is the row, counted from 1, that was exchanged with row `i`. Gives 0, or the position,
/// counted from 1, of the first pivot that is exactly zero; the factorization is complete anyway.
pub(crate) fn factor<T: Scalar>(matrix: &mut View<'_, T>, pivots: &mut [i32]) -> i32 {
    let mut rows = vec![0; pivots.len()];
    let failed = factor_recursively(matrix, &mut rows);
    for (pivot, row) in pivots.iter_mut().zip(rows) {
        *pivot = one_based(row);
    }
    failed.map_or(0, one_based)
}

fn factor_recursively<T: Scalar>(matrix: &mut View<'_, T>, pivots: &mut [usize]) -> Option<usize> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let count = rows.min(cols);
    if count <= NARROW {
        return factor_columns(matrix, pivots);
    }
    let half = count / 2;
    let (pivots_first, pivots_second) = pivots.split_at_mut(half);
    let (mut left, mut right) = matrix.split_at_col(half);
    let mut failed = factor_recursively(&mut left, pivots_first);
    exchange(&mut right, pivots_first);

    let left_factors = left.faer();
    let (top, bottom) = right.faer_mut().split_at_row_mut(half);
    let mut top = top;
    solve_unit_lower_triangular_in_place(
        left_factors.submatrix(0, 0, half, half),
        top.as_mut(),
        Par::Seq,
    );
    let lower = left_factors.submatrix(half, 0, rows - half, half);
    matmul(bottom, Accum::Add, lower, top.as_ref(), -T::ONE, Par::Seq);

    let mut rest = right.rest(half, 0);
    let failed_below = factor_recursively(&mut rest, pivots_second);
    failed = failed.or_else(|| failed_below.map(|position| position + half));
    let mut lower = left.rest(half, 0);
    exchange(&mut lower, pivots_second);
    pivots_second.iter_mut().for_each(|pivot| *pivot += half);
    failed
}

/// The same for a few columns.
fn factor_columns<T: Scalar>(matrix: &mut View<'_, T>, pivots: &mut [usize]) -> Option<usize> {
    let mut failed = None;
    for (position, pivot) in pivots.iter_mut().enumerate() {
        let column = matrix.col(position);
        let mut best = position;
        let mut size = column[position].size1();
        for (row, element) in column.iter().enumerate().skip(position + 1) {
            let candidate = element.size1();
            if candidate > size {
                (best, size) = (row, candidate);
            }
        }
        *pivot = best;
        if matrix.at(best, position) == T::ZERO {
            failed = failed.or(Some(position));
        } else {
            if best != position {
                matrix.swap_rows(position, best);
            }
            let diagonal = matrix.at(position, position);
            let below = &mut matrix.col_mut(position)[position + 1..];
            if diagonal.modulus() >= T::Part::SAFE_MIN {
                let factor = T::ONE.divided_by(diagonal);
                below.iter_mut().for_each(|element| *element *= factor);
            } else {
                below
                    .iter_mut()
                    .for_each(|element| *element = element.divided_by(diagonal));
            }
        }
        let (mut left, mut right) = matrix.split_at_col(position + 1);
        let factors = &left.col_mut(position)[position + 1..];
        for col in 0..right.cols() {
            let column = right.col_mut(col);
            let factor = column[position];
            for (target, element) in column[position + 1..].iter_mut().zip(factors) {
                *target -= factor * *element;
            }
        }
    }
    failed
}

/// Exchanges the rows of a matrix as the pivots of its neighbor were.
fn exchange<T: Scalar>(matrix: &mut View<'_, T>, pivots: &[usize]) {
    for col in 0..matrix.cols() {
        let column = matrix.col_mut(col);
        for (row, pivot) in pivots.iter().enumerate() {
            column.swap(row, *pivot);
        }
    }
}

#[cfg(test)]
mod tests;
