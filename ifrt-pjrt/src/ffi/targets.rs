//! The names of all custom calls that are served, and by what.

use faer::{c32, c64};

use super::lapack::*;
use super::sparse::CsrTimesDense;
use super::tridiagonal::SolvePerturbed;
use crate::safe::ffi::{Target, target};

/// A routine for the four types, with the names of the real and of the complex ones.
macro_rules! targets {
    ($($real:literal, $complex:literal => $handler:ident;)*) => {
        &[
            $(
                target::<$handler<f32>>(concat!("lapack_s", $real, "_ffi")),
                target::<$handler<f64>>(concat!("lapack_d", $real, "_ffi")),
                target::<$handler<c32>>(concat!("lapack_c", $complex, "_ffi")),
                target::<$handler<c64>>(concat!("lapack_z", $complex, "_ffi")),
            )*
            target::<RealGeev<f32>>("lapack_sgeev_ffi"),
            target::<RealGeev<f64>>("lapack_dgeev_ffi"),
            target::<ComplexGeev<f32>>("lapack_cgeev_ffi"),
            target::<ComplexGeev<f64>>("lapack_zgeev_ffi"),
            target::<RealGees<f32>>("lapack_sgees_ffi"),
            target::<RealGees<f64>>("lapack_dgees_ffi"),
            target::<ComplexGees<c32>>("lapack_cgees_ffi"),
            target::<ComplexGees<c64>>("lapack_zgees_ffi"),
            target::<SolvePerturbed>("tridiagonal_solve_perturbed_ffi"),
            target::<CsrTimesDense>("cpu_csr_sparse_dense_ffi"),
        ]
    };
}

/// Every target.
pub(super) const ALL: &[Target] = targets! {
    "potrf", "potrf" => Potrf;
    "getrf", "getrf" => Getrf;
    "geqrf", "geqrf" => Geqrf;
    "geqp3", "geqp3" => Geqp3;
    "orgqr", "ungqr" => Orgqr;
    "ormqr", "unmqr" => Ormqr;
    "gesdd", "gesdd" => Gesdd;
    "gesvd", "gesvd" => Gesdd;
    "syevd", "heevd" => Syevd;
    "gehrd", "gehrd" => Gehrd;
    "sytrd", "hetrd" => Sytrd;
    "trsm", "trsm" => Trsm;
    "gtsv", "gtsv" => Gtsv;
};
