//! Custom calls that are computed in Rust: the linear algebra that JAX expects on a CPU.
//!
//! JAX lowers `jnp.linalg` for CPUs to calls of LAPACK routines, which live in a library of its
//! own, not in the PJRT plugin. A plain CPU plugin refuses such programs: it knows no handler.
//! [`register_lapack`] gives it handlers of ours.
//!
//! # Layers
//! - `safe::ffi` decodes calls and answers the plugin.
//! - `lapack`, `tridiagonal` and `sparse` check shapes and modes, and loop over batches.
//! - `linalg` computes.
//!
//! # What is not here
//! Calls on other platforms than the CPU, and those that need Python.
//!
//! # Mirrors
//! `jaxlib/cpu/lapack_kernels.h`, `jaxlib/cpu/cpu_kernels.cc`.

mod batch;
mod lapack;
mod linalg;
mod sparse;
mod targets;
mod tridiagonal;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ifrt::{Code, Result};

use crate::plugin::Plugin;
use crate::safe::ffi;

/// The platform of handlers that run on CPUs.
const HOST: &str = "Host";

/// The extension of the C API by which handlers are registered.
const FFI_EXTENSION: i32 = 5;

/// The custom calls that were registered with a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisteredTargets {
    names: Vec<&'static str>,
}

impl RegisteredTargets {
    /// The names by which programs call them; empty if the plugin takes no handlers.
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }
}

/// What was registered, by plugin. The lock is not held while a plugin is called.
static REGISTERED: Mutex<BTreeMap<usize, RegisteredTargets>> = Mutex::new(BTreeMap::new());

/// Gives a CPU plugin the handlers of JAX's linear algebra, once for the process.
///
/// It must be called before a program is compiled that needs them. For a plugin without the
/// extension for handlers, nothing is registered, and a line of the log says so. A plugin whose
/// version of the extension is too old drops handlers without a word: its compiler then names the
/// custom call that it does not know.
///
/// # Errors
/// Those of the plugin.
pub fn register_lapack(plugin: &Plugin) -> Result<RegisteredTargets> {
    let key = std::ptr::from_ref(plugin.api()).addr();
    let known = REGISTERED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&key)
        .cloned();
    if let Some(known) = known {
        return Ok(known);
    }
    let mut registered = RegisteredTargets::default();
    for target in targets::ALL {
        match ffi::register(plugin.api(), target, HOST) {
            Ok(()) => registered.names.push(target.name),
            Err(status) if status.code() == Code::Unimplemented => {
                tracing::warn!(
                    path = %plugin.path().display(),
                    has_extension = plugin.extensions().contains(&FFI_EXTENSION),
                    %status,
                    "the plugin takes no handlers of custom calls: jnp.linalg will not compile"
                );
                break;
            }
            Err(status) => return Err(status),
        }
    }
    // Two threads may get here at once; to register the same function again changes nothing.
    let mut all = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    all.insert(key, registered.clone());
    tracing::debug!(
        count = registered.names.len(),
        "handlers of custom calls registered"
    );
    Ok(registered)
}

#[cfg(test)]
mod tests;
