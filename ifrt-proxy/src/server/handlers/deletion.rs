//! Deletion: table work, and the rest is left to the deletion thread.
//!
//! A client sends deletions in batches, lists aliases of one buffer together, and only logs what
//! comes back. So nothing here fails and nothing waits, whatever the runtime does: a handle counts
//! as deleted when its deletion was asked for, and the future of a deletion is ready at once.

use crate::proto::xla::ifrt::proxy::{
    DeleteArrayRequest, DeleteArrayResponse, DestructArrayRequest, DestructArrayResponse,
    IsArrayDeletedRequest, IsArrayDeletedResponse,
};
use crate::server::session::Call;
use crate::server::session::context::Outcome;
use crate::server::session::deleter::Doomed;
use crate::server::session::tables::DELETION_DONE;

/// Deletes arrays. Handles without a live array are skipped.
pub(crate) fn delete(call: &Call, request: &DeleteArrayRequest) -> DeleteArrayResponse {
    let arrays = call.session.tables.delete_arrays(&request.array_handle);
    let skipped = request.array_handle.len().saturating_sub(arrays.len());
    if skipped > 0 {
        tracing::debug!("{skipped} deleted handles had no live array");
    }
    call.session
        .deleter
        .push(arrays.into_iter().map(Doomed::Delete));
    DeleteArrayResponse {
        deletion_future_handle: DELETION_DONE,
    }
}

/// Forgets arrays. Unknown handles are skipped.
pub(crate) fn destruct(call: &Call, request: &DestructArrayRequest) -> DestructArrayResponse {
    let arrays = call.session.tables.destruct_arrays(&request.array_handle);
    call.session
        .deleter
        .push(arrays.into_iter().map(Doomed::Array));
    DestructArrayResponse {}
}

/// Tells whether an array was deleted or donated.
pub(crate) fn is_deleted(
    call: &Call,
    request: IsArrayDeletedRequest,
) -> Outcome<IsArrayDeletedResponse> {
    let array = call
        .session
        .tables
        .array_unless_deleted(request.array_handle)?;
    Ok(IsArrayDeletedResponse {
        deleted: array.is_none_or(|array| array.is_deleted()),
    })
}
