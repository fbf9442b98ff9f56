//! The routines of LAPACK as custom calls.
//!
//! Matrices are column-major, with the dimensions of the batch before their own; `info` has those of
//! the batch only. Operands that a routine overwrites are passed as results, in place.
//!
//! # Mirrors
//! `jaxlib/cpu/lapack_kernels.h`.

mod factors;
mod solvers;
mod spectra;

pub(super) use factors::{Gehrd, Geqp3, Geqrf, Getrf, Orgqr, Ormqr, Potrf, Sytrd};
pub(super) use solvers::{Gtsv, Trsm};
pub(super) use spectra::{ComplexGees, ComplexGeev, Gesdd, RealGees, RealGeev, Syevd};
