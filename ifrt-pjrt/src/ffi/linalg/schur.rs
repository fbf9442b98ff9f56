//! Schur forms: `gees` without ordering.
//!
//! The matrix is reduced to Hessenberg form, and the QR iteration with implicit shifts then makes it
//! triangular: [`real`] with pairs of shifts, [`complex`] with single ones.
//!
//! What is not here: the ordering of eigenvalues, which JAX does not ask for.

pub(crate) mod complex;
pub(crate) mod real;

use super::hessenberg;
use super::scalar::Scalar;
use super::view::View;

/// How often the iteration may run for each eigenvalue.
const ITERATIONS: usize = 30;

/// After this many steps without progress, shifts are taken that are no estimates.
const PATIENCE: usize = 10;

/// Reduces a finite matrix to Hessenberg form; `q` gets the orthogonal factor.
fn prepare<T: Scalar>(matrix: &mut View<'_, T>, q: &mut View<'_, T>) {
    let order = matrix.rows();
    let mut tau = vec![T::ZERO; order.saturating_sub(1)];
    hessenberg::reduce(matrix, 0, order, &mut tau);
    hessenberg::generate(matrix, &tau, q);
}

#[cfg(test)]
mod tests;
