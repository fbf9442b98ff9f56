//! The factor against the matrix, the untouched triangle, and failures as LAPACK counts them.

use super::super::scalar::Real;
use super::super::testing::*;
use super::*;
use faer::Mat;

for_each_type! {
    the_factor_gives_the_matrix_back_and_leaves_the_other_triangle;
    the_first_minor_that_is_not_positive_is_named;
    numbers_that_are_none_are_a_failure;
}

fn the_factor_gives_the_matrix_back_and_leaves_the_other_triangle<T: Scalar>() {
    for order in ORDERS {
        for triangle in [Triangle::Lower, Triangle::Upper] {
            let whole = Random(21).hermitian::<T>(order, order);
            let inside = |row: usize, col: usize| match triangle {
                Triangle::Lower => row >= col,
                Triangle::Upper => row <= col,
            };
            let poison = poisons::<T>()[0];
            let mut data = whole.clone();
            for col in 0..order {
                for row in (0..order).filter(|row| !inside(*row, col)) {
                    data[row + col * order] = poison;
                }
                // An imaginary part on the diagonal is to be ignored.
                let diagonal = &mut data[col * (order + 1)];
                *diagonal = T::from_parts(diagonal.re(), <T::Part as Scalar>::ONE);
            }
            assert_eq!(factor(&mut View::new(&mut data, order, order), triangle), 0);
            let result = mat(&data, order, order);
            let l = Mat::from_fn(order, order, |row, col| match triangle {
                _ if row < col => T::ZERO,
                Triangle::Lower => result[(row, col)],
                Triangle::Upper => result[(col, row)].conjugate(),
            });
            let product = times(l.as_ref(), adjoint(l.as_ref()).as_ref());
            assert_close(
                product.as_ref(),
                mat(&whole, order, order).as_ref(),
                "L L^H",
            );
            for col in 0..order {
                for row in (0..order).filter(|row| !inside(*row, col)) {
                    assert!(!result[(row, col)].finite(), "({row}, {col}) was written");
                }
            }
        }
    }
}

fn the_first_minor_that_is_not_positive_is_named<T: Scalar>() {
    for order in [1, 3, 20, 100] {
        for position in [0, order / 2, order - 1] {
            for value in [0.0, -5000.0] {
                let mut data = vec![T::ZERO; order * order];
                View::new(&mut data, order, order).fill_identity();
                data[position * (order + 1)] = T::from_re(<T::Part as Real>::of(value));
                for triangle in [Triangle::Lower, Triangle::Upper] {
                    let mut data = data.clone();
                    let info = factor(&mut View::new(&mut data, order, order), triangle);
                    assert_eq!(info, one_based(position), "{order} {position} {value}");
                }
            }
        }
    }
}

fn numbers_that_are_none_are_a_failure<T: Scalar>() {
    for order in [1, 7, 80] {
        let mut data = Random(22).hermitian::<T>(order, order);
        let last = data.len() - 1;
        data[last] = poisons::<T>()[0];
        let info = factor(&mut View::new(&mut data, order, order), Triangle::Lower);
        assert_eq!(info, one_based(order - 1));
        for poison in poisons::<T>() {
            let mut data = Random(22).hermitian::<T>(order, order);
            data[0] = poison;
            factor(&mut View::new(&mut data, order, order), Triangle::Lower);
        }
    }
}
