//! The factors against the matrix, and products with `Q` against `Q` itself.

use super::super::scalar::Real;
use super::super::testing::*;
use super::*;
use faer::Mat;

for_each_type! {
    factors_give_the_matrix_back;
    the_diagonal_of_r_is_real;
    products_with_q_are_those_of_its_matrix;
    zero_columns_have_no_reflector;
    numbers_that_are_none_pass_through;
    tiny_and_huge_columns_keep_their_digits;
}

fn factored<T: Scalar>(data: &[T], rows: usize, cols: usize) -> (Vec<T>, Vec<T>) {
    let mut factors = data.to_vec();
    let mut tau = vec![T::ZERO; rows.min(cols)];
    factor(&mut View::new(&mut factors, rows, cols), &mut tau);
    (factors, tau)
}

/// The first `count` columns of `Q`.
fn q_of<T: Scalar>(factors: &[T], tau: &[T], rows: usize, count: usize) -> Mat<T> {
    let mut q = factors.to_vec();
    q.resize(rows * count, T::ZERO);
    generate(&mut View::new(&mut q, rows, count), tau);
    mat(&q, rows, count)
}

fn factors_give_the_matrix_back<T: Scalar>() {
    for (rows, cols) in SHAPES {
        let data = Random(1).matrix::<T>(rows, cols);
        let (factors, tau) = factored(&data, rows, cols);
        let count = rows.min(cols);
        for width in [count, rows] {
            let q = q_of(&factors, &tau, rows, width);
            assert_orthonormal(q.as_ref(), "Q");
            let r = upper(mat(&factors, rows, cols).as_ref(), width);
            let product = times(q.as_ref(), r.as_ref());
            assert_close(product.as_ref(), mat(&data, rows, cols).as_ref(), "Q R");
        }
    }
}

fn the_diagonal_of_r_is_real<T: Scalar>() {
    let (factors, _) = factored(&Random(2).matrix::<T>(50, 40), 50, 40);
    for position in 0..40 {
        assert_eq!(factors[position * 51].im(), <T::Part as Scalar>::ZERO);
    }
}

fn products_with_q_are_those_of_its_matrix<T: Scalar>() {
    for (order, reflectors) in [(5, 3), (40, 40), (70, 65), (6, 0)] {
        let mut random = Random(3);
        let (factors, tau) = factored(&random.matrix::<T>(order, reflectors), order, reflectors);
        let q = q_of(&factors, &tau, order, order);
        let other = 9;
        for (side, op) in [
            (Side::Left, Op::Plain),
            (Side::Left, Op::Adjoint),
            (Side::Right, Op::Plain),
            (Side::Right, Op::Adjoint),
        ] {
            let (rows, cols) = if side == Side::Left {
                (order, other)
            } else {
                (other, order)
            };
            let c = random.matrix::<T>(rows, cols);
            let mut actual = c.clone();
            let factors = super::super::view::matrix(&factors, order, reflectors);
            multiply(
                factors,
                &tau,
                &mut View::new(&mut actual, rows, cols),
                side,
                op,
            );
            let q = if op == Op::Plain {
                q.clone()
            } else {
                adjoint(q.as_ref())
            };
            let c = mat(&c, rows, cols);
            let expected = match side {
                Side::Left => times(q.as_ref(), c.as_ref()),
                Side::Right => times(c.as_ref(), q.as_ref()),
            };
            assert_close(
                mat(&actual, rows, cols).as_ref(),
                expected.as_ref(),
                "product",
            );
        }
    }
}

fn zero_columns_have_no_reflector<T: Scalar>() {
    let (factors, tau) = factored(&[T::ZERO; 12], 4, 3);
    assert!(
        factors
            .iter()
            .chain(&tau)
            .all(|element| *element == T::ZERO)
    );
    // A column that is a multiple of the first unit vector already needs none either.
    let (factors, tau) = factored(&[T::from_re(-<T::Part as Scalar>::ONE), T::ZERO], 2, 1);
    assert_eq!((factors[0], tau[0]), (-T::ONE, T::ZERO));
}

fn numbers_that_are_none_pass_through<T: Scalar>() {
    for poison in poisons::<T>() {
        let mut data = Random(4).matrix::<T>(40, 40);
        data[77] = poison;
        let (factors, tau) = factored(&data, 40, 40);
        q_of(&factors, &tau, 40, 40);
    }
}

fn tiny_and_huge_columns_keep_their_digits<T: Scalar>() {
    for exponent in [-120, 120] {
        let scale = <T::Part as Real>::power_of_two(exponent);
        let data: Vec<T> = Random(5)
            .matrix::<T>(20, 6)
            .into_iter()
            .map(|e: T| e.scaled(scale))
            .collect();
        let (factors, tau) = factored(&data, 20, 6);
        let q = q_of(&factors, &tau, 20, 6);
        assert_orthonormal(q.as_ref(), "Q");
        let r = upper(mat(&factors, 20, 6).as_ref(), 6);
        assert_close(
            times(q.as_ref(), r.as_ref()).as_ref(),
            mat(&data, 20, 6).as_ref(),
            "Q R",
        );
    }
}
