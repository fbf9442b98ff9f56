//! `tridiagonal_solve_perturbed_ffi`: tridiagonal systems that may be singular.
//!
//! # Mirrors
//! `jaxlib/cpu/tridiagonal_solve_kernels.h`.

use faer::{c32, c64};
use ifrt::{Result, Status};

use super::batch::{Lapack, matrices, part, part_mut};
use super::linalg::tridiagonal;
use super::linalg::view::View;
use crate::safe::ffi::{Call, ElementKind, Handler};

/// `below, diagonal, above, B → X`, for every type of LAPACK.
pub(crate) struct SolvePerturbed;

impl Handler for SolvePerturbed {
    const NAME: &'static str = "the solution of a tridiagonal system with perturbed pivots";
    const OPERANDS: usize = 4;
    const RESULTS: usize = 1;
    const ATTRIBUTES: &'static [&'static str] = &[];
    const IN_PLACE: &'static [(usize, usize)] = &[];

    fn run(call: &mut Call<'_>) -> Result<()> {
        match call.operand_kind(1)? {
            ElementKind::F32 => solve::<f32>(call),
            ElementKind::F64 => solve::<f64>(call),
            ElementKind::C64 => solve::<c32>(call),
            ElementKind::C128 => solve::<c64>(call),
            other => Err(Status::invalid_argument(format!(
                "a tridiagonal system with elements of type {other:?}"
            ))),
        }
    }
}

fn solve<T: Lapack>(call: &mut Call<'_>) -> Result<()> {
    let (batch, order, cols) = matrices(call, 3)?;
    let size = order * cols;
    let x = batch.result::<T>(call, 0, &[order, cols])?;
    let below = batch.operand::<T>(call, 0, &[order])?;
    let diagonal = batch.operand::<T>(call, 1, &[order])?;
    let above = batch.operand::<T>(call, 2, &[order])?;
    let b = batch.operand::<T>(call, 3, &[order, cols])?;
    for index in 0..batch.count {
        let x = part_mut(x, index, size);
        x.copy_from_slice(part(b, index, size));
        tridiagonal::solve_perturbed(
            part(below, index, order),
            part(diagonal, index, order),
            part(above, index, order),
            &mut View::new(x, order, cols),
        );
    }
    Ok(())
}
