//! Custom calls of linear algebra, as JAX 0.10.2 lowers them, on a real plugin.
//!
//! `data/custom_calls.txt` holds one call for each target. Every one is compiled and run, and its
//! results are put to the test that defines them.

mod calls;

use faer::{Mat, c64};
use ifrt::Code;

use crate::support::*;
use calls::{Outcome, all_calls, find};

/// What rounding may do to a product of matrices with elements of about 1.
fn tolerance(name: &str) -> f64 {
    let single =
        name.contains("lapack_s") || name.contains("lapack_c") || !name.contains("lapack_");
    if single { 2e-4 } else { 1e-11 }
}

#[track_caller]
fn assert_close(name: &str, actual: &Mat<c64>, expected: &Mat<c64>) {
    assert_eq!(actual.shape(), expected.shape(), "{name}");
    let error = (actual - expected).norm_max();
    // A comparison with NaN fails, too.
    assert!(
        error <= tolerance(name),
        "{name}: off by {error:e}: {actual:?} {expected:?}"
    );
}

fn upper(a: &Mat<c64>, rows: usize) -> Mat<c64> {
    Mat::from_fn(rows, a.ncols(), |row, col| {
        if row <= col {
            a[(row, col)]
        } else {
            c64::new(0.0, 0.0)
        }
    })
}

fn diagonal(values: &[c64]) -> Mat<c64> {
    Mat::from_fn(values.len(), values.len(), |row, col| {
        if row == col {
            values[row]
        } else {
            c64::new(0.0, 0.0)
        }
    })
}

fn adjoint(a: &Mat<c64>) -> Mat<c64> {
    a.adjoint().to_owned()
}

/// The columns of a matrix in the order of pivots that count from 1.
fn permuted(a: &Mat<c64>, pivots: &[c64]) -> Mat<c64> {
    Mat::from_fn(a.nrows(), a.ncols(), |row, col| {
        let from = (0..a.ncols()).find(|from| pivots[col].re == (*from + 1) as f64);
        a[(row, from.expect("a pivot"))]
    })
}

fn sum_of_squares(a: &Mat<c64>) -> c64 {
    c64::new(a.squared_norm_l2(), 0.0)
}

/// The routine of a target, without its type.
fn routine(name: &str) -> &str {
    match name
        .strip_prefix("lapack_")
        .and_then(|name| name.strip_suffix("_ffi"))
    {
        Some(name) => &name[1..],
        None => name,
    }
}

