//! The table of targets.

use super::*;

/// The routines of LAPACK that JAX calls, with their names for complex types.
const ROUTINES: [(&str, &str); 15] = [
    ("potrf", "potrf"),
    ("getrf", "getrf"),
    ("geqrf", "geqrf"),
    ("geqp3", "geqp3"),
    ("orgqr", "ungqr"),
    ("ormqr", "unmqr"),
    ("gesdd", "gesdd"),
    ("gesvd", "gesvd"),
    ("syevd", "heevd"),
    ("geev", "geev"),
    ("gees", "gees"),
    ("gehrd", "gehrd"),
    ("sytrd", "hetrd"),
    ("trsm", "trsm"),
    ("gtsv", "gtsv"),
];

#[test]
fn every_routine_has_a_handler_for_each_type() {
    let mut expected: Vec<String> = ROUTINES
        .iter()
        .flat_map(|(real, complex)| {
            [('s', real), ('d', real), ('c', complex), ('z', complex)]
                .map(|(prefix, routine)| format!("lapack_{prefix}{routine}_ffi"))
        })
        .collect();
    expected.push("tridiagonal_solve_perturbed_ffi".to_owned());
    expected.push("cpu_csr_sparse_dense_ffi".to_owned());
    expected.sort_unstable();
    let mut actual: Vec<&str> = targets::ALL.iter().map(|target| target.name).collect();
    actual.sort_unstable();
    assert_eq!(actual, expected);
}
