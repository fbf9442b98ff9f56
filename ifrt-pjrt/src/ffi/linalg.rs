//! Dense linear algebra with the conventions of LAPACK, on column-major views.
//!
//! Products of matrices, triangular solves, Cholesky, singular values and the eigenvalues of
//! Hermitian and general matrices come from `faer`. What LAPACK fixes and `faer` does otherwise is
//! written here: pivots and their order, complex reflectors with a real diagonal, which triangle is
//! touched, how failure is counted, Schur forms.
//!
//! Everything runs on the calling thread: a runtime that executes several programs at once has its
//! own threads already.
//!
//! What is not here: batches, shapes and buffers of the runtime; those are checked before.
//!
//! # Mirrors
//! The routines of LAPACK that a module names, from their published description.

pub(crate) mod cholesky;
pub(crate) mod eigen;
pub(crate) mod hermitian;
pub(crate) mod hessenberg;
pub(crate) mod lu;
pub(crate) mod pivoted_qr;
pub(crate) mod qr;
pub(crate) mod reflector;
pub(crate) mod scalar;
pub(crate) mod scaling;
pub(crate) mod schur;
pub(crate) mod singular;
pub(crate) mod triangular;
pub(crate) mod tridiagonal;
pub(crate) mod view;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;

/// Which triangle of a matrix holds its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Triangle {
    /// The lower one, with the diagonal.
    Lower,
    /// The upper one, with the diagonal.
    Upper,
}

/// A position that LAPACK counts from 1, for its `info` and pivots.
///
/// Matrices whose sides do not fit into an `i32` are refused before any routine runs.
pub(crate) fn one_based(position: usize) -> i32 {
    i32::try_from(position)
        .ok()
        .and_then(|position| position.checked_add(1))
        .unwrap_or(i32::MAX)
}