/// Checks the results of one matrix of a batch.
fn check(name: &str, outcome: &Outcome, batch: usize) {
    let arg = |index| outcome.arg(index, batch);
    let out = |index| outcome.result(index, batch);
    let list = |index| outcome.result_list(index, batch);
    let info = |index: usize| assert_eq!(list(index), [c64::new(0.0, 0.0)], "{name}");
    match routine(name) {
        "potrf" => {
            info(1);
            let l = Mat::from_fn(3, 3, |row, col| {
                adjoint(&upper(&adjoint(&out(0)), 3))[(row, col)]
            });
            assert_close(name, &(&l * adjoint(&l)), &arg(0));
        }
        "getrf" => {
            info(2);
            let both = out(0);
            let lower = Mat::from_fn(4, 3, |row, col| match row.cmp(&col) {
                std::cmp::Ordering::Less => c64::new(0.0, 0.0),
                std::cmp::Ordering::Equal => c64::new(1.0, 0.0),
                std::cmp::Ordering::Greater => both[(row, col)],
            });
            let product = lower * upper(&both, 3);
            let mut rows: Vec<usize> = (0..4).collect();
            for (row, pivot) in list(1).iter().enumerate() {
                let pivot = (0..4)
                    .find(|at| pivot.re == (*at + 1) as f64)
                    .expect("a pivot");
                rows.swap(row, pivot);
            }
            let expected = Mat::from_fn(4, 3, |row, col| arg(0)[(rows[row], col)]);
            assert_close(name, &product, &expected);
        }
        "geqrf" => {
            let r = upper(&out(0), 3);
            assert_close(name, &(adjoint(&r) * &r), &(adjoint(&arg(0)) * arg(0)));
        }
        "geqp3" => {
            let r = upper(&out(0), 3);
            let a = permuted(&arg(0), &list(1));
            assert_close(name, &(adjoint(&r) * &r), &(adjoint(&a) * &a));
        }
        // Without reflectors, Q is the identity.
        "orgqr" | "ungqr" => assert_close(name, &out(0), &Mat::identity(4, 3)),
        "ormqr" | "unmqr" => assert_close(name, &out(0), &arg(2)),
        "gesdd" | "gesvd" => {
            info(4);
            let product = out(2).subcols(0, 3) * diagonal(&list(1)) * out(3);
            assert_close(name, &product, &arg(0));
        }
        "syevd" | "heevd" => {
            info(2);
            assert_close(name, &(arg(0) * out(0)), &(out(0) * diagonal(&list(1))));
            assert_close(name, &(adjoint(&out(0)) * out(0)), &Mat::identity(3, 3));
        }
        "geev" => {
            let complex = outcome.results.len() == 4;
            let values: Vec<c64> = match complex {
                true => list(0),
                false => list(0)
                    .iter()
                    .zip(list(1))
                    .map(|(re, im)| c64::new(re.re, im.re))
                    .collect(),
            };
            let first = if complex { 1 } else { 2 };
            info(first + 2);
            let (left, right) = (out(first), out(first + 1));
            assert_close(name, &(arg(0) * &right), &(right * diagonal(&values)));
            assert_close(
                name,
                &(adjoint(&left) * arg(0)),
                &(diagonal(&values) * adjoint(&left)),
            );
        }
        "gees" => {
            info(outcome.results.len() - 1);
            assert_close(name, &(out(1) * out(0) * adjoint(&out(1))), &arg(0));
        }
        "gehrd" => {
            info(2);
            let h = Mat::from_fn(3, 3, |row, col| {
                if row <= col + 1 {
                    out(0)[(row, col)]
                } else {
                    c64::new(0.0, 0.0)
                }
            });
            let norms = |a: &Mat<c64>| Mat::from_fn(1, 1, |_, _| sum_of_squares(a));
            assert_close(name, &norms(&h), &norms(&arg(0)));
        }
        "sytrd" | "hetrd" => {
            info(4);
            let (d, e) = (list(1), list(2));
            let t = Mat::from_fn(3, 3, |row, col| match row.abs_diff(col) {
                0 => d[row],
                1 => e[row.min(col)],
                _ => c64::new(0.0, 0.0),
            });
            let norms = |a: &Mat<c64>| Mat::from_fn(1, 1, |_, _| sum_of_squares(a));
            assert_close(name, &norms(&t), &norms(&arg(0)));
        }
        "trsm" => {
            let lower = adjoint(&upper(&adjoint(&arg(0)), 3));
            assert_close(name, &(lower * out(0)), &arg(1));
        }
        "gtsv" | "tridiagonal_solve_perturbed_ffi" => {
            let x = if routine(name) == "gtsv" {
                info(4);
                out(3)
            } else {
                out(0)
            };
            let [below, main, above] = [0, 1, 2].map(|index| outcome.arg_list(index, batch));
            let t = Mat::from_fn(3, 3, |row, col| match (row, col) {
                (row, col) if row == col => main[row],
                (row, col) if row == col + 1 => below[row],
                (row, col) if row + 1 == col => above[row],
                _ => c64::new(0.0, 0.0),
            });
            assert_close(name, &(t * x), &arg(3));
        }
        "cpu_csr_sparse_dense_ffi" => {
            let values = outcome.arg_list(0, 0);
            let position =
                |value: &c64| (0..9).find(|at| *at as f64 == value.re).expect("an index");
            let starts: Vec<usize> = outcome.arg_list(1, 0).iter().map(position).collect();
            let columns: Vec<usize> = outcome.arg_list(2, 0).iter().map(position).collect();
            let mut dense = Mat::<c64>::zeros(3, 4);
            for row in 0..3 {
                for at in starts[row]..starts[row + 1] {
                    dense[(row, columns[at])] += values[at];
                }
            }
            assert_close(name, &(dense * arg(3)), &out(0));
        }
        other => panic!("no check for {other}"),
    }
}

