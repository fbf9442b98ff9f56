//! Arrays from arrays: assemble, copy, remap, bitcast, reshard.
//!
//! Each operation first checks everything, then asks the fault plan, and only then takes its
//! inputs, so that one that is refused leaves all arrays as they were.

mod move_data;
mod share;

pub(super) use move_data::{bitcast, copy, reshard};
pub(super) use share::{assemble, remap};

use super::array::{FakeArray, unusable};
use super::client::FakeClient;
use super::task::Contents;
use crate::array::{ArrayCopySemantics, ArrayRef};
use crate::completion::{Completion, join_all};
use crate::status::{Result, Status};

/// The arrays as the fake's own.
///
/// # Errors
/// INVALID_ARGUMENT if one belongs to another client.
fn own_arrays<'a>(client: &FakeClient, arrays: &'a [ArrayRef]) -> Result<Vec<&'a FakeArray>> {
    let own = |array| FakeArray::of(client, array);
    arrays.iter().map(own).collect()
}

/// The data of the arrays, which die if they are donated.
///
/// # Errors
/// INVALID_ARGUMENT if one is dead or would be donated twice, FAILED_PRECONDITION if a dead one
/// holds strings; then none changes.
fn take(
    client: &FakeClient,
    operation: &str,
    arrays: &[&FakeArray],
    copy: ArrayCopySemantics,
) -> Result<Vec<Vec<Contents>>> {
    let donate = copy == ArrayCopySemantics::DonateInput;
    let uses: Vec<_> = arrays
        .iter()
        .map(|array| (array.holder(), donate))
        .collect();
    let taken = client.heap().take(&uses);
    taken.map_err(|why| unusable(operation, arrays, why))
}

/// What an array that shares buffers with `inputs` has to wait for.
fn own_after<'a>(
    permit: Completion,
    inputs: impl IntoIterator<Item = &'a FakeArray>,
) -> Completion {
    let own = inputs.into_iter().map(|input| input.own().clone());
    join_all([permit].into_iter().chain(own))
}

fn invalid(message: impl Into<String>) -> Status {
    Status::invalid_argument(message)
}
