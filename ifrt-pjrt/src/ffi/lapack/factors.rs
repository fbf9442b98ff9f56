//! Factorizations and reductions: `potrf`, `getrf`, `geqrf`, `geqp3`, `orgqr`, `ormqr`, `gehrd`,
//! `sytrd`.

use std::marker::PhantomData;

use ifrt::{Result, Status};

use super::super::batch::{Lapack, matrices, part, part_mut, square_matrices, triangle};
use super::super::linalg::reflector::{Op, Side};
use super::super::linalg::view::{View, matrix};
use super::super::linalg::{cholesky, hermitian, hessenberg, lu, pivoted_qr, qr};
use crate::safe::ffi::{Attribute, Call, Handler};

/// `A → L, info`.
pub(crate) struct Potrf<T>(PhantomData<T>);

impl<T: Lapack> Handler for Potrf<T> {
    const NAME: &'static str = "a Cholesky factorization";
    const OPERANDS: usize = 1;
    const RESULTS: usize = 2;
    const ATTRIBUTES: &'static [&'static str] = &["uplo"];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, order) = square_matrices(call, 0)?;
        let triangle = triangle(call)?;
        let a = batch.result::<T>(call, 0, &[order, order])?;
        let info = batch.result::<i32>(call, 1, &[])?;
        for (index, info) in info.iter_mut().enumerate() {
            let a = part_mut(a, index, order * order);
            *info = cholesky::factor(&mut View::new(a, order, order), triangle);
        }
        Ok(())
    }
}

/// `A → LU, pivots, info`.
pub(crate) struct Getrf<T>(PhantomData<T>);

impl<T: Lapack> Handler for Getrf<T> {
    const NAME: &'static str = "an LU factorization";
    const OPERANDS: usize = 1;
    const RESULTS: usize = 3;
    const ATTRIBUTES: &'static [&'static str] = &[];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, rows, cols) = matrices(call, 0)?;
        let count = rows.min(cols);
        let a = batch.result::<T>(call, 0, &[rows, cols])?;
        let pivots = batch.result::<i32>(call, 1, &[count])?;
        let info = batch.result::<i32>(call, 2, &[])?;
        for (index, info) in info.iter_mut().enumerate() {
            let a = part_mut(a, index, rows * cols);
            let pivots = part_mut(pivots, index, count);
            *info = lu::factor(&mut View::new(a, rows, cols), pivots);
        }
        Ok(())
    }
}

/// `A → reflectors and R, tau`.
pub(crate) struct Geqrf<T>(PhantomData<T>);

impl<T: Lapack> Handler for Geqrf<T> {
    const NAME: &'static str = "a QR factorization";
    const OPERANDS: usize = 1;
    const RESULTS: usize = 2;
    const ATTRIBUTES: &'static [&'static str] = &[];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, rows, cols) = matrices(call, 0)?;
        let count = rows.min(cols);
        let a = batch.result::<T>(call, 0, &[rows, cols])?;
        let tau = batch.result::<T>(call, 1, &[count])?;
        for index in 0..batch.count {
            let a = part_mut(a, index, rows * cols);
            qr::factor(&mut View::new(a, rows, cols), part_mut(tau, index, count));
        }
        Ok(())
    }
}

/// `A, pivots → reflectors and R, pivots, tau`.
pub(crate) struct Geqp3<T>(PhantomData<T>);

impl<T: Lapack> Handler for Geqp3<T> {
    const NAME: &'static str = "a QR factorization with pivots";
    const OPERANDS: usize = 2;
    const RESULTS: usize = 3;
    const ATTRIBUTES: &'static [&'static str] = &[];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0), (1, 1)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, rows, cols) = matrices(call, 0)?;
        let count = rows.min(cols);
        let a = batch.result::<T>(call, 0, &[rows, cols])?;
        let pivots = batch.result::<i32>(call, 1, &[cols])?;
        let tau = batch.result::<T>(call, 2, &[count])?;
        for index in 0..batch.count {
            let a = part_mut(a, index, rows * cols);
            let pivots = part_mut(pivots, index, cols);
            let tau = part_mut(tau, index, count);
            pivoted_qr::factor(&mut View::new(a, rows, cols), pivots, tau);
        }
        Ok(())
    }
}

/// The number of reflectors in an operand `tau`.
fn reflectors(call: &Call<'_>, operand: usize) -> Result<usize> {
    call.operand_dims(operand)?.last().copied().ok_or_else(|| {
        Status::invalid_argument(format!(
            "operand {operand} must be a vector, but is a number"
        ))
    })
}

/// `reflectors, tau → Q`.
pub(crate) struct Orgqr<T>(PhantomData<T>);

impl<T: Lapack> Handler for Orgqr<T> {
    const NAME: &'static str = "the orthogonal factor of a QR factorization";
    const OPERANDS: usize = 2;
    const RESULTS: usize = 1;
    const ATTRIBUTES: &'static [&'static str] = &[];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, rows, cols) = matrices(call, 0)?;
        let count = reflectors(call, 1)?;
        if cols > rows || count > cols {
            return Err(Status::invalid_argument(format!(
                "{count} reflectors of matrices with {rows} rows and {cols} columns: there must be \
                 as many rows as columns, and as many columns as reflectors, or more"
            )));
        }
        let a = batch.result::<T>(call, 0, &[rows, cols])?;
        let tau = batch.operand::<T>(call, 1, &[count])?;
        for index in 0..batch.count {
            let a = part_mut(a, index, rows * cols);
            qr::generate(&mut View::new(a, rows, cols), part(tau, index, count));
        }
        Ok(())
    }
}

