//! The handles of the arrays that a request makes.

use std::collections::HashSet;

use ifrt::{ArrayRef, Status};

use crate::server::session::Call;
use crate::server::session::context::{Failure, Outcome};

/// Runs `make` and stores the arrays that it makes, or the error in their place, under the handles
/// that the client chose. Without such handles the server chooses.
///
/// Returns the handles.
pub(super) fn make_arrays(
    call: &Call,
    handles: &[u64],
    make: impl FnOnce() -> Outcome<Vec<ArrayRef>>,
) -> Outcome<Vec<u64>> {
    check_handles(call, handles)?;
    let made = call.isolated(make).and_then(|arrays| {
        if handles.is_empty() || handles.len() == arrays.len() {
            return Ok(arrays);
        }
        Err(Failure::from(Status::invalid_argument(format!(
            "the request has {} result handles for {} arrays",
            handles.len(),
            arrays.len()
        ))))
    });
    match made {
        Ok(arrays) => Ok(store(call, handles, arrays)),
        Err(failure) => {
            let failure = failure.caused_by(call.context.as_ref());
            store_failure(call, handles, &failure);
            Err(failure)
        }
    }
}

/// As [`make_arrays`], for requests that make one array; 0 stands for no handle.
pub(super) fn make_array(
    call: &Call,
    handle: u64,
    make: impl FnOnce() -> Outcome<ArrayRef>,
) -> Outcome<u64> {
    let handles: &[u64] = if handle == 0 { &[] } else { &[handle] };
    let made = make_arrays(call, handles, || make().map(|array| vec![array]))?;
    made.first()
        .copied()
        .ok_or_else(|| Status::internal("an array without a handle").into())
}

/// Checks the handles that a client chose for its results.
///
/// Handles that are new get the error, because the client may use them already.
pub(super) fn check_handles(call: &Call, handles: &[u64]) -> Outcome<()> {
    let mut seen = HashSet::with_capacity(handles.len());
    let mut wrong: Option<Failure> = None;
    let mut usable = Vec::with_capacity(handles.len());
    for handle in handles {
        let checked = if seen.insert(*handle) {
            call.session.tables.check_new_array(*handle)
        } else {
            Err(Failure::from(Status::invalid_argument(format!(
                "array handle {handle} is given twice"
            ))))
        };
        match checked {
            Ok(()) => usable.push(*handle),
            Err(failure) => {
                wrong.get_or_insert(failure);
            }
        }
    }
    let Some(failure) = wrong else { return Ok(()) };
    let failure = failure.caused_by(call.context.as_ref());
    store_failure(call, &usable, &failure);
    Err(failure)
}

/// Stores arrays under checked handles.
pub(super) fn store(call: &Call, handles: &[u64], arrays: Vec<ArrayRef>) -> Vec<u64> {
    let (tables, context) = (&call.session.tables, call.context.as_ref());
    if handles.is_empty() {
        return arrays
            .into_iter()
            .map(|array| tables.add_array(array, context))
            .collect();
    }
    for (handle, array) in handles.iter().zip(arrays) {
        tables.insert_array(*handle, Ok(array), context);
    }
    handles.to_vec()
}

/// Stores an error under checked handles.
pub(super) fn store_failure(call: &Call, handles: &[u64], failure: &Failure) {
    for handle in handles {
        call.session
            .tables
            .insert_array(*handle, Err(failure.clone()), call.context.as_ref());
    }
}
