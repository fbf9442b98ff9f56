//! [`Status`] as `tensorflow.StatusProto`.

use crate::proto::tensorflow::StatusProto;
use crate::status::{Result, Status};

/// Reads a status; `None` means OK.
pub fn status_from_proto(proto: &StatusProto) -> Option<Status> {
    let status = Status::from_wire(proto.code, proto.message.clone())?;
    Some(proto.payload.iter().fold(status, |status, (key, value)| {
        status.with_payload(key.clone(), value.clone())
    }))
}

/// Reads a status as a result.
///
/// # Errors
/// The status, unless it is OK.
pub fn result_from_proto(proto: &StatusProto) -> Result<()> {
    status_from_proto(proto).map_or(Ok(()), Err)
}

/// Writes a status. OK is the empty message.
pub fn status_to_proto(status: &Status) -> StatusProto {
    StatusProto {
        code: status.code().number(),
        message: status.message().to_owned(),
        payload: status
            .payloads()
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect(),
    }
}
