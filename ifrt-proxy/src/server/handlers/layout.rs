//! Defaults of the runtime: layouts and device assignments.

use ifrt::proto::xla::DeviceAssignmentProto;
use ifrt::proto::xla::device_assignment_proto::ComputationDevice;
use ifrt::{DeviceId, MemoryKind, Result, Shape, Status};

use crate::proto::xla::ifrt::proxy::ifrt_response::Response;
use crate::proto::xla::ifrt::proxy::{
    GetDefaultDeviceAssignmentRequest, GetDefaultDeviceAssignmentResponse, GetDefaultLayoutRequest,
    GetDefaultLayoutResponse,
};
use crate::server::handlers::dtype;
use crate::server::session::Call;
use crate::server::session::reply::Reply;

/// More devices than this are a mistake, not a machine.
const MAX_DEVICES: u64 = 1 << 20;

/// Tells the layout that a shard takes unless told otherwise, as text.
pub(crate) fn default_layout(call: &Call, request: GetDefaultLayoutRequest, reply: Reply) {
    call.in_background(reply, move |call| {
        let dtype = dtype(request.dtype.as_ref())?;
        let shape = Shape::new(request.dims)?;
        let device = call.client().lookup_device(DeviceId(request.device_id))?;
        let kind = Some(request.memory_kind.as_str()).filter(|kind| !kind.is_empty());
        let kind = MemoryKind::from(kind);
        let layout = call
            .client()
            .default_layout(dtype, &shape, &device, &kind)?;
        Ok(Response::GetDefaultLayoutResponse(
            GetDefaultLayoutResponse {
                serialized_pjrt_layout: layout.to_string().into_bytes().into(),
            },
        ))
    });
}

/// Tells the devices that a program runs on unless told otherwise.
pub(crate) fn default_device_assignment(
    call: &Call,
    request: GetDefaultDeviceAssignmentRequest,
    reply: Reply,
) {
    call.in_background(reply, move |call| {
        let (replicas, partitions) = (request.num_replicas, request.num_partitions);
        if !replicas
            .checked_mul(partitions)
            .is_some_and(|devices| (1..=MAX_DEVICES).contains(&devices))
        {
            return Err(Status::invalid_argument(format!(
                "there is no assignment of devices to {replicas} replicas and {partitions} \
                 partitions"
            ))
            .into());
        }
        let assignment = call
            .client()
            .default_device_assignment(count(replicas)?, count(partitions)?)?;
        Ok(Response::GetDefaultDeviceAssignmentResponse(
            GetDefaultDeviceAssignmentResponse {
                device_assignment: Some(describe(&assignment, count(partitions)?)?),
            },
        ))
    });
}

fn count(number: u64) -> Result<usize> {
    usize::try_from(number)
        .map_err(|_| Status::invalid_argument(format!("{number} is too large a number")))
}

/// The message has partitions outside and replicas inside; the contract has it the other way.
fn describe(assignment: &[Vec<DeviceId>], partitions: usize) -> Result<DeviceAssignmentProto> {
    let too_large = |_| Status::internal("the device assignment is too large for its message");
    let computation_devices = (0..partitions)
        .map(|partition| {
            let replica_device_ids = assignment
                .iter()
                .map(|replica| replica.get(partition).map(|id| i64::from(id.0)))
                .collect::<Option<_>>()
                .ok_or_else(|| Status::internal("the runtime left a partition without a device"))?;
            Ok(ComputationDevice { replica_device_ids })
        })
        .collect::<Result<_>>()?;
    Ok(DeviceAssignmentProto {
        replica_count: i32::try_from(assignment.len()).map_err(too_large)?,
        computation_count: i32::try_from(partitions).map_err(too_large)?,
        computation_devices,
    })
}
