//! Both kinds of eigenvectors against the matrix.

use super::super::testing::*;
use super::*;
use faer::{MatRef, c32, c64};

/// Asserts `A v = lambda v` or `u^H A = lambda u^H` for every column.
fn check_pairs<C: Scalar>(a: MatRef<'_, C>, values: &[C], vectors: &[C], left: bool) {
    let order = a.nrows();
    let vectors = mat(vectors, order, order);
    let a = if left { adjoint(a) } else { a.to_owned() };
    let images = times(a.as_ref(), vectors.as_ref());
    let scaled = Mat::from_fn(order, order, |row, col| {
        vectors[(row, col)]
            * if left {
                values[col].conjugate()
            } else {
                values[col]
            }
    });
    // The matrix itself sets the size of what rounding may do.
    let with_a = |m: &Mat<C>| {
        Mat::from_fn(order, 2 * order, |row, col| {
            if col < order {
                m[(row, col)]
            } else {
                a[(row, col - order)]
            }
        })
    };
    assert_close(
        with_a(&images).as_ref(),
        with_a(&scaled).as_ref(),
        if left { "u" } else { "v" },
    );
    for col in 0..order {
        let column: Vec<C> = (0..order).map(|row| vectors[(row, col)]).collect();
        let norm = to_f64(C::norm(&column));
        assert!((norm - 1.0).abs() < 1e-5, "norm {norm}");
        let peak = column
            .iter()
            .max_by(|a, b| to_f64(a.modulus()).total_cmp(&to_f64(b.modulus())));
        let peak = *peak.unwrap();
        assert!(
            to_f64(peak.im().magnitude()) <= 1e-5
                || column.iter().any(|other| {
                    to_f64(other.modulus()) >= to_f64(peak.modulus()) * 0.99999
                        && other.im() == <C::Part as Scalar>::ZERO
                })
        );
    }
}

fn check_complex<R: Real>(data: &[Complex<R>], order: usize)
where
    Complex<R>: Scalar<Part = R>,
{
    let zero = Complex::<R>::ZERO;
    let mut values = vec![zero; order];
    let (mut left, mut right) = (vec![zero; order * order], vec![zero; order * order]);
    let mut work = data.to_vec();
    let vectors = Vectors {
        left: Some(View::new(&mut left, order, order)),
        right: Some(View::new(&mut right, order, order)),
    };
    assert_eq!(
        complex(
            &mut View::new(&mut work, order, order),
            &mut values,
            vectors
        ),
        0
    );
    let a = mat(data, order, order);
    check_pairs(a.as_ref(), &values, &right, false);
    check_pairs(a.as_ref(), &values, &left, true);
}

fn check_real<R: Real>(data: &[R], order: usize) -> Vec<Complex<R>>
where
    Complex<R>: Scalar<Part = R>,
{
    let zero = Complex::<R>::ZERO;
    let (mut re, mut im) = (vec![R::ZERO; order], vec![R::ZERO; order]);
    let (mut left, mut right) = (vec![zero; order * order], vec![zero; order * order]);
    let mut work = data.to_vec();
    let vectors = Vectors {
        left: Some(View::new(&mut left, order, order)),
        right: Some(View::new(&mut right, order, order)),
    };
    assert_eq!(
        real(
            &mut View::new(&mut work, order, order),
            &mut re,
            &mut im,
            vectors
        ),
        0
    );
    let values: Vec<Complex<R>> = re
        .iter()
        .zip(&im)
        .map(|(re, im)| Complex::from_parts(*re, *im))
        .collect();
    let mut col = 0;
    while col < order {
        if im[col] != R::ZERO {
            assert!(im[col] > R::ZERO && im[col + 1] == -im[col] && re[col + 1] == re[col]);
            col += 1;
        }
        col += 1;
    }
    let data: Vec<Complex<R>> = data.iter().map(|re| Complex::from_re(*re)).collect();
    let a = mat(&data, order, order);
    check_pairs(a.as_ref(), &values, &right, false);
    check_pairs(a.as_ref(), &values, &left, true);
    values
}

#[test]
fn complex_vectors_fit_their_values() {
    for order in ORDERS {
        check_complex(&Random(101).matrix::<c32>(order, order), order);
        check_complex(&Random(101).matrix::<c64>(order, order), order);
    }
}

#[test]
fn real_vectors_fit_their_values() {
    for order in ORDERS {
        check_real(&Random(102).matrix::<f32>(order, order), order);
        check_real(&Random(102).matrix::<f64>(order, order), order);
    }
}

#[test]
fn known_values_are_found() {
    let values = check_real(&[0.0f64, 1.0, -1.0, 0.0], 2);
    for (value, imaginary) in values.iter().zip([1.0, -1.0]) {
        let error = (value.re.abs()).max((value.im - imaginary).abs());
        assert!(error <= 4.0 * f64::EPSILON, "{value} is not {imaginary}i");
    }
    assert_eq!(values.len(), 2);
    // A defective matrix, and one with rows of very different size.
    check_real(&[1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0], 3);
    check_real(&[1.0f64, 1e-6, 1e6, 2.0], 2);
    check_real(&[0.0; 16], 4);
    let mut identity = vec![0.0f32; 100];
    View::new(&mut identity, 10, 10).fill_identity();
    check_real(&identity, 10);
}

