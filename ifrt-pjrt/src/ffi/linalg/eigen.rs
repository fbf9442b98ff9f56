//! Eigenvalues and eigenvectors of general matrices: `geev`.

use faer::complex::Complex;
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, EvdParams, evd_cplx, evd_real, evd_scratch};
use faer::{Mat, Par, Spec};

use super::scalar::{Real, Scalar};
use super::scaling::Scale;
use super::schur;
use super::view::View;

/// What is answered for a matrix with elements that are no numbers.
const NOT_FINITE: i32 = -4;

/// Rounds of balancing; each one brings the norms closer by powers of two.
const MAX_ROUNDS: usize = 100;

/// The wish for left and right eigenvectors, with the place for them.
#[derive(Debug)]
pub(crate) struct Vectors<'a, C> {
    /// `u^H A = lambda u^H`.
    pub(crate) left: Option<View<'a, C>>,
    /// `A v = lambda v`.
    pub(crate) right: Option<View<'a, C>>,
}

fn wish<T>(wanted: &Option<T>) -> ComputeEigenvectors {
    if wanted.is_some() {
        ComputeEigenvectors::Yes
    } else {
        ComputeEigenvectors::No
    }
}

/// Multiplies rows and columns by powers of two so that their norms are alike; gives the factors by
/// which columns were multiplied. `gebal`.
fn balance<T: Scalar>(matrix: &mut View<'_, T>) -> Vec<T::Part> {
    let order = matrix.rows();
    let (zero, one) = (<T::Part as Scalar>::ZERO, <T::Part as Scalar>::ONE);
    let (two, enough) = (<T::Part as Real>::of(2.0), <T::Part as Real>::of(0.95));
    let (smallest, biggest) = {
        let smallest = T::Part::SAFE_MIN / T::Part::EPSILON;
        (smallest * two, one / smallest / two)
    };
    let mut factors = vec![one; order];
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for (index, column_factor) in factors.iter_mut().enumerate() {
            let (mut col, mut row) = (zero, zero);
            for other in (0..order).filter(|other| *other != index) {
                col += matrix.at(other, index).size1();
                row += matrix.at(index, other).size1();
            }
            if col == zero || row == zero {
                continue;
            }
            let sum = col + row;
            let mut factor = one;
            while col < row / two && factor < biggest && col < biggest && row > smallest {
                factor *= two;
                col *= two;
                row /= two;
            }
            while row < col / two && factor > smallest && row < biggest && col > smallest {
                factor /= two;
                col /= two;
                row *= two;
            }
            let total = *column_factor * factor;
            if col + row >= enough * sum || total < smallest || total > biggest {
                continue;
            }
            changed = true;
            *column_factor = total;
            let inverse = one / factor;
            for other in 0..order {
                let value = matrix.at(index, other).scaled(inverse);
                matrix.set(index, other, value);
            }
            matrix
                .col_mut(index)
                .iter_mut()
                .for_each(|e| *e = e.scaled(factor));
        }
        if !changed {
            break;
        }
    }
    factors
}

/// Gives a vector the Euclidean norm 1 and a largest element that is real.
fn normalize<T: Scalar>(vector: &mut [T]) {
    let zero = <T::Part as Scalar>::ZERO;
    let largest = vector.iter().fold(zero, |largest, e| {
        largest
            .larger(e.re().magnitude())
            .larger(e.im().magnitude())
    });
    if largest == zero || !largest.is_a_number() {
        return;
    }
    // First near one, so that the norm can be trusted.
    vector
        .iter_mut()
        .for_each(|e| *e = T::from_parts(e.re() / largest, e.im() / largest));
    let norm = T::norm(vector);
    vector
        .iter_mut()
        .for_each(|e| *e = T::from_parts(e.re() / norm, e.im() / norm));
    if !T::IS_COMPLEX {
        return;
    }
    let mut best = 0;
    for (index, element) in vector.iter().enumerate() {
        if element.modulus() > vector[best].modulus() {
            best = index;
        }
    }
    let (peak, length) = (vector[best], vector[best].modulus());
    let phase = T::from_parts(peak.re() / length, -peak.im() / length);
    vector.iter_mut().for_each(|element| *element *= phase);
    vector[best] = T::from_re(length);
}

/// Undoes the balancing of right (`sign` 1) or left (`sign` -1) eigenvectors.
fn unbalance<T: Scalar>(vectors: &mut View<'_, T>, factors: &[T::Part], left: bool) {
    for col in 0..vectors.cols() {
        for (element, factor) in vectors.col_mut(col).iter_mut().zip(factors) {
            *element = if left {
                T::from_parts(element.re() / *factor, element.im() / *factor)
            } else {
                element.scaled(*factor)
            };
        }
        normalize(vectors.col_mut(col));
    }
}

/// The largest matrix whose eigenvalues LAPACK finds by the plain QR iteration, in an order that can be
/// had here as well.
const ORDERED: usize = 75;