#[test]
fn every_call_of_jax_is_served() {
    let client = client(1);
    let calls = all_calls();
    assert_eq!(calls.len(), 62);
    for call in &calls {
        let outcome = call.run(&client);
        for batch in 0..outcome.batches() {
            check(&call.name, &outcome, batch);
        }
    }
}

#[test]
fn registration_is_told_once_and_for_all() {
    let client = client(1);
    let once = ifrt_pjrt::ffi::register_lapack(client.plugin()).unwrap();
    let again = ifrt_pjrt::ffi::register_lapack(client.plugin()).unwrap();
    assert_eq!(once, again);
    assert_eq!(once.names().len(), 62);
    assert!(once.names().contains(&"lapack_zheevd_ffi"));
}

#[test]
fn failures_are_counted_and_other_matrices_of_the_batch_computed() {
    let client = client(1);
    let call = find("lapack_spotrf_ffi");
    let good = [4.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 9.0];
    let bad = [1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0];
    let arg = put(&client, &[2, 3, 3], &[bad, good].concat());
    let executable = compile(&client, &call.module());
    let results = run(&executable, &[&arg]).unwrap();
    let info: Vec<u8> = fetch_bytes(&results[1]).unwrap();
    assert_eq!(info, [2i32.to_le_bytes(), 0i32.to_le_bytes()].concat());
    let factors = fetch(&results[0]);
    assert_eq!([factors[9], factors[13], factors[17]], [2.0, 2.0, 3.0]);
}

#[test]
fn numbers_that_are_none_give_an_answer() {
    let client = client(1);
    for call in all_calls() {
        // Indices of a sparse matrix are whole numbers, always.
        for poison in [f64::NAN, f64::INFINITY] {
            call.run_with(&client, |_, _| poison);
        }
    }
}

#[test]
fn wrong_calls_are_errors_that_say_what_is_wrong() {
    let client = client(1);
    for (from, to, code, part) in [
        (
            "uplo = 76 : ui8",
            "uplo = 88 : ui8",
            Code::InvalidArgument,
            "\"uplo\"",
        ),
        (
            "uplo = 76 : ui8",
            "uplo = 76 : i32",
            Code::InvalidArgument,
            "must be a u8",
        ),
        (
            "uplo = 76 : ui8",
            "down = 76 : ui8",
            Code::InvalidArgument,
            "\"down\"",
        ),
        (
            "uplo = 76 : ui8",
            "",
            Code::InvalidArgument,
            "0 attributes, expected 1",
        ),
        ("spotrf", "dpotrf", Code::InvalidArgument, "expected F64"),
    ] {
        let call = find("lapack_spotrf_ffi");
        let module = call.module().replace(from, to);
        let executable = try_compile(&client, module, &options(1)).unwrap();
        let arg = put(&client, &[2, 3, 3], &[1.0; 18]);
        let outcome = run(&executable, &[&arg]).and_then(|outputs| fetch_bytes(&outputs[0]));
        let error = outcome.expect_err(to);
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(part), "{error}");
        assert!(
            error.message().contains("a Cholesky factorization"),
            "{error}"
        );
    }
    let module = find("lapack_spotrf_ffi")
        .module()
        .replace("spotrf", "spotrf_of_nobody");
    let error = try_compile(&client, module, &options(1)).expect_err("compiled");
    assert!(
        error.message().contains("lapack_spotrf_of_nobody_ffi"),
        "{error}"
    );
}
