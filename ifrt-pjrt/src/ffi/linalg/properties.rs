//! Identities that hold for matrices of any shape, drawn at random: also those with many zeros, whole
//! numbers and equal rows, where pivots tie and blocks split.

use faer::{Mat, c32, c64};
use proptest::prelude::*;

use super::reflector::{Op, Side};
use super::scalar::{Real, Scalar};
use super::testing::*;
use super::view::View;
use super::{Triangle, eigen, hermitian, hessenberg, lu, qr, schur, singular};

/// A matrix of small whole numbers, most of which may be zero.
fn matrix<T: Scalar>(rows: usize, cols: usize, seed: u64, zeros: u32) -> Vec<T> {
    let mut random = Random(seed);
    let mut part = || {
        let value: f64 = random.scalar::<f64>() * 4.0;
        let keep = random.scalar::<f64>().abs() * 100.0 >= f64::from(zeros);
        <T::Part as Real>::of(if keep { value.round() } else { 0.0 })
    };
    (0..rows * cols)
        .map(|_| T::from_parts(part(), part()))
        .collect()
}

fn hermitian_part<T: Scalar>(data: &[T], order: usize) -> Vec<T> {
    let at = |row: usize, col: usize| data[row + col * order];
    (0..order * order)
        .map(|index| (index % order, index / order))
        .map(|(row, col)| at(row, col) + at(col, row).conjugate())
        .collect()
}

fn zeros<T: Scalar>(count: usize) -> Vec<T> {
    vec![T::ZERO; count]
}

fn check_rectangular<T: Scalar>(data: &[T], rows: usize, cols: usize) {
    let count = rows.min(cols);
    let a = mat(data, rows, cols);

    let mut factors = data.to_vec();
    let mut tau = zeros::<T>(count);
    qr::factor(&mut View::new(&mut factors, rows, cols), &mut tau);
    // Q^H A is R.
    let mut product = data.to_vec();
    let reflectors = super::view::matrix(&factors[..rows * count], rows, count);
    let mut view = View::new(&mut product, rows, cols);
    qr::multiply(reflectors, &tau, &mut view, Side::Left, Op::Adjoint);
    let r = upper(mat(&factors, rows, cols).as_ref(), rows);
    // The matrix beside both sides sets the size of what rounding may do.
    let beside = |left: &Mat<T>| {
        Mat::from_fn(rows, 2 * cols, |row, col| {
            if col < cols {
                left[(row, col)]
            } else {
                a[(row, col - cols)]
            }
        })
    };
    let product = mat(&product, rows, cols);
    assert_close(beside(&product).as_ref(), beside(&r).as_ref(), "Q^H A");

    let mut factors = data.to_vec();
    let mut pivots = vec![0; count];
    lu::factor(&mut View::new(&mut factors, rows, cols), &mut pivots);
    let both = mat(&factors, rows, cols);
    let lower = Mat::from_fn(rows, count, |row, col| match row.cmp(&col) {
        std::cmp::Ordering::Less => T::ZERO,
        std::cmp::Ordering::Equal => T::ONE,
        std::cmp::Ordering::Greater => both[(row, col)],
    });
    let product = times(lower.as_ref(), upper(both.as_ref(), count).as_ref());
    let mut permuted = data.to_vec();
    let mut view = View::new(&mut permuted, rows, cols);
    for (row, pivot) in pivots.iter().enumerate() {
        view.swap_rows(row, usize::try_from(*pivot).unwrap() - 1);
    }
    assert_close(
        beside(&product).as_ref(),
        beside(&mat(&permuted, rows, cols)).as_ref(),
        "L U",
    );

    let mut values = vec![<T::Part as Scalar>::ZERO; count];
    let (mut u, mut vt) = (zeros::<T>(rows * count), zeros::<T>(count * cols));
    let mut work = data.to_vec();
    let info = singular::decompose(
        &mut View::new(&mut work, rows, cols),
        &mut values,
        Some((
            &mut View::new(&mut u, rows, count),
            &mut View::new(&mut vt, count, cols),
        )),
    );
    assert_eq!(info, 0);
    let (u, vt) = (mat(&u, rows, count), mat(&vt, count, cols));
    assert_orthonormal(u.as_ref(), "U");
    let product = times(
        times(u.as_ref(), diagonal::<T>(&values).as_ref()).as_ref(),
        vt.as_ref(),
    );
    assert_close(product.as_ref(), a.as_ref(), "U S V^H");
}

