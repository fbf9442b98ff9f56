//! From C errors to [`Status`].

use std::ffi::c_void;
use std::ptr::NonNull;

use ifrt::{Code, Result, Status};

use super::api::Api;
use super::bytes::{lent, lent_text};
use crate::sys::Error;
use crate::sys::api::ErrorForEachPayload;
use crate::sys::status::{
    ErrorDestroyArgs, ErrorForEachPayloadArgs, ErrorGetCodeArgs, ErrorMessageArgs,
};

/// `Ok` for NULL, else the error as a status. Frees the error.
pub(super) fn check(api: &Api, error: *mut Error) -> Result<()> {
    match NonNull::new(error) {
        None => Ok(()),
        Some(error) => Err(into_status(api, error)),
    }
}

fn into_status(api: &Api, error: NonNull<Error>) -> Status {
    let code = code_of(api, error);
    let mut args = ErrorMessageArgs {
        error: error.as_ptr(),
        ..ErrorMessageArgs::NEW
    };
    // SAFETY: S1 and S3; the error is alive, it is destroyed below.
    unsafe { (api.errors.message)(&raw mut args) };
    // SAFETY: S9; the text lives as long as the error.
    let message = unsafe { lent_text(args.message, args.message_size) };
    // An error with the code OK contradicts itself; it must not pass as success.
    let mut status = Status::from_wire(code, message.as_str())
        .unwrap_or_else(|| Status::new(Code::Unknown, message));
    for (key, value) in payloads_of(api, error) {
        status = status.with_payload(key, value);
    }
    destroy(api, error);
    status
}

fn code_of(api: &Api, error: NonNull<Error>) -> i32 {
    let mut args = ErrorGetCodeArgs {
        error: error.as_ptr(),
        ..ErrorGetCodeArgs::NEW
    };
    // SAFETY: S1 and S3; the error is alive.
    let failure = unsafe { (api.errors.code)(&raw mut args) };
    match NonNull::new(failure) {
        None => args.code,
        Some(failure) => {
            destroy(api, failure);
            Code::Unknown.number()
        }
    }
}

type Payloads = Vec<(String, Vec<u8>)>;

fn payloads_of(api: &Api, error: NonNull<Error>) -> Payloads {
    let mut payloads = Payloads::new();
    if !api.has::<ErrorForEachPayload>() {
        return payloads;
    }
    let mut args = ErrorForEachPayloadArgs {
        error: error.as_ptr(),
        visitor: Some(visit),
        user_arg: (&raw mut payloads).cast(),
        ..ErrorForEachPayloadArgs::NEW
    };
    // SAFETY: S3; the visitor runs during the call only, and `payloads` is not touched meanwhile.
    let visited = unsafe { api.call::<ErrorForEachPayload>(&mut args) };
    if let Err(status) = visited {
        tracing::debug!(%status, "the payloads of an error cannot be read");
    }
    payloads
}

/// Takes one payload. Allocates only, so it does not unwind into C.
unsafe extern "C" fn visit(
    key: *const u8,
    key_size: usize,
    value: *const u8,
    value_size: usize,
    payloads: *mut c_void,
) {
    // SAFETY: S3; `payloads_of` passes its local, which nobody else uses during the call.
    let payloads = unsafe { &mut *payloads.cast::<Payloads>() };
    // SAFETY: S9; the bytes are lent for the call.
    let key = unsafe { lent_text(key, key_size) };
    // SAFETY: S9, as above.
    let value = unsafe { lent(value, value_size) };
    payloads.push((key, value.to_vec()));
}

fn destroy(api: &Api, error: NonNull<Error>) {
    let mut args = ErrorDestroyArgs {
        error: error.as_ptr(),
        ..ErrorDestroyArgs::NEW
    };
    // SAFETY: S1 and S3; each error is destroyed once, by who received it.
    unsafe { (api.errors.destroy)(&raw mut args) };
}
