//! `Q T Q^H` against the matrix, and the shape of `T`.

use super::super::scalar::Real;
use super::super::testing::*;
use super::*;
use faer::complex::Complex;
use faer::{Mat, c32, c64};

fn check_factors<T: Scalar>(t: MatView<'_, T>, q: MatView<'_, T>, data: MatView<'_, T>) {
    assert_orthonormal(q, "Q");
    let product = times(times(q, t).as_ref(), adjoint(q).as_ref());
    assert_close(product.as_ref(), data, "Q T Q^H");
}

type MatView<'a, T> = faer::MatRef<'a, T>;

fn check_real<R: Real>(data: &[R], order: usize) -> (Vec<R>, Vec<R>) {
    let (mut t, mut q) = (data.to_vec(), vec![R::ZERO; order * order]);
    let (mut re, mut im) = (vec![R::ZERO; order], vec![R::ZERO; order]);
    let info = real::decompose(
        &mut View::new(&mut t, order, order),
        &mut View::new(&mut q, order, order),
        &mut re,
        &mut im,
    );
    assert_eq!(info, 0);
    let t = mat(&t, order, order);
    let mut col = 0;
    while col < order {
        for row in col + 2..order {
            assert_eq!(t[(row, col)], R::ZERO);
        }
        if col + 1 < order && t[(col + 1, col)] != R::ZERO {
            // A standard block: equal diagonal, others of unlike sign; no further one follows.
            let (b, c) = (t[(col, col + 1)], t[(col + 1, col)]);
            assert_eq!(t[(col, col)], t[(col + 1, col + 1)]);
            assert!((b < R::ZERO) != (c < R::ZERO));
            assert!(im[col] > R::ZERO && im[col + 1] == -im[col]);
            assert!(col + 2 >= order || t[(col + 2, col + 1)] == R::ZERO);
            assert_eq!([re[col], re[col + 1]], [t[(col, col)]; 2]);
            col += 2;
        } else {
            assert_eq!((re[col], im[col]), (t[(col, col)], R::ZERO));
            col += 1;
        }
    }
    check_factors(
        t.as_ref(),
        mat(&q, order, order).as_ref(),
        mat(data, order, order).as_ref(),
    );
    (re, im)
}

fn check_complex<T: Scalar>(data: &[T], order: usize) -> Vec<T> {
    let (mut t, mut q) = (data.to_vec(), vec![T::ZERO; order * order]);
    let mut values = vec![T::ZERO; order];
    let info = complex::decompose(
        &mut View::new(&mut t, order, order),
        &mut View::new(&mut q, order, order),
        &mut values,
    );
    assert_eq!(info, 0);
    let t = mat(&t, order, order);
    for col in 0..order {
        assert_eq!(values[col], t[(col, col)]);
        for row in col + 1..order {
            assert_eq!(t[(row, col)], T::ZERO);
        }
    }
    check_factors(
        t.as_ref(),
        mat(&q, order, order).as_ref(),
        mat(data, order, order).as_ref(),
    );
    values
}

/// Matrices that are hard for the iteration: shifts that cycle, defects, graded elements.
fn hard<T: Scalar>(order: usize) -> Vec<Vec<T>> {
    let mut shift = vec![T::ZERO; order * order];
    let mut nilpotent = shift.clone();
    let mut jordan = shift.clone();
    let mut graded = Random(90).matrix::<T>(order, order);
    for row in 0..order {
        shift[(row + 1) % order.max(1) + row * order] = T::ONE;
        jordan[row * (order + 1)] = T::ONE + T::ONE;
        for col in 0..order {
            let exponent = -i32::try_from(row + col).unwrap() / 2;
            let factor = <T::Part as Real>::power_of_two(exponent.max(-40));
            graded[row + col * order] = graded[row + col * order].scaled(factor);
        }
        if row + 1 < order {
            nilpotent[row + (row + 1) * order] = T::ONE;
            jordan[row + (row + 1) * order] = T::ONE;
        }
    }
    let ones = vec![T::ONE; order * order];
    vec![
        vec![T::ZERO; order * order],
        shift,
        nilpotent,
        jordan,
        graded,
        ones,
    ]
}

#[test]
fn real_factors_give_the_matrix_back() {
    for order in ORDERS {
        check_real(&Random(91).matrix::<f32>(order, order), order);
        check_real(&Random(91).matrix::<f64>(order, order), order);
        hard::<f32>(order)
            .iter()
            .for_each(|data| drop(check_real(data, order)));
        hard::<f64>(order)
            .iter()
            .for_each(|data| drop(check_real(data, order)));
    }
}

#[test]
fn complex_factors_give_the_matrix_back() {
    for order in ORDERS {
        check_complex(&Random(92).matrix::<c32>(order, order), order);
        check_complex(&Random(92).matrix::<c64>(order, order), order);
        hard::<c32>(order)
            .iter()
            .for_each(|data| drop(check_complex(data, order)));
        hard::<c64>(order)
            .iter()
            .for_each(|data| drop(check_complex(data, order)));
    }
}

#[test]
fn pairs_are_split_or_made_standard() {
    for block in [
        [1.0, 2.0, -3.0, 4.0],
        [1.0, 2.0, 3.0, 4.0],
        [1.0, 0.0, 3.0, 4.0],
        [1.0, 1e-20, 1.0, 1.0],
        [1.0, -1e-20, 1.0, 1.0],
        [2.0, 1.0, -1.0, 2.0],
        [0.0, 1.0, 1.0, 0.0],
        [5.0, 5.0, 5.0, 5.0],
        [1e150, 1e150, -1e150, 1e-150],
    ] {
        check_real(&block, 2);
    }
}

#[test]
fn a_rotation_has_its_known_eigenvalues() {
    let (re, im) = check_real(&[0.0, 1.0, -1.0, 0.0], 2);
    assert_eq!((re, im), (vec![0.0, 0.0], vec![1.0, -1.0]));
    let values = check_complex(&[0.0, 1.0, -1.0, 0.0].map(|re| Complex::new(re, 0.0)), 2);
    let expected: Mat<c64> = Mat::from_fn(1, 2, |_, col| {
        Complex::new(
            0.0,
            if (values[0].im > 0.0) == (col == 0) {
                1.0
            } else {
                -1.0
            },
        )
    });
    assert_close(mat(&values, 1, 2).as_ref(), expected.as_ref(), "i and -i");
}

#[test]
fn numbers_that_are_none_are_a_failure() {
    for poison in poisons::<f64>() {
        let mut data = Random(93).matrix::<f64>(5, 5);
        data[7] = poison;
        let (mut q, mut re, mut im) = ([0.0; 25], [0.0; 5], [0.0; 5]);
        let mut view = View::new(&mut data, 5, 5);
        let mut q = View::new(&mut q, 5, 5);
        assert_ne!(real::decompose(&mut view, &mut q, &mut re, &mut im), 0);
    }
    for poison in poisons::<c32>() {
        let mut data = Random(93).matrix::<c32>(5, 5);
        data[7] = poison;
        let (mut q, mut values) = ([c32::ZERO; 25], [c32::ZERO; 5]);
        let mut view = View::new(&mut data, 5, 5);
        assert_ne!(
            complex::decompose(&mut view, &mut View::new(&mut q, 5, 5), &mut values),
            0
        );
    }
}