fn check_square<T: Scalar>(data: &[T], order: usize) {
    let a = mat(data, order, order);
    let similar = |q: &Mat<T>, t: &Mat<T>, a: &Mat<T>, what: &str| {
        assert_orthonormal(q.as_ref(), what);
        let product = times(
            times(q.as_ref(), t.as_ref()).as_ref(),
            adjoint(q.as_ref()).as_ref(),
        );
        assert_close(product.as_ref(), a.as_ref(), what);
    };
    let mut h = data.to_vec();
    let (mut tau, mut q) = (
        zeros::<T>(order.saturating_sub(1)),
        zeros::<T>(order * order),
    );
    let mut view = View::new(&mut h, order, order);
    hessenberg::reduce(&mut view, 0, order, &mut tau);
    hessenberg::generate(&mut view, &tau, &mut View::new(&mut q, order, order));
    similar(
        &mat(&q, order, order),
        &mat(&h, order, order),
        &a,
        "Q H Q^H",
    );

    let whole = hermitian_part(data, order);
    let mut vectors = whole.clone();
    let mut values = vec![<T::Part as Scalar>::ZERO; order];
    let mut view = View::new(&mut vectors, order, order);
    assert_eq!(
        hermitian::eigen(&mut view, Triangle::Upper, &mut values, true),
        0
    );
    let w = diagonal::<T>(&values);
    similar(
        &mat(&vectors, order, order),
        &w,
        &mat(&whole, order, order),
        "V W V^H",
    );
}

fn check_real_spectrum(data: &[f64], order: usize) {
    let (mut t, mut q) = (data.to_vec(), zeros::<f64>(order * order));
    let (mut re, mut im) = (vec![0.0; order], vec![0.0; order]);
    let info = schur::real::decompose(
        &mut View::new(&mut t, order, order),
        &mut View::new(&mut q, order, order),
        &mut re,
        &mut im,
    );
    assert_eq!(info, 0);
    let (t, q) = (mat(&t, order, order), mat(&q, order, order));
    assert_orthonormal(q.as_ref(), "Q");
    let product = times(
        times(q.as_ref(), t.as_ref()).as_ref(),
        adjoint(q.as_ref()).as_ref(),
    );
    assert_close(
        product.as_ref(),
        mat(data, order, order).as_ref(),
        "Q T Q^H",
    );
    // The eigenvalues add up to the trace, and those of the other routine do, too.
    let trace: f64 = (0..order).map(|at| data[at * (order + 1)]).sum();
    let vectors = eigen::Vectors {
        left: None,
        right: None,
    };
    let (mut re2, mut im2) = (re.clone(), im.clone());
    let mut work = data.to_vec();
    let mut view = View::new(&mut work, order, order);
    assert_eq!(eigen::real(&mut view, &mut re2, &mut im2, vectors), 0);
    for re in [re, re2] {
        assert!(
            (re.iter().sum::<f64>() - trace).abs() < 1e-10,
            "{re:?} {trace}"
        );
    }
}

fn check_complex_spectrum(data: &[c64], order: usize) {
    let (mut t, mut q) = (data.to_vec(), zeros::<c64>(order * order));
    let mut values = zeros::<c64>(order);
    let info = schur::complex::decompose(
        &mut View::new(&mut t, order, order),
        &mut View::new(&mut q, order, order),
        &mut values,
    );
    assert_eq!(info, 0);
    let (t, q) = (mat(&t, order, order), mat(&q, order, order));
    assert_orthonormal(q.as_ref(), "Q");
    let product = times(
        times(q.as_ref(), t.as_ref()).as_ref(),
        adjoint(q.as_ref()).as_ref(),
    );
    assert_close(
        product.as_ref(),
        mat(data, order, order).as_ref(),
        "Q T Q^H",
    );
    let mut other = zeros::<c64>(order);
    let vectors = eigen::Vectors {
        left: None,
        right: None,
    };
    let mut work = data.to_vec();
    let mut view = View::new(&mut work, order, order);
    assert_eq!(eigen::complex(&mut view, &mut other, vectors), 0);
    let sum: c64 = values
        .iter()
        .zip(&other)
        .map(|(one, other)| *one - *other)
        .sum();
    assert!(sum.modulus() < 1e-10, "{values:?} {other:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn factors_of_rectangular_matrices(
        rows in 0usize..24, cols in 0usize..24, seed: u64, zeros in 0u32..100,
    ) {
        check_rectangular(&matrix::<f64>(rows, cols, seed, zeros), rows, cols);
        check_rectangular(&matrix::<c32>(rows, cols, seed, zeros), rows, cols);
    }

    #[test]
    fn similar_forms_of_square_matrices(order in 0usize..20, seed: u64, zeros in 0u32..100) {
        check_square(&matrix::<f32>(order, order, seed, zeros), order);
        check_square(&matrix::<c64>(order, order, seed, zeros), order);
    }

    #[test]
    fn spectra_of_square_matrices(order in 0usize..16, seed: u64, zeros in 0u32..100) {
        check_real_spectrum(&matrix::<f64>(order, order, seed, zeros), order);
        check_complex_spectrum(&matrix::<c64>(order, order, seed, zeros), order);
    }
}
