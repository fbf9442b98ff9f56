//! Batches of matrices and vectors in the buffers of a call.

use ifrt::{Result, Status};

use super::linalg::Triangle;
use super::linalg::scalar::Scalar;
use crate::safe::ffi::{Attribute, Call, Element};

/// An element type of LAPACK, whose values fill buffers.
pub(super) trait Lapack: Scalar<Part: Element> + Element {}

impl<T: Scalar<Part: Element> + Element> Lapack for T {}

/// The leading dimensions of all buffers of a call.
#[derive(Debug)]
pub(super) struct Batch {
    dims: Vec<usize>,
    /// The number of matrices.
    pub(super) count: usize,
}

/// The batch, the rows and the columns of an operand. Its values are column-major.
///
/// # Errors
/// INVALID_ARGUMENT if it has less than two dimensions, or sides that LAPACK cannot count.
pub(super) fn matrices(call: &Call<'_>, operand: usize) -> Result<(Batch, usize, usize)> {
    let dims = call.operand_dims(operand)?;
    let [outer @ .., rows, cols] = dims else {
        return Err(Status::invalid_argument(format!(
            "operand {operand} must be a matrix or a batch of them, but has the shape {dims:?}"
        )));
    };
    if [rows, cols]
        .iter()
        .any(|side| i32::try_from(**side).is_err())
    {
        return Err(Status::invalid_argument(format!(
            "operand {operand} has the shape {dims:?}; the sides of a matrix must be less than 2^31"
        )));
    }
    // The product of all dimensions is the size of a buffer, unless one of them is zero.
    let count = outer
        .iter()
        .try_fold(1usize, |count, dim| count.checked_mul(*dim))
        .ok_or_else(|| Status::invalid_argument(format!("a batch of the shape {outer:?}")))?;
    Ok((
        Batch {
            dims: outer.to_vec(),
            count,
        },
        *rows,
        *cols,
    ))
}

/// The same for matrices that must be square.
///
/// # Errors
/// INVALID_ARGUMENT if they are not.
pub(super) fn square_matrices(call: &Call<'_>, operand: usize) -> Result<(Batch, usize)> {
    let (batch, rows, cols) = matrices(call, operand)?;
    if rows != cols {
        return Err(Status::invalid_argument(format!(
            "operand {operand} must hold square matrices, but they have {rows} rows and {cols} \
             columns"
        )));
    }
    Ok((batch, rows))
}

impl Batch {
    fn check(&self, dims: &[usize], own: &[usize], what: &str, index: usize) -> Result<()> {
        if dims.strip_prefix(&*self.dims) == Some(own) {
            return Ok(());
        }
        let mut expected = self.dims.clone();
        expected.extend(own);
        Err(Status::invalid_argument(format!(
            "{what} {index} has the shape {dims:?}, expected {expected:?}"
        )))
    }

    /// The values of an operand that has `own` dimensions after those of the batch.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if it has other ones, or another type.
    pub(super) fn operand<'c, T: Element>(
        &self,
        call: &'c Call<'_>,
        index: usize,
        own: &[usize],
    ) -> Result<&'c [T]> {
        self.check(call.operand_dims(index)?, own, "operand", index)?;
        call.operand(index)
    }

    /// The place of a result that has `own` dimensions after those of the batch.
    ///
    /// # Errors
    /// As for operands.
    pub(super) fn result<'a, T: Element>(
        &self,
        call: &mut Call<'a>,
        index: usize,
        own: &[usize],
    ) -> Result<&'a mut [T]> {
        self.check(call.result_dims(index)?, own, "result", index)?;
        call.result(index)
    }
}

/// The part of a buffer that belongs to one matrix of a batch.
pub(super) fn part<T>(data: &[T], index: usize, size: usize) -> &[T] {
    &data[index * size..][..size]
}

/// The same, to be written.
pub(super) fn part_mut<T>(data: &mut [T], index: usize, size: usize) -> &mut [T] {
    &mut data[index * size..][..size]
}

/// The choice that an attribute makes by its letter.
///
/// # Errors
/// INVALID_ARGUMENT if it is no letter, or one without meaning.
pub(super) fn choice<V: Copy>(call: &Call<'_>, name: &str, choices: &[(u8, V)]) -> Result<V> {
    let value = call.attribute(name)?;
    let Attribute::U8(letter) = value else {
        return Err(Status::invalid_argument(format!(
            "the attribute {name:?} of a custom call must be a u8, but is {value:?}"
        )));
    };
    choices
        .iter()
        .find(|(candidate, _)| *candidate == letter)
        .map(|(_, value)| *value)
        .ok_or_else(|| {
            let known: Vec<char> = choices
                .iter()
                .map(|(letter, _)| char::from(*letter))
                .collect();
            Status::invalid_argument(format!(
                "the attribute {name:?} of a custom call is {:?}, expected one of {known:?}",
                char::from(letter)
            ))
        })
}

/// The triangle that the attribute `uplo` names.
///
/// # Errors
/// As for [`choice`].
pub(super) fn triangle(call: &Call<'_>) -> Result<Triangle> {
    choice(
        call,
        "uplo",
        &[(b'L', Triangle::Lower), (b'U', Triangle::Upper)],
    )
}

/// Whether an attribute asks for vectors.
///
/// # Errors
/// As for [`choice`].
pub(super) fn wants_vectors(call: &Call<'_>, name: &str) -> Result<bool> {
    choice(call, name, &[(b'V', true), (b'N', false)])
}
