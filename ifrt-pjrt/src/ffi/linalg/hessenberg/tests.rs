//! `Q H Q^H` against the matrix.

use super::super::testing::*;
use super::*;
use faer::Mat;

for_each_type! {
    factors_give_the_matrix_back;
    only_the_given_rows_are_reduced;
    numbers_that_are_none_pass_through;
}

fn check<T: Scalar>(data: &[T], order: usize, low: usize, high: usize) -> Mat<T> {
    let mut h = data.to_vec();
    let mut tau = vec![T::ONE; order.saturating_sub(1)];
    let mut q = vec![T::ZERO; order * order];
    let mut view = View::new(&mut h, order, order);
    reduce(&mut view, low, high, &mut tau);
    generate(&mut view, &tau, &mut View::new(&mut q, order, order));
    let (h, q) = (mat(&h, order, order), mat(&q, order, order));
    assert_orthonormal(q.as_ref(), "Q");
    for col in 0..order {
        for row in col + 2..order {
            assert_eq!(h[(row, col)], T::ZERO);
        }
    }
    let product = times(
        times(q.as_ref(), h.as_ref()).as_ref(),
        adjoint(q.as_ref()).as_ref(),
    );
    assert_close(
        product.as_ref(),
        mat(data, order, order).as_ref(),
        "Q H Q^H",
    );
    q
}

fn factors_give_the_matrix_back<T: Scalar>() {
    for order in ORDERS {
        check(&Random(71).matrix::<T>(order, order), order, 0, order);
    }
}

fn only_the_given_rows_are_reduced<T: Scalar>() {
    let (order, low, high) = (8, 2, 6);
    let mut data = Random(72).matrix::<T>(order, order);
    for col in 0..order {
        for row in col + 1..order {
            if col < low || row >= high {
                data[row + col * order] = T::ZERO;
            }
        }
    }
    let q = check(&data, order, low, high);
    for position in [0, 1, 2, 6, 7] {
        assert_eq!(q[(position, position)], T::ONE);
    }
}

fn numbers_that_are_none_pass_through<T: Scalar>() {
    for poison in poisons::<T>() {
        let mut data = Random(73).matrix::<T>(9, 9);
        data[40] = poison;
        reduce(&mut View::new(&mut data, 9, 9), 0, 9, &mut [T::ZERO; 8]);
    }
}
