//! Cholesky factorization: `potrf`.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{
    LltError, LltParams, LltRegularization, cholesky_in_place, cholesky_in_place_scratch,
};
use faer::{Par, Spec};

use super::scalar::Scalar;
use super::view::View;
use super::{Triangle, one_based};

/// Factors a positive definite matrix into `L L^H` or `U^H U`, in place.
///
/// Only one triangle is read and written. Gives 0, or the order of the leading minor that is not
/// positive.
pub(crate) fn factor<T: Scalar>(matrix: &mut View<'_, T>, triangle: Triangle) -> i32 {
    let order = matrix.rows();
    // The diagonal of a Hermitian matrix is real, whatever stands in the imaginary parts.
    for position in 0..order {
        let diagonal = T::from_re(matrix.at(position, position).re());
        matrix.set(position, position, diagonal);
    }
    let params: Spec<LltParams, T> = Spec::default();
    let mut buffer = MemBuffer::new(cholesky_in_place_scratch::<T>(order, Par::Seq, params));
    let stack = MemStack::new(&mut buffer);
    let matrix = match triangle {
        Triangle::Lower => matrix.faer_mut(),
        // The transpose holds the lower triangle of the conjugate matrix, whose factor is the
        // transpose of U.
        Triangle::Upper => matrix.faer_mut().transpose_mut(),
    };
    match cholesky_in_place(
        matrix,
        LltRegularization::default(),
        Par::Seq,
        stack,
        params,
    ) {
        Ok(_) => 0,
        Err(LltError::NonPositivePivot { index }) => one_based(index),
    }
}

#[cfg(test)]
mod tests;
