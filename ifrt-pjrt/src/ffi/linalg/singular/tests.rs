//! `U diag(s) V^H` against the matrix, whole and thin.

use super::super::scalar::Real;
use super::super::testing::*;
use super::*;

for_each_type! {
    parts_give_the_matrix_back;
    values_alone_are_the_same;
    ranks_are_visible;
    tiny_and_huge_matrices_keep_their_digits;
    numbers_that_are_none_are_refused;
}

fn parts<T: Scalar>(data: &[T], rows: usize, cols: usize, whole: bool) -> Vec<T::Part> {
    let count = rows.min(cols);
    let (u_cols, v_rows) = if whole { (rows, cols) } else { (count, count) };
    let mut values = vec![<T::Part as Scalar>::ZERO; count];
    let (mut u, mut vt) = (vec![T::ZERO; rows * u_cols], vec![T::ZERO; v_rows * cols]);
    let mut work = data.to_vec();
    let info = decompose(
        &mut View::new(&mut work, rows, cols),
        &mut values,
        Some((
            &mut View::new(&mut u, rows, u_cols),
            &mut View::new(&mut vt, v_rows, cols),
        )),
    );
    assert_eq!(info, 0);
    let (u, vt) = (mat(&u, rows, u_cols), mat(&vt, v_rows, cols));
    assert_orthonormal(u.as_ref(), "U");
    assert_orthonormal(adjoint(vt.as_ref()).as_ref(), "V");
    assert!(values.windows(2).all(|pair| pair[0] >= pair[1]));
    assert!(
        values
            .iter()
            .all(|value| *value >= <T::Part as Scalar>::ZERO)
    );
    let (u, vt) = (u.as_ref().subcols(0, count), vt.as_ref().subrows(0, count));
    let product = times(times(u, diagonal::<T>(&values).as_ref()).as_ref(), vt);
    assert_close(product.as_ref(), mat(data, rows, cols).as_ref(), "U S V^H");
    values
}

fn parts_give_the_matrix_back<T: Scalar>() {
    for (rows, cols) in SHAPES {
        let data = Random(51).matrix::<T>(rows, cols);
        for whole in [false, true] {
            parts(&data, rows, cols, whole);
        }
    }
}

fn values_alone_are_the_same<T: Scalar>() {
    for (rows, cols) in SHAPES {
        let data = Random(52).matrix::<T>(rows, cols);
        let expected = parts(&data, rows, cols, false);
        let mut values = vec![<T::Part as Scalar>::ZERO; rows.min(cols)];
        let mut work = data;
        assert_eq!(
            decompose(&mut View::new(&mut work, rows, cols), &mut values, None),
            0
        );
        assert_close(
            diagonal::<T>(&values).as_ref(),
            diagonal::<T>(&expected).as_ref(),
            "values alone",
        );
    }
}

fn ranks_are_visible<T: Scalar>() {
    assert!(
        parts(&[T::ZERO; 12], 4, 3, true)
            .iter()
            .all(|v| *v == <T::Part as Scalar>::ZERO)
    );
    let ones = vec![T::ONE; 200 * 150];
    let values = parts(&ones, 200, 150, false);
    assert!(to_f64(values[1]) < 1e-3 * to_f64(values[0]));
}

fn tiny_and_huge_matrices_keep_their_digits<T: Scalar>() {
    let exponent = if to_f64(T::Part::EPSILON) > 1e-10 {
        100
    } else {
        900
    };
    for exponent in [exponent, 40, -20, -exponent] {
        let scale = <T::Part as Real>::power_of_two(exponent);
        let data: Vec<T> = Random(53)
            .matrix::<T>(12, 9)
            .into_iter()
            .map(|e: T| e.scaled(scale))
            .collect();
        parts(&data, 12, 9, true);
    }
}

fn numbers_that_are_none_are_refused<T: Scalar>() {
    for poison in poisons::<T>() {
        let mut data = Random(54).matrix::<T>(6, 6);
        data[8] = poison;
        let mut values = vec![<T::Part as Scalar>::ZERO; 6];
        assert_eq!(
            decompose(&mut View::new(&mut data, 6, 6), &mut values, None),
            NOT_FINITE
        );
    }
}
