//! Triangular systems: `trsm`.

use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place_with_conj, solve_unit_lower_triangular_in_place_with_conj,
    solve_unit_upper_triangular_in_place_with_conj, solve_upper_triangular_in_place_with_conj,
};
use faer::{Conj, MatRef, Par};

use super::Triangle;
use super::reflector::Side;
use super::scalar::Scalar;
use super::view::View;

/// Which form of the matrix is solved with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The matrix.
    Plain,
    /// Its transpose.
    Transpose,
    /// Its adjoint.
    Adjoint,
}

/// Solves `op(A) X = B`, or `X op(A) = B` with `A` on the right, in place of `B`.
pub(crate) fn solve<T: Scalar>(
    a: MatRef<'_, T>,
    b: &mut View<'_, T>,
    side: Side,
    triangle: Triangle,
    form: Form,
    unit_diagonal: bool,
) {
    let conj = if form == Form::Adjoint {
        Conj::Yes
    } else {
        Conj::No
    };
    // With A on the right, the transposed system is solved.
    let transposed = (form != Form::Plain) != (side == Side::Right);
    let lower = (triangle == Triangle::Lower) != transposed;
    let a = if transposed { a.transpose() } else { a };
    let b = match side {
        Side::Left => b.faer_mut(),
        Side::Right => b.faer_mut().transpose_mut(),
    };
    match (lower, unit_diagonal) {
        (true, false) => solve_lower_triangular_in_place_with_conj(a, conj, b, Par::Seq),
        (true, true) => solve_unit_lower_triangular_in_place_with_conj(a, conj, b, Par::Seq),
        (false, false) => solve_upper_triangular_in_place_with_conj(a, conj, b, Par::Seq),
        (false, true) => solve_unit_upper_triangular_in_place_with_conj(a, conj, b, Par::Seq),
    }
}

#[cfg(test)]
mod tests;
