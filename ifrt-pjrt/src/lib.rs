//! IFRT over any PJRT plugin.

#![allow(
    unsafe_code,
    reason = "the C ABI of plugins; confined to the modules sys and safe"
)]

pub mod plugin;
mod safe;
mod sys;

pub use plugin::{PLUGIN_PATH_VARIABLE, Plugin, PluginError};
