//! Every combination of side, triangle, form and diagonal.

use super::super::scalar::Real;
use super::super::testing::*;
use super::*;
use faer::Mat;

for_each_type! {
    solutions_solve_their_systems;
    zero_on_the_diagonal_gives_infinite_values;
}

fn solutions_solve_their_systems<T: Scalar>() {
    for (order, other) in [(0, 3), (1, 1), (3, 0), (4, 7), (35, 5), (80, 80)] {
        let mut random = Random(31);
        let mut a = random.matrix::<T>(order, order);
        let small = <T::Part as Real>::of(1.0 / f64::from(u32::try_from(order.max(1)).unwrap()));
        for (index, element) in a.iter_mut().enumerate() {
            let diagonal = index % (order + 1) == 0;
            *element = element.scaled(small) + if diagonal { T::ONE } else { T::ZERO };
        }
        for side in [Side::Left, Side::Right] {
            for triangle in [Triangle::Lower, Triangle::Upper] {
                for form in [Form::Plain, Form::Transpose, Form::Adjoint] {
                    for unit_diagonal in [false, true] {
                        let (rows, cols) = if side == Side::Left {
                            (order, other)
                        } else {
                            (other, order)
                        };
                        let b = random.matrix::<T>(rows, cols);
                        let mut x = b.clone();
                        solve(
                            super::super::view::matrix(&a, order, order),
                            &mut View::new(&mut x, rows, cols),
                            side,
                            triangle,
                            form,
                            unit_diagonal,
                        );
                        let plain = Mat::from_fn(order, order, |row, col| {
                            let inside = match triangle {
                                Triangle::Lower => row > col,
                                Triangle::Upper => row < col,
                            };
                            match (row == col, inside) {
                                (true, _) if unit_diagonal => T::ONE,
                                (true, _) | (_, true) => a[row + col * order],
                                _ => T::ZERO,
                            }
                        });
                        let op = Mat::from_fn(order, order, |row, col| match form {
                            Form::Plain => plain[(row, col)],
                            Form::Transpose => plain[(col, row)],
                            Form::Adjoint => plain[(col, row)].conjugate(),
                        });
                        let x = mat(&x, rows, cols);
                        let product = match side {
                            Side::Left => times(op.as_ref(), x.as_ref()),
                            Side::Right => times(x.as_ref(), op.as_ref()),
                        };
                        assert_close(product.as_ref(), mat(&b, rows, cols).as_ref(), "op(A) X");
                    }
                }
            }
        }
    }
}

fn zero_on_the_diagonal_gives_infinite_values<T: Scalar>() {
    let a = [T::ONE, T::ZERO, T::ZERO, T::ZERO];
    let mut b = [T::ONE, T::ONE];
    solve(
        super::super::view::matrix(&a, 2, 2),
        &mut View::new(&mut b, 2, 1),
        Side::Left,
        Triangle::Lower,
        Form::Plain,
        false,
    );
    assert_eq!(b[0], T::ONE);
    assert!(!b[1].finite());
}
