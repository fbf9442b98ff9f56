//! The function that a plugin calls, and what it answers.

use std::any::Any;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use ifrt::{Result, Status};

use super::float_environment::DefaultFloats;
use super::{Handler, decode};
use crate::sys::ffi::{
    Api, CallFrame, EXTENSION_METADATA, Error, ErrorCreate, ErrorCreateArgs, METADATA_SIZE,
    MetadataExtension, STAGE_EXECUTE, VERSION,
};
use crate::sys::{ExtensionBase, Sized0};

/// Serves the calls of `H`.
///
/// # Safety
/// F1 and F2: called by a plugin, with a frame of its own.
pub(super) unsafe extern "C" fn handle<H: Handler>(frame: *mut CallFrame) -> *mut Error {
    // SAFETY: F1.
    if unsafe { answer_query(frame) } {
        return std::ptr::null_mut();
    }
    let floats = DefaultFloats::enter();
    // SAFETY: F1 and F2.
    let served = catch_unwind(AssertUnwindSafe(|| unsafe { serve::<H>(frame) }));
    drop(floats);
    let status = match served {
        Ok(Ok(())) => return std::ptr::null_mut(),
        Ok(Err(status)) => status,
        Err(panic) => Status::internal(format!(
            "the handler of a custom call panicked: {}; this is a bug, please report it",
            panic_text(&*panic)
        )),
    };
    // SAFETY: F1.
    match unsafe { error_create(frame) } {
        // SAFETY: F1; the table belongs to the plugin that called.
        Some(create) => unsafe { error(create, &status) },
        None => {
            // Registration was refused without this function, so the plugin broke its own API: to
            // return NULL now would pass wrong results off as right ones.
            tracing::error!(%status, "a custom call failed, and the plugin cannot be told");
            std::process::abort()
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}

/// # Safety
/// F1 and F2.
unsafe fn serve<H: Handler>(frame: *const CallFrame) -> Result<()> {
    // SAFETY: F1.
    let frame = unsafe { decode::frame(frame) }?;
    if frame.stage != STAGE_EXECUTE {
        return Ok(());
    }
    // SAFETY: F1 and F2.
    let call = unsafe { decode::call::<H>(frame) };
    call.and_then(|mut call| H::run(&mut call))
        .map_err(|status| status.annotate(format_args!("while computing {}", H::NAME)))
}

/// Answers a query of the handler's version; false if the frame is none.
///
/// # Safety
/// F1.
unsafe fn answer_query(frame: *const CallFrame) -> bool {
    let Some(frame) = NonNull::new(frame.cast_mut()) else {
        return false;
    };
    // SAFETY: F1; every frame begins with its size.
    let size = unsafe { frame.cast::<usize>().read() };
    if size < std::mem::offset_of!(CallFrame, api) {
        return false;
    }
    // SAFETY: F1; the size leaves room for the pointer.
    let extension: *mut ExtensionBase = unsafe {
        field(
            frame.cast(),
            std::mem::offset_of!(CallFrame, extension_start),
        )
    };
    let Some(extension) = NonNull::new(extension) else {
        return false;
    };
    // SAFETY: F1; every extension has the common head.
    let head = unsafe { extension.as_ref() };
    if head.type_ != EXTENSION_METADATA || head.struct_size < size_of::<MetadataExtension>() {
        return false;
    }
    // SAFETY: F1; an extension of this type and size.
    let metadata = unsafe { extension.cast::<MetadataExtension>().as_ref() }.metadata;
    let Some(mut metadata) = NonNull::new(metadata) else {
        return true;
    };
    // SAFETY: F1; it begins with its size.
    let size = unsafe { metadata.cast::<usize>().read() };
    // SAFETY: F1.
    let can_fail = unsafe { error_create(frame.as_ptr()) }.is_some();
    if size >= METADATA_SIZE && can_fail {
        // SAFETY: F1; the size leaves room for all that is declared, and the plugin wants it
        // written.
        let metadata = unsafe { metadata.as_mut() };
        (
            metadata.api_version.major_version,
            metadata.api_version.minor_version,
        ) = VERSION;
        metadata.traits = 0;
    }
    true
}

/// A field of a struct of which only the beginning may be there.
///
/// # Safety
/// F1: the field is there.
unsafe fn field<F>(base: NonNull<u8>, offset: usize) -> F {
    // SAFETY: F1.
    let place = unsafe { base.add(offset) };
    // SAFETY: F1; fields are aligned in their structs.
    unsafe { place.cast::<F>().read() }
}

/// The function that makes errors, if the plugin has it.
///
/// # Safety
/// F1.
unsafe fn error_create(frame: *const CallFrame) -> Option<ErrorCreate> {
    let frame = NonNull::new(frame.cast_mut())?;
    // SAFETY: F1; every frame begins with its size.
    let size = unsafe { frame.cast::<usize>().read() };
    if size < std::mem::offset_of!(CallFrame, ctx) {
        return None;
    }
    // SAFETY: F1; the size leaves room for the pointer.
    let api: *const Api = unsafe { field(frame.cast(), std::mem::offset_of!(CallFrame, api)) };
    let api = NonNull::new(api.cast_mut())?;
    // SAFETY: F1; the table begins with its size.
    let size = unsafe { api.cast::<usize>().read() };
    if size < Api::STRUCT_SIZE {
        return None;
    }
    // SAFETY: F1; the size leaves room for the function, which may be NULL.
    unsafe { field(api.cast(), std::mem::offset_of!(Api, error_create)) }
}

/// # Safety
/// F1: the function belongs to a table of the plugin.
unsafe fn error(create: ErrorCreate, status: &Status) -> *mut Error {
    let mut message = status.message().replace('\0', " ");
    if message.is_empty() {
        message.push_str("no text");
    }
    let message = CString::new(message).unwrap_or_default();
    let mut args = ErrorCreateArgs {
        message: message.as_ptr(),
        errc: status.code().number(),
        ..ErrorCreateArgs::NEW
    };
    // SAFETY: F1; the text outlives the call, which copies it.
    unsafe { create(&raw mut args) }
}
