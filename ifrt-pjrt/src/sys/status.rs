//! Errors, events and plugin-wide calls.

use std::ffi::c_void;

use super::{CBool, Error, Event};
use crate::sys::client::NamedValue;

/// Receives one payload of an error: key, value, and the caller's pointer.
pub(crate) type PayloadVisitor =
    Option<unsafe extern "C" fn(*const u8, usize, *const u8, usize, *mut c_void)>;

/// Receives the error of an event (NULL for success), which it owns, and the caller's pointer.
pub(crate) type OnReadyCallback = Option<unsafe extern "C" fn(*mut Error, *mut c_void)>;

pjrt_struct! {
    /// Arguments of `PJRT_Error_Destroy`.
    ErrorDestroyArgs: 24 {
        16 error: *mut Error,
    }

    /// Arguments of `PJRT_Error_Message`. The text lives as long as the error.
    ErrorMessageArgs: 40 {
        16 error: *const Error,
        24 message: *const u8,
        32 message_size: usize,
    }

    /// Arguments of `PJRT_Error_GetCode`.
    ErrorGetCodeArgs: 28 {
        16 error: *const Error,
        24 code: i32,
    }

    /// Arguments of `PJRT_Error_ForEachPayload`.
    ErrorForEachPayloadArgs: 40 {
        16 error: *const Error,
        24 visitor: PayloadVisitor,
        32 user_arg: *mut c_void,
    }

    /// Arguments of `PJRT_Plugin_Initialize`.
    PluginInitializeArgs: 16 {}

    /// Arguments of `PJRT_Plugin_Attributes`. The list lives as long as the process.
    PluginAttributesArgs: 32 {
        16 attributes: *const NamedValue,
        24 num_attributes: usize,
    }

    /// Arguments of `PJRT_Event_Destroy`.
    EventDestroyArgs: 24 {
        16 event: *mut Event,
    }

    /// Arguments of `PJRT_Event_IsReady`.
    EventIsReadyArgs: 25 {
        16 event: *mut Event,
        24 is_ready: CBool,
    }

    /// Arguments of `PJRT_Event_Error`. The process aborts if the event is not ready.
    EventErrorArgs: 24 {
        16 event: *mut Event,
    }

    /// Arguments of `PJRT_Event_OnReady`. A ready event calls back before the call returns.
    EventOnReadyArgs: 40 {
        16 event: *mut Event,
        24 callback: OnReadyCallback,
        32 user_arg: *mut c_void,
    }
}
