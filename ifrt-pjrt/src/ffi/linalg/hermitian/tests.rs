//! Eigenvectors against the matrix, the reduction against its reflectors.

use super::super::testing::*;
use super::*;

for_each_type! {
    eigenvectors_give_the_matrix_back;
    values_alone_are_the_same;
    equal_and_extreme_values_are_found;
    numbers_that_are_none_are_a_failure;
    the_reduction_gives_the_matrix_back;
    the_reduction_leaves_the_other_triangle;
}

const TRIANGLES: [Triangle; 2] = [Triangle::Lower, Triangle::Upper];

/// A matrix with only one triangle of `whole`, the other one full of numbers that are none.
fn half_of<T: Scalar>(whole: &[T], order: usize, triangle: Triangle) -> Vec<T> {
    let poison = poisons::<T>()[0];
    let mut data = whole.to_vec();
    for col in 0..order {
        for row in 0..order {
            let outside = match triangle {
                Triangle::Lower => row < col,
                Triangle::Upper => row > col,
            };
            if outside {
                data[row + col * order] = poison;
            }
        }
    }
    data
}

fn check<T: Scalar>(whole: &[T], order: usize) -> Vec<T::Part> {
    let mut values = vec![<T::Part as Scalar>::ZERO; order];
    for triangle in TRIANGLES {
        let mut data = half_of(whole, order, triangle);
        let info = eigen(
            &mut View::new(&mut data, order, order),
            triangle,
            &mut values,
            true,
        );
        assert_eq!(info, 0);
        let vectors = mat(&data, order, order);
        assert_orthonormal(vectors.as_ref(), "vectors");
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1]));
        let scaled = times(vectors.as_ref(), diagonal::<T>(&values).as_ref());
        let product = times(scaled.as_ref(), adjoint(vectors.as_ref()).as_ref());
        assert_close(
            product.as_ref(),
            mat(whole, order, order).as_ref(),
            "V W V^H",
        );
    }
    values
}

fn eigenvectors_give_the_matrix_back<T: Scalar>() {
    for order in ORDERS {
        check(&Random(61).hermitian::<T>(order, 0), order);
    }
}

fn values_alone_are_the_same<T: Scalar>() {
    for order in ORDERS {
        let whole = Random(62).hermitian::<T>(order, 0);
        let expected = check(&whole, order);
        let mut values = expected.clone();
        for triangle in TRIANGLES {
            values.fill(<T::Part as Scalar>::ZERO);
            let mut data = half_of(&whole, order, triangle);
            let info = eigen(
                &mut View::new(&mut data, order, order),
                triangle,
                &mut values,
                false,
            );
            assert_eq!(info, 0);
            assert_close(
                diagonal::<T>(&values).as_ref(),
                diagonal::<T>(&expected).as_ref(),
                "values alone",
            );
        }
    }
}

fn equal_and_extreme_values_are_found<T: Scalar>() {
    for order in [3, 40, 140] {
        check(&vec![T::ZERO; order * order], order);
        check(&vec![T::ONE; order * order], order);
        let mut identity = vec![T::ZERO; order * order];
        View::new(&mut identity, order, order).fill_identity();
        check(&identity, order);
        for exponent in [-110, -20, 40, 110] {
            let scale = <T::Part as Real>::power_of_two(exponent);
            let whole = Random(63).hermitian::<T>(order, 0);
            let whole: Vec<T> = whole.into_iter().map(|e: T| e.scaled(scale)).collect();
            check(&whole, order);
        }
    }
}

fn numbers_that_are_none_are_a_failure<T: Scalar>() {
    for poison in poisons::<T>() {
        for vectors in [false, true] {
            let mut data = Random(64).hermitian::<T>(20, 0);
            data[5] = poison;
            let mut values = vec![<T::Part as Scalar>::ZERO; 20];
            let mut view = View::new(&mut data, 20, 20);
            assert_ne!(eigen(&mut view, Triangle::Lower, &mut values, vectors), 0);
        }
    }
}

struct Reduced<T: Scalar> {
    data: Vec<T>,
    diagonal: Vec<T::Part>,
    off_diagonal: Vec<T::Part>,
    tau: Vec<T>,
}

fn reduced<T: Scalar>(data: Vec<T>, order: usize, triangle: Triangle) -> Reduced<T> {
    let zero = <T::Part as Scalar>::ZERO;
    let less = order.saturating_sub(1);
    let mut reduced = Reduced {
        data,
        diagonal: vec![zero; order],
        off_diagonal: vec![zero; less],
        tau: vec![T::ZERO; less],
    };
    tridiagonalize(
        &mut View::new(&mut reduced.data, order, order),
        triangle,
        &mut reduced.diagonal,
        &mut reduced.off_diagonal,
        &mut reduced.tau,
    );
    reduced
}

/// `Q` as LAPACK defines it: `H(1) H(2) …` for the lower triangle, `H(n-1) … H(1)` for the upper one.
fn q_of<T: Scalar>(reduced: &Reduced<T>, order: usize, triangle: Triangle) -> Mat<T> {
    let mut q = vec![T::ZERO; order * order];
    let mut view = View::new(&mut q, order, order);
    view.fill_identity();
    for step in 0..order.saturating_sub(1) {
        let mut v = vec![T::ZERO; order];
        let index = match triangle {
            Triangle::Lower => {
                v[step + 1] = T::ONE;
                let below = &reduced.data[step * order..(step + 1) * order][step + 2..];
                v[step + 2..].copy_from_slice(below);
                step
            }
            Triangle::Upper => {
                let col = order - 1 - step;
                v[col - 1] = T::ONE;
                v[..col - 1].copy_from_slice(&reduced.data[col * order..][..col - 1]);
                col - 1
            }
        };
        reflector::apply_one(&mut view, &v, reduced.tau[index], reflector::Side::Right);
    }
    mat(&q, order, order)
}

fn the_reduction_gives_the_matrix_back<T: Scalar>() {
    for order in ORDERS {
        let whole = Random(65).hermitian::<T>(order, 0);
        for triangle in TRIANGLES {
            let reduced = reduced(half_of(&whole, order, triangle), order, triangle);
            let q = q_of(&reduced, order, triangle);
            assert_orthonormal(q.as_ref(), "Q");
            let t = Mat::from_fn(order, order, |row, col| {
                T::from_re(match row.abs_diff(col) {
                    0 => reduced.diagonal[row],
                    1 => reduced.off_diagonal[row.min(col)],
                    _ => <T::Part as Scalar>::ZERO,
                })
            });
            let product = times(
                times(q.as_ref(), t.as_ref()).as_ref(),
                adjoint(q.as_ref()).as_ref(),
            );
            assert_close(
                product.as_ref(),
                mat(&whole, order, order).as_ref(),
                "Q T Q^H",
            );
        }
    }
}

fn the_reduction_leaves_the_other_triangle<T: Scalar>() {
    let order = 9;
    let whole = Random(66).hermitian::<T>(order, 0);
    for triangle in TRIANGLES {
        let before = half_of(&whole, order, triangle);
        let after = reduced(before.clone(), order, triangle);
        for (before, after) in before.iter().zip(&after.data) {
            assert_eq!(before.finite(), after.finite());
        }
        // The reduced diagonals stand in the matrix, too.
        for row in 0..order {
            assert_eq!(
                after.data[row * (order + 1)],
                T::from_re(after.diagonal[row])
            );
        }
    }
}
