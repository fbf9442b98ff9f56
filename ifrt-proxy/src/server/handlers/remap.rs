//! Making arrays of the shards of others.

use ifrt::serdes::remap_plan_from_proto;

use crate::proto::xla::ifrt::proxy::{RemapArraysRequest, RemapArraysResponse};
use crate::server::handlers::results::make_arrays;
use crate::server::handlers::{copy_semantics, missing};
use crate::server::session::Call;
use crate::server::session::context::Outcome;

/// Makes arrays whose shards are shards of others. No data moves.
pub(crate) fn remap_arrays(
    call: &Call,
    request: &RemapArraysRequest,
) -> Outcome<RemapArraysResponse> {
    let array_handles = make_arrays(call, &request.result_handles, || {
        let arrays = call.session.tables.arrays(&request.array_handles)?;
        let plan = request.plan.as_ref().ok_or_else(|| missing("plan"))?;
        let plan = remap_plan_from_proto(plan, call.client())?;
        plan.validate()?;
        let copy = copy_semantics(request.copy_semantics)?;
        Ok(call.client().remap_arrays(&plan, &arrays, copy)?)
    })?;
    Ok(RemapArraysResponse { array_handles })
}
