//! Registration of handlers with a plugin.

use std::marker::PhantomData;

use ifrt::Result;

use super::{Handler, reply};
use crate::safe::api::Api;
use crate::sys::ext::FFIRegisterHandler;
use crate::sys::ffi::{self, REGISTER_HANDLER_ARGS_SIZE, RegisterHandlerArgs};

/// The name of a custom call, and the function that serves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// The name that programs call it by.
    pub(crate) name: &'static str,
    handler: ffi::Handler,
    // Only `target` makes one, from a handler that is one.
    _private: PhantomData<()>,
}

/// The target that `H` serves.
pub(crate) const fn target<H: Handler>(name: &'static str) -> Target {
    Target {
        name,
        handler: reply::handle::<H>,
        _private: PhantomData,
    }
}

/// Registers a target for a platform.
///
/// A plugin does not say whether it takes the handler; a program that calls it does.
///
/// # Errors
/// UNIMPLEMENTED if the plugin cannot take handlers.
pub(crate) fn register(api: &'static Api, target: &Target, platform: &str) -> Result<()> {
    let mut args = RegisterHandlerArgs {
        struct_size: REGISTER_HANDLER_ARGS_SIZE,
        target_name: target.name.as_ptr(),
        target_name_size: target.name.len(),
        handler: Some(target.handler),
        platform_name: platform.as_ptr(),
        platform_name_size: platform.len(),
        traits: 0,
    };
    // SAFETY: S3; the function is a handler, and lives as long as the process.
    unsafe { api.call::<FFIRegisterHandler>(&mut args) }
}
