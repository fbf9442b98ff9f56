//! Eigenvalues and singular values: `gesdd` and `gesvd`, `syevd`, `geev`, `gees`.

use std::marker::PhantomData;

use faer::complex::Complex;
use ifrt::{Result, Status};

use super::super::batch::{
    Lapack, choice, matrices, part_mut, square_matrices, triangle, wants_vectors,
};
use super::super::linalg::eigen::{self, Vectors};
use super::super::linalg::scalar::Real;
use super::super::linalg::view::View;
use super::super::linalg::{hermitian, schur, singular};
use crate::safe::ffi::{Call, Element, Handler};

/// Which singular vectors are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    None,
    Thin,
    Full,
    Overwrite,
}

/// `A → A, destroyed; s, U, V^H, info`.
pub(crate) struct Gesdd<T>(PhantomData<T>);

impl<T: Lapack> Handler for Gesdd<T> {
    const NAME: &'static str = "a singular value decomposition";
    const OPERANDS: usize = 1;
    const RESULTS: usize = 5;
    const ATTRIBUTES: &'static [&'static str] = &["mode"];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, rows, cols) = matrices(call, 0)?;
        let count = rows.min(cols);
        let mode = choice(
            call,
            "mode",
            &[
                (b'N', Mode::None),
                (b'S', Mode::Thin),
                (b'A', Mode::Full),
                (b'O', Mode::Overwrite),
            ],
        )?;
        let (u_cols, v_rows) = match mode {
            Mode::Thin => (count, count),
            Mode::Full => (rows, cols),
            // The results are there all the same, and stay zero.
            Mode::None => {
                let last = |dims: &[usize], back: usize| {
                    dims.len()
                        .checked_sub(back)
                        .and_then(|at| dims.get(at))
                        .copied()
                        .unwrap_or(0)
                };
                (last(call.result_dims(2)?, 1), last(call.result_dims(3)?, 2))
            }
            Mode::Overwrite => {
                return Err(Status::unimplemented(
                    "singular vectors in place of the matrix (mode 'O') are not supported",
                ));
            }
        };
        let a = batch.result::<T>(call, 0, &[rows, cols])?;
        let values = batch.result::<T::Part>(call, 1, &[count])?;
        let u = batch.result::<T>(call, 2, &[rows, u_cols])?;
        let vt = batch.result::<T>(call, 3, &[v_rows, cols])?;
        let info = batch.result::<i32>(call, 4, &[])?;
        for (index, info) in info.iter_mut().enumerate() {
            let mut a = View::new(part_mut(a, index, rows * cols), rows, cols);
            let mut u = View::new(part_mut(u, index, rows * u_cols), rows, u_cols);
            let mut vt = View::new(part_mut(vt, index, v_rows * cols), v_rows, cols);
            let vectors = (mode != Mode::None).then_some((&mut u, &mut vt));
            *info = singular::decompose(&mut a, part_mut(values, index, count), vectors);
        }
        Ok(())
    }
}

/// `A → vectors, values, info`.
pub(crate) struct Syevd<T>(PhantomData<T>);

impl<T: Lapack> Handler for Syevd<T> {
    const NAME: &'static str = "an eigendecomposition of a Hermitian matrix";
    const OPERANDS: usize = 1;
    const RESULTS: usize = 3;
    const ATTRIBUTES: &'static [&'static str] = &["mode", "uplo"];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, order) = square_matrices(call, 0)?;
        let triangle = triangle(call)?;
        let vectors = wants_vectors(call, "mode")?;
        let a = batch.result::<T>(call, 0, &[order, order])?;
        let values = batch.result::<T::Part>(call, 1, &[order])?;
        let info = batch.result::<i32>(call, 2, &[])?;
        for (index, info) in info.iter_mut().enumerate() {
            let mut a = View::new(part_mut(a, index, order * order), order, order);
            *info = hermitian::eigen(&mut a, triangle, part_mut(values, index, order), vectors);
        }
        Ok(())
    }
}

/// `A → real and imaginary parts of the values; left and right vectors, complex; info`.
pub(crate) struct RealGeev<R>(PhantomData<R>);

impl<R: Lapack + Real> Handler for RealGeev<R>
where
    Complex<R>: Lapack<Part = R>,
{
    const NAME: &'static str = "an eigendecomposition";
    const OPERANDS: usize = 1;
    const RESULTS: usize = 5;
    const ATTRIBUTES: &'static [&'static str] = &["compute_left", "compute_right"];
    const IN_PLACE: &'static [(usize, usize)] = &[];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, order) = square_matrices(call, 0)?;
        let size = order * order;
        let wants = [
            wants_vectors(call, "compute_left")?,
            wants_vectors(call, "compute_right")?,
        ];
        let re = batch.result::<R>(call, 0, &[order])?;
        let im = batch.result::<R>(call, 1, &[order])?;
        let left = batch.result::<Complex<R>>(call, 2, &[order, order])?;
        let right = batch.result::<Complex<R>>(call, 3, &[order, order])?;
        let info = batch.result::<i32>(call, 4, &[])?;
        let a = batch.operand::<R>(call, 0, &[order, order])?;
        for (index, info) in info.iter_mut().enumerate() {
            let mut a = a[index * size..][..size].to_vec();
            *info = eigen::real(
                &mut View::new(&mut a, order, order),
                part_mut(re, index, order),
                part_mut(im, index, order),
                wanted(
                    wants,
                    part_mut(left, index, size),
                    part_mut(right, index, size),
                    order,
                ),
            );
        }
        Ok(())
    }
}

