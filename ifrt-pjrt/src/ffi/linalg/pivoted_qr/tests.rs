//! The factors against the permuted matrix, and the order of the columns.

use super::super::testing::*;
use super::*;
use faer::Mat;

for_each_type! {
    factors_give_the_permuted_matrix_back;
    the_diagonal_falls_and_shows_the_rank;
    fixed_columns_come_first;
    numbers_that_are_none_pass_through;
}

fn factored<T: Scalar>(
    data: &[T],
    rows: usize,
    cols: usize,
    pivots: &[i32],
) -> (Mat<T>, Vec<i32>, Mat<T>) {
    let mut factors = data.to_vec();
    let mut tau = vec![T::ZERO; rows.min(cols)];
    let mut pivots = pivots.to_vec();
    factor(
        &mut View::new(&mut factors, rows, cols),
        &mut pivots,
        &mut tau,
    );
    let r = upper(mat(&factors, rows, cols).as_ref(), rows.min(cols));
    let mut q = factors;
    q.truncate(rows * rows.min(cols));
    qr::generate(&mut View::new(&mut q, rows, rows.min(cols)), &tau);
    let q = mat(&q, rows, rows.min(cols));
    assert_orthonormal(q.as_ref(), "Q");
    let mut sorted = pivots.clone();
    sorted.sort_unstable();
    assert!(
        sorted
            .iter()
            .enumerate()
            .all(|(col, pivot)| *pivot == one_based(col))
    );
    let permuted = permuted(mat(data, rows, cols).as_ref(), &pivots);
    assert_close(
        times(q.as_ref(), r.as_ref()).as_ref(),
        permuted.as_ref(),
        "Q R",
    );
    (r, pivots, q)
}

fn factors_give_the_permuted_matrix_back<T: Scalar>() {
    for (rows, cols) in SHAPES {
        factored(
            &Random(41).matrix::<T>(rows, cols),
            rows,
            cols,
            &vec![0; cols],
        );
    }
}

fn the_diagonal_falls_and_shows_the_rank<T: Scalar>() {
    let (rows, cols, rank) = (50, 30, 12);
    let mut random = Random(42);
    let left = mat(&random.matrix::<T>(rows, rank), rows, rank);
    let right = mat(&random.matrix::<T>(rank, cols), rank, cols);
    let product = times(left.as_ref(), right.as_ref());
    let data: Vec<T> = (0..cols)
        .flat_map(|col| (0..rows).map(move |row| (row, col)))
        .map(|at| product[at])
        .collect();
    let (r, ..) = factored(&data, rows, cols, &vec![0; cols]);
    let sizes: Vec<f64> = (0..cols).map(|at| to_f64(r[(at, at)].modulus())).collect();
    for pair in sizes[..rank].windows(2) {
        assert!(pair[1] <= pair[0] * 1.001);
    }
    let limit = 100.0 * to_f64(T::Part::EPSILON) * sizes[0];
    assert!(sizes[rank..].iter().all(|size| *size <= limit));
}

fn fixed_columns_come_first<T: Scalar>() {
    let data = Random(43).matrix::<T>(9, 6);
    let (_, pivots, _) = factored(&data, 9, 6, &[0, 0, 1, 0, 7, 0]);
    assert_eq!(pivots[..2], [3, 5]);
    // More fixed columns than rows.
    let data = Random(44).matrix::<T>(3, 6);
    let (_, pivots, _) = factored(&data, 3, 6, &[1; 6]);
    assert_eq!(pivots, [1, 2, 3, 4, 5, 6]);
}

fn numbers_that_are_none_pass_through<T: Scalar>() {
    for poison in poisons::<T>() {
        let mut data = Random(45).matrix::<T>(10, 8);
        data[33] = poison;
        let (mut pivots, mut tau) = (vec![0; 8], vec![T::ZERO; 8]);
        factor(&mut View::new(&mut data, 10, 8), &mut pivots, &mut tau);
        pivots.sort_unstable();
        assert_eq!(pivots, [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
