//! `cpu_csr_sparse_dense_ffi`: products of sparse matrices and dense ones.
//!
//! # Mirrors
//! `jaxlib/cpu/sparse_kernels.h`.

use std::ops::{AddAssign, Mul};

use faer::{c32, c64};
use ifrt::{Result, Status};

use crate::safe::ffi::{Call, Element, ElementKind, Handler};

/// `values, row starts, columns, dense matrix → dense matrix`, all row-major.
pub(crate) struct CsrTimesDense;

/// An index of a sparse matrix.
trait Index: Element {
    fn position(self) -> Option<usize>;
}

impl Index for i32 {
    fn position(self) -> Option<usize> {
        usize::try_from(self).ok()
    }
}

impl Index for i64 {
    fn position(self) -> Option<usize> {
        usize::try_from(self).ok()
    }
}

/// An element of the matrices; sums of integers wrap around, as XLA's do.
trait Value: Element {
    fn add_product(&mut self, left: Self, right: Self);
}

macro_rules! value {
    ($($float:ty)*; $($integer:ty)*) => {
        $(impl Value for $float {
            fn add_product(&mut self, left: Self, right: Self) {
                AddAssign::add_assign(self, Mul::mul(left, right));
            }
        })*
        $(impl Value for $integer {
            fn add_product(&mut self, left: Self, right: Self) {
                *self = self.wrapping_add(left.wrapping_mul(right));
            }
        })*
    };
}

value!(f32 f64 c32 c64; i32 i64);

impl Handler for CsrTimesDense {
    const NAME: &'static str = "the product of a sparse and a dense matrix";
    const OPERANDS: usize = 4;
    const RESULTS: usize = 1;
    const ATTRIBUTES: &'static [&'static str] = &[];
    const IN_PLACE: &'static [(usize, usize)] = &[];

    fn run(call: &mut Call<'_>) -> Result<()> {
        match call.operand_kind(0)? {
            ElementKind::S32 => by_index::<i32>(call),
            ElementKind::S64 => by_index::<i64>(call),
            ElementKind::F32 => by_index::<f32>(call),
            ElementKind::F64 => by_index::<f64>(call),
            ElementKind::C64 => by_index::<c32>(call),
            ElementKind::C128 => by_index::<c64>(call),
        }
    }
}

fn by_index<T: Value>(call: &mut Call<'_>) -> Result<()> {
    match call.operand_kind(1)? {
        ElementKind::S32 => multiply::<T, i32>(call),
        ElementKind::S64 => multiply::<T, i64>(call),
        other => Err(Status::invalid_argument(format!(
            "the indices of a sparse matrix have the type {other:?}, expected S32 or S64"
        ))),
    }
}

fn multiply<T: Value, I: Index>(call: &mut Call<'_>) -> Result<()> {
    let shape = |dims: &[usize]| match *dims {
        [rows] => Some((rows, 1)),
        [rows, cols] => Some((rows, cols)),
        _ => None,
    };
    let (right, out) = (call.operand_dims(3)?, call.result_dims(0)?);
    let (Some((inner, cols)), Some((rows, out_cols))) = (shape(right), shape(out)) else {
        return Err(Status::invalid_argument(format!(
            "a sparse matrix times the shape {right:?} cannot have the shape {out:?}"
        )));
    };
    if cols != out_cols || right.len() != out.len() {
        return Err(Status::invalid_argument(format!(
            "a sparse matrix times the shape {right:?} cannot have the shape {out:?}"
        )));
    }
    let out = call.result::<T>(0)?;
    let values = call.operand::<T>(0)?;
    let starts = call.operand::<I>(1)?;
    let columns = call.operand::<I>(2)?;
    let right = call.operand::<T>(3)?;
    if starts.len() != rows.saturating_add(1) || columns.len() != values.len() {
        return Err(Status::invalid_argument(format!(
            "a sparse matrix with {rows} rows has {} row starts, {} columns and {} values; expected \
             one start more than rows, and as many columns as values",
            starts.len(),
            columns.len(),
            values.len()
        )));
    }
    for (row, pair) in starts.windows(2).enumerate() {
        let range = match (pair[0].position(), pair[1].position()) {
            (Some(start), Some(end)) if start <= end && end <= values.len() => start..end,
            _ => {
                return Err(Status::invalid_argument(format!(
                    "row {row} of a sparse matrix with {} values starts or ends outside of them",
                    values.len()
                )));
            }
        };
        let target = &mut out[row * cols..][..cols];
        for (value, column) in values[range.clone()].iter().zip(&columns[range]) {
            let column = column.position().filter(|column| *column < inner).ok_or_else(|| {
                Status::invalid_argument(format!(
                    "row {row} of a sparse matrix has a value in a column that is not one of {inner}"
                ))
            })?;
            for (sum, element) in target.iter_mut().zip(&right[column * cols..][..cols]) {
                sum.add_product(*value, *element);
            }
        }
    }
    Ok(())
}