/// `reflectors, tau, C → Q C`, or the adjoint, or from the right.
pub(crate) struct Ormqr<T>(PhantomData<T>);

impl<T: Lapack> Handler for Ormqr<T> {
    const NAME: &'static str = "a product with the orthogonal factor of a QR factorization";
    const OPERANDS: usize = 3;
    const RESULTS: usize = 1;
    const ATTRIBUTES: &'static [&'static str] = &["left", "transpose"];
    const IN_PLACE: &'static [(usize, usize)] = &[(2, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, rows, cols) = matrices(call, 2)?;
        let (_, a_rows, a_cols) = matrices(call, 0)?;
        let count = reflectors(call, 1)?;
        let side = if flag(call, "left")? {
            Side::Left
        } else {
            Side::Right
        };
        let op = if flag(call, "transpose")? {
            Op::Adjoint
        } else {
            Op::Plain
        };
        let order = if side == Side::Left { rows } else { cols };
        if a_rows != order || count > a_cols || count > order {
            return Err(Status::invalid_argument(format!(
                "{count} reflectors in matrices with {a_rows} rows and {a_cols} columns cannot be \
                 applied to a side of length {order}"
            )));
        }
        let c = batch.result::<T>(call, 0, &[rows, cols])?;
        let a = batch.operand::<T>(call, 0, &[a_rows, a_cols])?;
        let tau = batch.operand::<T>(call, 1, &[count])?;
        for index in 0..batch.count {
            let a = matrix(part(a, index, a_rows * a_cols), a_rows, a_cols);
            let tau = part(tau, index, count);
            let c = part_mut(c, index, rows * cols);
            qr::multiply(a, tau, &mut View::new(c, rows, cols), side, op);
        }
        Ok(())
    }
}

fn flag(call: &Call<'_>, name: &str) -> Result<bool> {
    match call.attribute(name)? {
        Attribute::Bool(value) => Ok(value),
        other => Err(Status::invalid_argument(format!(
            "the attribute {name:?} of a custom call must be a bool, but is {other:?}"
        ))),
    }
}

/// `A → reflectors and H, tau, info`.
pub(crate) struct Gehrd<T>(PhantomData<T>);

impl<T: Lapack> Handler for Gehrd<T> {
    const NAME: &'static str = "a reduction to Hessenberg form";
    const OPERANDS: usize = 1;
    const RESULTS: usize = 3;
    const ATTRIBUTES: &'static [&'static str] = &["low", "high"];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, order) = square_matrices(call, 0)?;
        let less = order.saturating_sub(1);
        let (low, high) = match (number(call, "low")?, number(call, "high")?) {
            // Both count from 1; an empty matrix has neither first nor last row.
            (1, 0) if order == 0 => (0, 0),
            (low, high) if 1 <= low && low <= high && high <= order => (low - 1, high),
            (low, high) => {
                return Err(Status::invalid_argument(format!(
                    "rows {low} to {high} cannot be reduced in a matrix with {order} rows"
                )));
            }
        };
        let a = batch.result::<T>(call, 0, &[order, order])?;
        let tau = batch.result::<T>(call, 1, &[less])?;
        // Nothing can fail: `info` stays 0.
        batch.result::<i32>(call, 2, &[])?;
        for index in 0..batch.count {
            let a = part_mut(a, index, order * order);
            let tau = part_mut(tau, index, less);
            hessenberg::reduce(&mut View::new(a, order, order), low, high, tau);
        }
        Ok(())
    }
}

fn number(call: &Call<'_>, name: &str) -> Result<usize> {
    let value = call.attribute(name)?;
    let number = match value {
        Attribute::I32(number) => usize::try_from(number).ok(),
        _ => None,
    };
    number.ok_or_else(|| {
        Status::invalid_argument(format!(
            "the attribute {name:?} of a custom call must be an i32 that is not negative, but is \
             {value:?}"
        ))
    })
}

/// `A → reflectors and T, diagonal, off-diagonal, tau, info`.
pub(crate) struct Sytrd<T>(PhantomData<T>);

impl<T: Lapack> Handler for Sytrd<T> {
    const NAME: &'static str = "a reduction to tridiagonal form";
    const OPERANDS: usize = 1;
    const RESULTS: usize = 5;
    const ATTRIBUTES: &'static [&'static str] = &["uplo"];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, order) = square_matrices(call, 0)?;
        let less = order.saturating_sub(1);
        let triangle = triangle(call)?;
        let a = batch.result::<T>(call, 0, &[order, order])?;
        let diagonal = batch.result::<T::Part>(call, 1, &[order])?;
        let off_diagonal = batch.result::<T::Part>(call, 2, &[less])?;
        let tau = batch.result::<T>(call, 3, &[less])?;
        // Nothing can fail: `info` stays 0.
        batch.result::<i32>(call, 4, &[])?;
        for index in 0..batch.count {
            hermitian::tridiagonalize(
                &mut View::new(part_mut(a, index, order * order), order, order),
                triangle,
                part_mut(diagonal, index, order),
                part_mut(off_diagonal, index, less),
                part_mut(tau, index, less),
            );
        }
        Ok(())
    }
}
