//! The custom calls that every CPU client serves.

use ifrt::Result;

use crate::plugin::Plugin;

/// Gives the plugin of a CPU client its handlers.
///
/// # Errors
/// Those of the plugin.
#[cfg(feature = "lapack")]
pub(crate) fn register(plugin: &Plugin) -> Result<()> {
    crate::ffi::register_lapack(plugin).map(drop)
}

/// Without the feature `lapack`, there are none.
///
/// # Errors
/// None.
#[cfg(not(feature = "lapack"))]
pub(crate) fn register(_plugin: &Plugin) -> Result<()> {
    Ok(())
}
