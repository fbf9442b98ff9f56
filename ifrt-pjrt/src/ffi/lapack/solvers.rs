//! Systems of equations: `trsm`, `gtsv`.

use std::marker::PhantomData;

use ifrt::{Result, Status};

use super::super::batch::{Lapack, choice, matrices, part, part_mut, square_matrices, triangle};
use super::super::linalg::reflector::Side;
use super::super::linalg::triangular::{self, Form};
use super::super::linalg::tridiagonal;
use super::super::linalg::view::{View, matrix};
use crate::safe::ffi::{Call, Handler};

/// `A, B → X` with `op(A) X = B` or `X op(A) = B`.
pub(crate) struct Trsm<T>(PhantomData<T>);

impl<T: Lapack> Handler for Trsm<T> {
    const NAME: &'static str = "the solution of a triangular system";
    const OPERANDS: usize = 2;
    const RESULTS: usize = 1;
    const ATTRIBUTES: &'static [&'static str] = &["side", "uplo", "trans_x", "diag"];
    const IN_PLACE: &'static [(usize, usize)] = &[(1, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, rows, cols) = matrices(call, 1)?;
        let (_, order) = square_matrices(call, 0)?;
        let side = choice(call, "side", &[(b'L', Side::Left), (b'R', Side::Right)])?;
        let triangle = triangle(call)?;
        let form = choice(
            call,
            "trans_x",
            &[
                (b'N', Form::Plain),
                (b'T', Form::Transpose),
                (b'C', Form::Adjoint),
            ],
        )?;
        let unit_diagonal = choice(call, "diag", &[(b'N', false), (b'U', true)])?;
        let expected = if side == Side::Left { rows } else { cols };
        if order != expected {
            return Err(Status::invalid_argument(format!(
                "a system of order {order} cannot have right-hand sides of length {expected}"
            )));
        }
        let b = batch.result::<T>(call, 0, &[rows, cols])?;
        let a = batch.operand::<T>(call, 0, &[order, order])?;
        for index in 0..batch.count {
            let a = matrix(part(a, index, order * order), order, order);
            let mut b = View::new(part_mut(b, index, rows * cols), rows, cols);
            triangular::solve(a, &mut b, side, triangle, form, unit_diagonal);
        }
        Ok(())
    }
}

/// `below, diagonal, above, B → the three diagonals, destroyed; X; info`.
///
/// All diagonals have the length of the system: the first element of `below` and the last one of
/// `above` are not used.
pub(crate) struct Gtsv<T>(PhantomData<T>);

impl<T: Lapack> Handler for Gtsv<T> {
    const NAME: &'static str = "the solution of a tridiagonal system";
    const OPERANDS: usize = 4;
    const RESULTS: usize = 5;
    const ATTRIBUTES: &'static [&'static str] = &[];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0), (1, 1), (2, 2), (3, 3)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, order, cols) = matrices(call, 3)?;
        let below = batch.result::<T>(call, 0, &[order])?;
        let diagonal = batch.result::<T>(call, 1, &[order])?;
        let above = batch.result::<T>(call, 2, &[order])?;
        let b = batch.result::<T>(call, 3, &[order, cols])?;
        let info = batch.result::<i32>(call, 4, &[])?;
        if order == 0 {
            return Ok(());
        }
        for (index, info) in info.iter_mut().enumerate() {
            *info = tridiagonal::solve(
                &mut part_mut(below, index, order)[1..],
                part_mut(diagonal, index, order),
                &mut part_mut(above, index, order)[..order - 1],
                &mut View::new(part_mut(b, index, order * cols), order, cols),
            );
        }
        Ok(())
    }
}