/// `A → values, left and right vectors, info`.
pub(crate) struct ComplexGeev<R>(PhantomData<R>);

impl<R: Real + Element> Handler for ComplexGeev<R>
where
    Complex<R>: Lapack<Part = R>,
{
    const NAME: &'static str = "an eigendecomposition";
    const OPERANDS: usize = 1;
    const RESULTS: usize = 4;
    const ATTRIBUTES: &'static [&'static str] = &["compute_left", "compute_right"];
    const IN_PLACE: &'static [(usize, usize)] = &[];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, order) = square_matrices(call, 0)?;
        let size = order * order;
        let wants = [
            wants_vectors(call, "compute_left")?,
            wants_vectors(call, "compute_right")?,
        ];
        let values = batch.result::<Complex<R>>(call, 0, &[order])?;
        let left = batch.result::<Complex<R>>(call, 1, &[order, order])?;
        let right = batch.result::<Complex<R>>(call, 2, &[order, order])?;
        let info = batch.result::<i32>(call, 3, &[])?;
        let a = batch.operand::<Complex<R>>(call, 0, &[order, order])?;
        for (index, info) in info.iter_mut().enumerate() {
            let mut a = a[index * size..][..size].to_vec();
            *info = eigen::complex(
                &mut View::new(&mut a, order, order),
                part_mut(values, index, order),
                wanted(
                    wants,
                    part_mut(left, index, size),
                    part_mut(right, index, size),
                    order,
                ),
            );
        }
        Ok(())
    }
}

/// The places of the vectors that are wanted; the others stay zero.
fn wanted<'a, C: Lapack>(
    [wants_left, wants_right]: [bool; 2],
    left: &'a mut [C],
    right: &'a mut [C],
    order: usize,
) -> Vectors<'a, C> {
    Vectors {
        left: wants_left.then(|| View::new(left, order, order)),
        right: wants_right.then(|| View::new(right, order, order)),
    }
}

/// Refuses to order eigenvalues: the predicate that LAPACK takes is no attribute.
fn refuse_order(call: &Call<'_>) -> Result<()> {
    match choice(call, "sort", &[(b'N', false), (b'S', true)])? {
        false => Ok(()),
        true => Err(Status::unimplemented(
            "ordering the eigenvalues of a Schur form (sort 'S') is not supported",
        )),
    }
}

/// `A → T, Q, real and imaginary parts of the values, the number of selected ones, info`.
pub(crate) struct RealGees<R>(PhantomData<R>);

impl<R: Lapack + Real> Handler for RealGees<R> {
    const NAME: &'static str = "a Schur decomposition";
    const OPERANDS: usize = 1;
    const RESULTS: usize = 6;
    const ATTRIBUTES: &'static [&'static str] = &["mode", "sort"];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, order) = square_matrices(call, 0)?;
        let size = order * order;
        refuse_order(call)?;
        let vectors = wants_vectors(call, "mode")?;
        let t = batch.result::<R>(call, 0, &[order, order])?;
        let q = batch.result::<R>(call, 1, &[order, order])?;
        let re = batch.result::<R>(call, 2, &[order])?;
        let im = batch.result::<R>(call, 3, &[order])?;
        batch.result::<i32>(call, 4, &[])?;
        let info = batch.result::<i32>(call, 5, &[])?;
        for (index, info) in info.iter_mut().enumerate() {
            let q = part_mut(q, index, size);
            *info = schur::real::decompose(
                &mut View::new(part_mut(t, index, size), order, order),
                &mut View::new(q, order, order),
                part_mut(re, index, order),
                part_mut(im, index, order),
            );
            if !vectors {
                q.fill(R::ZERO);
            }
        }
        Ok(())
    }
}

/// `A → T, Q, values, the number of selected ones, info`.
pub(crate) struct ComplexGees<C>(PhantomData<C>);

impl<C: Lapack> Handler for ComplexGees<C> {
    const NAME: &'static str = "a Schur decomposition";
    const OPERANDS: usize = 1;
    const RESULTS: usize = 5;
    const ATTRIBUTES: &'static [&'static str] = &["mode", "sort"];
    const IN_PLACE: &'static [(usize, usize)] = &[(0, 0)];

    fn run(call: &mut Call<'_>) -> Result<()> {
        let (batch, order) = square_matrices(call, 0)?;
        let size = order * order;
        refuse_order(call)?;
        let vectors = wants_vectors(call, "mode")?;
        let t = batch.result::<C>(call, 0, &[order, order])?;
        let q = batch.result::<C>(call, 1, &[order, order])?;
        let values = batch.result::<C>(call, 2, &[order])?;
        batch.result::<i32>(call, 3, &[])?;
        let info = batch.result::<i32>(call, 4, &[])?;
        for (index, info) in info.iter_mut().enumerate() {
            let q = part_mut(q, index, size);
            *info = schur::complex::decompose(
                &mut View::new(part_mut(t, index, size), order, order),
                &mut View::new(q, order, order),
                part_mut(values, index, order),
            );
            if !vectors {
                q.fill(C::ZERO);
            }
        }
        Ok(())
    }
}
