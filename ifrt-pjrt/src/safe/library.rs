//! Opening the shared library of a plugin.

use std::path::Path;

use libloading::{Library, Symbol};

use super::api::{Api, TableError};
use crate::sys::api::{ApiHeader, PluginAttributes, PluginInitialize};
use crate::sys::status::{PluginAttributesArgs, PluginInitializeArgs};
use ifrt::Result;
use ifrt::attribute_map::AttributeMap;

/// The one symbol that a plugin exports.
pub(crate) const ENTRY_POINT: &str = "GetPjrtApi";

/// Why a library cannot be used.
#[derive(Debug)]
pub(crate) enum LibraryError {
    /// The system cannot load it; the text of the system.
    Open(String),
    /// It has no [`ENTRY_POINT`].
    NoEntryPoint,
    /// Its table is of no use.
    Table(TableError),
}

/// Loads a library for good and takes its table.
///
/// Nothing that was loaded is ever unloaded: plugins start threads, and some crash at the end of
/// the process if they are gone by then.
pub(crate) fn open(path: &Path) -> Result<&'static Api, LibraryError> {
    // SAFETY: loading runs the initializers of the library. Which library that is, is the decision
    // of whoever configures this program; a plugin is trusted like the program itself.
    let library = unsafe { Library::new(path) }.map_err(|error| open_error(&error))?;
    let library: &'static Library = Box::leak(Box::new(library));
    type EntryPoint = unsafe extern "C" fn() -> *const ApiHeader;
    // SAFETY: a library that exports this name does so with this type; that makes it a plugin.
    let entry_point: Symbol<'static, EntryPoint> =
        unsafe { library.get(ENTRY_POINT) }.map_err(|_| LibraryError::NoEntryPoint)?;
    // SAFETY: as above; it takes nothing and gives the table of the plugin.
    let table = unsafe { entry_point() };
    // SAFETY: S1; the library was leaked, and the table belongs to it.
    let api = unsafe { Api::from_raw(table) }.map_err(LibraryError::Table)?;
    Ok(Box::leak(Box::new(api)))
}

/// What the system's loader said; the error itself only says that loading failed.
fn open_error(error: &libloading::Error) -> LibraryError {
    let reason =
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    LibraryError::Open(reason)
}

/// Initializes a plugin. Must be called once, before anything else.
pub(crate) fn initialize(api: &'static Api) -> Result<()> {
    let mut args = PluginInitializeArgs::NEW;
    // SAFETY: S3.
    unsafe { api.call::<PluginInitialize>(&mut args) }
}

/// What a plugin says about itself: StableHLO versions and the like.
pub(crate) fn attributes(api: &'static Api) -> Result<AttributeMap> {
    let mut args = PluginAttributesArgs::NEW;
    // SAFETY: S3.
    unsafe { api.call::<PluginAttributes>(&mut args) }?;
    // SAFETY: S9; the list lives as long as the process.
    Ok(unsafe { super::named_value::read(args.attributes, args.num_attributes) })
}
