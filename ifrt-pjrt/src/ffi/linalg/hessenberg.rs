//! Reduction to Hessenberg form: `gehrd`, and its orthogonal factor `orghr`.

use super::qr;
use super::reflector::{self, Side};
use super::scalar::Scalar;
use super::view::View;

/// Reduces rows and columns `low..high` of a square matrix to the Hessenberg form `Q^H A Q`.
///
/// The reflectors of `Q` stand below the subdiagonal. There is one `tau` less than columns.
pub(crate) fn reduce<T: Scalar>(matrix: &mut View<'_, T>, low: usize, high: usize, tau: &mut [T]) {
    tau.fill(T::ZERO);
    let order = matrix.rows();
    let mut v = vec![T::ZERO; order];
    for col in low..high.saturating_sub(1) {
        let Some((alpha, tail)) = matrix.col_mut(col)[col + 1..high].split_first_mut() else {
            return;
        };
        let (beta, factor) = reflector::make(*alpha, tail);
        *alpha = T::from_re(beta);
        tau[col] = factor;
        let v = &mut v[..high - col - 1];
        v[0] = T::ONE;
        v[1..].copy_from_slice(tail);
        let mut right = matrix.block(0, col + 1, high, high - col - 1);
        reflector::apply_one(&mut right, v, factor, Side::Right);
        let mut left = matrix.block(col + 1, col + 1, high - col - 1, order - col - 1);
        reflector::apply_one(&mut left, v, factor.conjugate(), Side::Left);
    }
}

/// Writes the `Q` of a reduced matrix, and clears its reflectors.
pub(crate) fn generate<T: Scalar>(matrix: &mut View<'_, T>, tau: &[T], q: &mut View<'_, T>) {
    let order = matrix.rows();
    q.fill_identity();
    if order < 2 {
        return;
    }
    let mut inner = q.block(1, 1, order - 1, order - 1);
    for col in 0..order - 1 {
        inner.col_mut(col)[col..].copy_from_slice(&matrix.col(col)[col + 1..]);
    }
    qr::generate(&mut inner, tau);
    for col in 0..order - 1 {
        matrix.col_mut(col)[col + 2..].fill(T::ZERO);
    }
}

#[cfg(test)]
mod tests;
