//! The factors against the matrix; pivots and failures as LAPACK counts them.

use super::super::testing::*;
use super::*;
use faer::Mat;

for_each_type! {
    factors_give_the_matrix_back;
    pivots_are_the_largest_elements;
    singular_matrices_are_factored_to_the_end;
    numbers_that_are_none_pass_through;
}

fn factored<T: Scalar>(data: &[T], rows: usize, cols: usize) -> (Vec<T>, Vec<i32>, i32) {
    let mut factors = data.to_vec();
    let mut pivots = vec![0; rows.min(cols)];
    let info = factor(&mut View::new(&mut factors, rows, cols), &mut pivots);
    (factors, pivots, info)
}

/// `P L U`.
fn product<T: Scalar>(factors: &[T], pivots: &[i32], rows: usize, cols: usize) -> Mat<T> {
    let count = rows.min(cols);
    let both = mat(factors, rows, cols);
    let lower = Mat::from_fn(rows, count, |row, col| match row.cmp(&col) {
        std::cmp::Ordering::Less => T::ZERO,
        std::cmp::Ordering::Equal => T::ONE,
        std::cmp::Ordering::Greater => both[(row, col)],
    });
    let product = times(lower.as_ref(), upper(both.as_ref(), count).as_ref());
    let mut data: Vec<T> = (0..cols)
        .flat_map(|col| (0..rows).map(move |row| (row, col)))
        .map(|at| product[at])
        .collect();
    let mut view = View::new(&mut data, rows, cols);
    for (row, pivot) in pivots.iter().enumerate().rev() {
        view.swap_rows(row, usize::try_from(*pivot).unwrap() - 1);
    }
    mat(&data, rows, cols)
}

fn factors_give_the_matrix_back<T: Scalar>() {
    for (rows, cols) in SHAPES {
        let data = Random(11).matrix::<T>(rows, cols);
        let (factors, pivots, info) = factored(&data, rows, cols);
        assert_eq!(info, 0);
        let product = product(&factors, &pivots, rows, cols);
        assert_close(product.as_ref(), mat(&data, rows, cols).as_ref(), "P L U");
    }
}

fn pivots_are_the_largest_elements<T: Scalar>() {
    let (factors, pivots, _) = factored(&Random(12).matrix::<T>(60, 45), 60, 45);
    let limit = <T::Part as Real>::of(if T::IS_COMPLEX { 1.4143 } else { 1.0 });
    for col in 0..45 {
        let pivot = usize::try_from(pivots[col]).unwrap() - 1;
        assert!((col..60).contains(&pivot));
        assert!(
            factors[col * 60 + col + 1..(col + 1) * 60]
                .iter()
                .all(|e| e.modulus() <= limit)
        );
    }
    let column: Vec<T> = [1.0, -3.0, 2.0]
        .into_iter()
        .map(|e| T::from_re(<T::Part as Real>::of(e)))
        .collect();
    assert_eq!(factored(&column, 3, 1).1, [2]);
}

fn singular_matrices_are_factored_to_the_end<T: Scalar>() {
    for order in [2, 5, 30] {
        let mut data = Random(13).matrix::<T>(order, order);
        data[order..2 * order].fill(T::ZERO);
        let (factors, pivots, info) = factored(&data, order, order);
        assert_eq!(info, 2);
        let product = product(&factors, &pivots, order, order);
        assert_close(product.as_ref(), mat(&data, order, order).as_ref(), "P L U");
    }
    let (factors, pivots, info) = factored(&[T::ZERO; 9], 3, 3);
    assert_eq!((info, pivots), (1, vec![1, 2, 3]));
    assert!(factors.iter().all(|element| *element == T::ZERO));
}

fn numbers_that_are_none_pass_through<T: Scalar>() {
    for poison in poisons::<T>() {
        let mut data = Random(14).matrix::<T>(40, 40);
        data[123] = poison;
        let (_, pivots, _) = factored(&data, 40, 40);
        assert!(pivots.iter().all(|pivot| (1..=40).contains(pivot)));
    }
}
