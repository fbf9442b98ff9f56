//! Moving arrays: to other devices, to another sharding, to another type.

use ifrt::{ArrayCopySemantics, ArrayRef, ArraySpec, DeviceId, DeviceList, MemoryKind, Result};

use crate::proto::xla::ifrt::proxy::{
    BitcastArraysRequest, BitcastArraysResponse, CopyArraysRequest, CopyArraysResponse,
    ReshardArraysRequest, ReshardArraysResponse,
};
use crate::server::handlers::results::make_arrays;
use crate::server::handlers::{array_specs, copy_semantics};
use crate::server::session::Call;
use crate::server::session::context::Outcome;

/// Copies arrays to other devices or another kind of memory.
pub(crate) fn copy_arrays(call: &Call, request: &CopyArraysRequest) -> Outcome<CopyArraysResponse> {
    let array_handles = make_arrays(call, &request.result_handles, || {
        let arrays = call.session.tables.arrays(&request.array_handles)?;
        let devices = device_list(call, &request.device_ids)?;
        // Absent keeps the kind that the arrays have; empty is the default of the devices.
        let memory_kind = request.memory_kind.as_deref().map(|kind| {
            if kind.is_empty() {
                MemoryKind::default()
            } else {
                MemoryKind::new(kind)
            }
        });
        let copy = copy_semantics(request.copy_semantics)?;
        Ok(call
            .client()
            .copy_arrays(&arrays, devices, memory_kind, copy)?)
    })?;
    Ok(CopyArraysResponse { array_handles })
}

/// The devices with these ids; `None` without ids.
pub(super) fn device_list(call: &Call, ids: &[i32]) -> Result<Option<DeviceList>> {
    if ids.is_empty() {
        return Ok(None);
    }
    ids.iter()
        .map(|id| call.client().lookup_device(DeviceId(*id)))
        .collect::<Result<DeviceList>>()
        .map(Some)
}

/// Gives arrays another dtype or shape without changing a byte.
pub(crate) fn bitcast_arrays(
    call: &Call,
    request: &BitcastArraysRequest,
) -> Outcome<BitcastArraysResponse> {
    let array_handles = make_arrays(call, &request.result_handles, || {
        let (arrays, specs, copy) = inputs(
            call,
            &request.array_handles,
            &request.array_specs,
            request.copy_semantics,
        )?;
        Ok(call.client().bitcast_arrays(&arrays, &specs, copy)?)
    })?;
    Ok(BitcastArraysResponse { array_handles })
}

/// Spreads arrays differently.
pub(crate) fn reshard_arrays(
    call: &Call,
    request: &ReshardArraysRequest,
) -> Outcome<ReshardArraysResponse> {
    let array_handles = make_arrays(call, &request.result_handles, || {
        let (arrays, specs, copy) = inputs(
            call,
            &request.array_handles,
            &request.array_specs,
            request.copy_semantics,
        )?;
        Ok(call.client().reshard_arrays(&arrays, &specs, copy)?)
    })?;
    Ok(ReshardArraysResponse { array_handles })
}

fn inputs(
    call: &Call,
    handles: &[u64],
    specs: &[ifrt::proto::xla::ifrt::ArraySpecProto],
    copy: i32,
) -> Outcome<(Vec<ArrayRef>, Vec<ArraySpec>, ArrayCopySemantics)> {
    Ok((
        call.session.tables.arrays(handles)?,
        array_specs(call, specs)?,
        copy_semantics(copy)?,
    ))
}
