//! QR factorization and its orthogonal factor: `geqrf`, `orgqr`, `ormqr` and the complex `ung…`.

use faer::MatRef;

use super::reflector::{self, Block, Op, Side};
use super::scalar::Scalar;
use super::view::View;

/// The number of reflectors that are applied together.
const BLOCK: usize = 32;

/// Factors a matrix into `Q R`: `R` on and above the diagonal, the reflectors of `Q` below it.
pub(crate) fn factor<T: Scalar>(matrix: &mut View<'_, T>, tau: &mut [T]) {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let count = rows.min(cols);
    let mut start = 0;
    while start < count {
        let width = BLOCK.min(count - start);
        let mut corner = matrix.rest(start, start);
        let (mut panel, mut others) = corner.split_at_col(width);
        let tau = &mut tau[start..start + width];
        factor_panel(&mut panel, tau);
        if others.cols() > 0 {
            Block::new(panel.faer(), tau).apply(others.faer_mut(), Side::Left, Op::Adjoint);
        }
        start += width;
    }
}

/// The same, one reflector at a time.
fn factor_panel<T: Scalar>(panel: &mut View<'_, T>, tau: &mut [T]) {
    let mut v = vec![T::ZERO; panel.rows()];
    for (position, tau) in tau.iter_mut().enumerate() {
        let Some((alpha, tail)) = panel.col_mut(position)[position..].split_first_mut() else {
            return;
        };
        let (beta, factor) = reflector::make(*alpha, tail);
        *tau = factor;
        *alpha = T::from_re(beta);
        let v = &mut v[position..];
        v[0] = T::ONE;
        v[1..].copy_from_slice(tail);
        let mut others = panel.rest(position, position + 1);
        reflector::apply_one(&mut others, v, factor.conjugate(), Side::Left);
    }
}

/// The blocks of the reflectors in `factors`, first to last, with the row where each begins.
fn blocks<'a, T: Scalar>(
    factors: MatRef<'a, T>,
    tau: &'a [T],
) -> impl DoubleEndedIterator<Item = (usize, Block<T>)> + 'a {
    (0..tau.len().div_ceil(BLOCK)).map(move |index| {
        let start = index * BLOCK;
        let width = BLOCK.min(tau.len() - start);
        let panel = factors.submatrix(start, start, factors.nrows() - start, width);
        (start, Block::new(panel, &tau[start..start + width]))
    })
}

/// Replaces the reflectors in the first columns of a matrix by the leading columns of `Q`.
///
/// The matrix has at least as many rows as columns, and at least as many columns as there are `tau`.
pub(crate) fn generate<T: Scalar>(matrix: &mut View<'_, T>, tau: &[T]) {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let mut factors = vec![T::ZERO; rows * tau.len()];
    for (col, target) in factors.chunks_exact_mut(rows.max(1)).enumerate() {
        target.copy_from_slice(matrix.col(col));
    }
    matrix.fill_identity();
    let factors = MatRef::from_column_major_slice(&factors, rows, tau.len());
    for (start, block) in blocks(factors, tau).rev() {
        // The columns before `start` are still those of the identity, zero in these rows.
        let mut rest = matrix.block(start, start, rows - start, cols - start);
        block.apply(rest.faer_mut(), Side::Left, Op::Plain);
    }
}

/// Multiplies a matrix by `Q`, or its adjoint, from a side.
pub(crate) fn multiply<T: Scalar>(
    factors: MatRef<'_, T>,
    tau: &[T],
    matrix: &mut View<'_, T>,
    side: Side,
    op: Op,
) {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let mut step = |(start, block): (usize, Block<T>)| {
        let mut part = match side {
            Side::Left => matrix.block(start, 0, rows - start, cols),
            Side::Right => matrix.block(0, start, rows, cols - start),
        };
        block.apply(part.faer_mut(), side, op);
    };
    match (side, op) {
        (Side::Left, Op::Plain) | (Side::Right, Op::Adjoint) => {
            blocks(factors, tau).rev().for_each(&mut step);
        }
        (Side::Left, Op::Adjoint) | (Side::Right, Op::Plain) => {
            blocks(factors, tau).for_each(&mut step);
        }
    }
}

#[cfg(test)]
mod tests;