/// The eigenvalues in the order in which LAPACK finds them, or nothing if there is no telling.
///
/// The order is that of the Schur form. Programs that take eigenvalues apart pair them up by it, as
/// `jax.scipy.linalg.rsf2csf` does.
fn in_order<R: Real>(matrix: &View<'_, Complex<R>>) -> Vec<Complex<R>>
where
    Complex<R>: Scalar<Part = R>,
{
    let order = matrix.rows();
    if order > ORDERED {
        return Vec::new();
    }
    let zero = Complex::<R>::ZERO;
    let mut copy: Vec<_> = (0..order)
        .flat_map(|col| matrix.col(col).to_vec())
        .collect();
    let (mut q, mut values) = (vec![zero; order * order], vec![zero; order]);
    let info = schur::complex::decompose(
        &mut View::new(&mut copy, order, order),
        &mut View::new(&mut q, order, order),
        &mut values,
    );
    if info == 0 { values } else { Vec::new() }
}

/// Moves eigenvalues and their vectors so that each stands where the nearest of `order` does.
fn reorder<R: Real>(
    order: &[Complex<R>],
    values: &mut [Complex<R>],
    vectors: &mut Vectors<'_, Complex<R>>,
) where
    Complex<R>: Scalar<Part = R>,
{
    for (place, wanted) in order.iter().enumerate() {
        let distance = |value: &Complex<R>| (*value - *wanted).modulus();
        let mut nearest = place;
        for (other, value) in values.iter().enumerate().skip(place) {
            if distance(value) < distance(&values[nearest]) {
                nearest = other;
            }
        }
        values.swap(place, nearest);
        for vectors in [&mut vectors.left, &mut vectors.right]
            .into_iter()
            .flatten()
        {
            vectors.swap_cols(place, nearest);
        }
    }
}

/// Finds the eigenvalues of a complex matrix, and its eigenvectors; destroys the matrix.
///
/// Gives 0, -4 if the matrix is not finite, or a positive number without convergence.
pub(crate) fn complex<R: Real>(
    matrix: &mut View<'_, Complex<R>>,
    values: &mut [Complex<R>],
    mut vectors: Vectors<'_, Complex<R>>,
) -> i32
where
    Complex<R>: Scalar<Part = R>,
{
    if !matrix.is_finite() {
        return NOT_FINITE;
    }
    let order = matrix.rows();
    let scale = Scale::apply(matrix);
    let factors = balance(matrix);
    let places = in_order(matrix);
    let params: Spec<EvdParams, Complex<R>> = Spec::default();
    let (left, right) = (wish(&vectors.left), wish(&vectors.right));
    let mut buffer = MemBuffer::new(evd_scratch::<Complex<R>>(
        order,
        left,
        right,
        Par::Seq,
        params,
    ));
    let outcome = evd_cplx::<R>(
        matrix.faer(),
        DiagMut::from_slice_mut(values),
        vectors.left.as_mut().map(View::faer_mut),
        vectors.right.as_mut().map(View::faer_mut),
        Par::Seq,
        MemStack::new(&mut buffer),
        params,
    );
    if outcome.is_ok() {
        reorder(&places, values, &mut vectors);
    }
    scale.undo(values);
    if let Some(left) = &mut vectors.left {
        unbalance(left, &factors, true);
    }
    if let Some(right) = &mut vectors.right {
        unbalance(right, &factors, false);
    }
    i32::from(outcome.is_err())
}

/// Finds the eigenvalues of a real matrix, and its complex eigenvectors; destroys the matrix.
///
/// Complex eigenvalues come in neighboring pairs, first the one with the positive imaginary part.
/// Gives what [`complex`] gives.
pub(crate) fn real<R: Real>(
    matrix: &mut View<'_, R>,
    re: &mut [R],
    im: &mut [R],
    vectors: Vectors<'_, Complex<R>>,
) -> i32
where
    Complex<R>: Scalar<Part = R>,
{
    if !matrix.is_finite() {
        return NOT_FINITE;
    }
    let order = matrix.rows();
    let scale = Scale::apply(matrix);
    let factors = balance(matrix);
    let params: Spec<EvdParams, R> = Spec::default();
    let (left, right) = (wish(&vectors.left), wish(&vectors.right));
    let mut buffer = MemBuffer::new(evd_scratch::<R>(order, left, right, Par::Seq, params));
    let mut packed_left = vectors.left.as_ref().map(|_| Mat::<R>::zeros(order, order));
    let mut packed_right = vectors
        .right
        .as_ref()
        .map(|_| Mat::<R>::zeros(order, order));
    let outcome = evd_real::<R>(
        matrix.faer(),
        DiagMut::from_slice_mut(re),
        DiagMut::from_slice_mut(im),
        packed_left.as_mut().map(Mat::as_mut),
        packed_right.as_mut().map(Mat::as_mut),
        Par::Seq,
        MemStack::new(&mut buffer),
        params,
    );
    if outcome.is_err() {
        return 1;
    }
    if let (Some(mut left), Some(packed)) = (vectors.left, packed_left) {
        unpack(&packed, im, &mut left);
        unbalance(&mut left, &factors, true);
    }
    if let (Some(mut right), Some(packed)) = (vectors.right, packed_right) {
        unpack(&packed, im, &mut right);
        unbalance(&mut right, &factors, false);
    }
    scale.undo(re);
    scale.undo(im);
    0
}

/// Writes out the vectors of complex pairs, whose parts stand in two neighboring columns.
fn unpack<R: Real>(packed: &Mat<R>, im: &[R], vectors: &mut View<'_, Complex<R>>)
where
    Complex<R>: Scalar<Part = R>,
{
    let order = packed.nrows();
    let mut col = 0;
    while col < order {
        let is_pair = im[col] != R::ZERO && col + 1 < order;
        for row in 0..order {
            let part = packed[(row, col)];
            if is_pair {
                let value = Complex::from_parts(part, packed[(row, col + 1)]);
                vectors.set(row, col, value);
                vectors.set(row, col + 1, value.conjugate());
            } else {
                vectors.set(row, col, Complex::from_re(part));
            }
        }
        col += if is_pair { 2 } else { 1 };
    }
}

#[cfg(test)]
mod tests;