#[test]
fn numbers_that_are_none_are_refused() {
    for poison in poisons::<f64>() {
        let mut data = Random(103).matrix::<f64>(4, 4);
        data[3] = poison;
        let (mut re, mut im) = ([0.0; 4], [0.0; 4]);
        let vectors = Vectors {
            left: None,
            right: None,
        };
        let info = real(&mut View::new(&mut data, 4, 4), &mut re, &mut im, vectors);
        assert_eq!(info, NOT_FINITE);
    }
}

/// Matrices, column by column, and what the LAPACK inside NumPy answers for them, in its order.
type Known = (usize, &'static [(f64, f64)], &'static [(f64, f64)]);

#[rustfmt::skip]
const KNOWN: [Known; 7] = [
        (2, &[(8.0000, 0.0000), (2.0000, 0.0000), (-10.0000, 0.0000), (-2.0000, 0.0000)], &[(5.2361, 0.0000), (0.7639, 0.0000)]),
        (2, &[(-3.0000, 0.0000), (1.0000, 0.0000), (13.0000, 0.0000), (-1.0000, 0.0000)], &[(-5.7417, 0.0000), (1.7417, 0.0000)]),
        (2, &[(2.0000, 0.0000), (4.0000, 0.0000), (-1.0000, 0.0000), (-1.0000, 0.0000)], &[(0.5000, 1.3229), (0.5000, -1.3229)]),
        (2, &[(-1.0000, 0.0000), (8.0000, 0.0000), (2.0000, 0.0000), (-1.0000, 0.0000)], &[(3.0000, 0.0000), (-5.0000, 0.0000)]),
        (3, &[(4.0000, 3.0000), (3.0000, 0.0000), (-4.0000, 3.0000), (2.0000, -2.0000), (-11.0000, 0.0000), (-7.0000, 1.0000), (0.0000, -4.0000), (4.0000, 6.0000), (1.0000, 4.0000)], &[(6.2270, 5.1376), (-2.2095, -3.2449), (-10.0175, 5.1072)]),
        (4, &[(-1.0000, 3.0000), (-1.0000, 1.0000), (3.0000, 1.0000), (-4.0000, -1.0000), (-4.0000, 5.0000), (-3.0000, -2.0000), (2.0000, -4.0000), (3.0000, -7.0000), (2.0000, -9.0000), (1.0000, 6.0000), (-7.0000, 6.0000), (-8.0000, 7.0000), (2.0000, -2.0000), (-10.0000, -5.0000), (0.0000, 0.0000), (-4.0000, 3.0000)], &[(-8.6485, -4.8863), (1.3393, -2.8264), (-8.0226, 7.2238), (0.3318, 10.4888)]),
        (6, &[(3.0000, 4.0000), (5.0000, 8.0000), (-5.0000, 5.0000), (-1.0000, -1.0000), (0.0000, 10.0000), (-8.0000, 3.0000), (5.0000, -5.0000), (-6.0000, -1.0000), (-7.0000, -4.0000), (1.0000, -2.0000), (2.0000, -1.0000), (-1.0000, 0.0000), (1.0000, -4.0000), (-2.0000, 3.0000), (0.0000, -1.0000), (-1.0000, 2.0000), (1.0000, -2.0000), (-2.0000, 1.0000), (-3.0000, -3.0000), (-1.0000, 1.0000), (5.0000, -3.0000), (3.0000, -3.0000), (10.0000, -5.0000), (2.0000, 0.0000), (-3.0000, 0.0000), (1.0000, 7.0000), (3.0000, 6.0000), (-3.0000, -4.0000), (6.0000, -5.0000), (-9.0000, 1.0000), (-3.0000, 3.0000), (2.0000, 3.0000), (1.0000, 3.0000), (1.0000, 2.0000), (6.0000, 2.0000), (5.0000, -6.0000)], &[(-15.3056, 0.7596), (8.2660, -15.3385), (9.6082, 6.6669), (3.3256, 3.8887), (5.3272, -6.0087), (-0.2214, -1.9680)]),
];

#[test]
fn complex_values_come_in_the_order_of_lapack() {
    for (order, data, expected) in KNOWN {
        let data: Vec<c64> = data.iter().map(|(re, im)| c64::new(*re, *im)).collect();
        let narrow: Vec<c32> = data
            .iter()
            .map(|value| Complex::from_parts(f32::of(value.re), f32::of(value.im)))
            .collect();
        let wide = complex_values(&data, order);
        let narrow = complex_values(&narrow, order);
        for (index, (re, im)) in expected.iter().enumerate() {
            let error = (wide[index] - c64::new(*re, *im)).modulus();
            assert!(error < 1e-3, "{order}: {wide:?} but {expected:?}");
            // Beyond a few rows, rounding has a say in which eigenvalue single precision finds first.
            let error = f64::from((narrow[index].re - f32::of(*re)).abs())
                + f64::from((narrow[index].im - f32::of(*im)).abs());
            assert!(
                order > 4 || error < 1e-3,
                "{order}: {narrow:?} but {expected:?}"
            );
        }
        check_complex(&data, order);
    }
}

fn complex_values<R: Real>(data: &[Complex<R>], order: usize) -> Vec<Complex<R>>
where
    Complex<R>: Scalar<Part = R>,
{
    let mut values = vec![Complex::<R>::ZERO; order];
    let mut work = data.to_vec();
    let none = Vectors {
        left: None,
        right: None,
    };
    let info = complex(&mut View::new(&mut work, order, order), &mut values, none);
    assert_eq!(info, 0);
    values
}
