//! [`Api`]: a plugin's function table, and the one way to call a function of it.

use std::marker::PhantomData;
use std::ptr::NonNull;

use ifrt::{Result, Status};

use super::error;
use crate::sys::api::{ApiHeader, ErrorDestroy, ErrorGetCode, ErrorMessage};
use crate::sys::ext::{Ffi, Layouts, Shardings, extension_type};
use crate::sys::{self, ExtensionBase, Function, FunctionPointer};

/// The major version of the API that is spoken here.
pub(crate) const MAJOR: i32 = sys::MAJOR;

/// The oldest minor version that is understood here.
pub(crate) const MIN_MINOR: i32 = sys::MIN_MINOR;

/// A chain longer than this is taken for a circle.
const MAX_EXTENSIONS: usize = 256;

/// A function table: where it begins and how many bytes of it exist.
#[derive(Debug)]
pub(crate) struct Table<T> {
    base: NonNull<u8>,
    size: usize,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Table<T> {}

// SAFETY: S1; a table is immutable and lives as long as the process.
unsafe impl<T> Send for Table<T> {}
// SAFETY: S1, as above.
unsafe impl<T> Sync for Table<T> {}

impl<T> Table<T> {
    /// The function `F`, if the plugin has it.
    fn function<F: Function<Table = T>>(self) -> Option<FunctionPointer<F>> {
        if F::OFFSET + size_of::<usize>() > self.size {
            return None;
        }
        // SAFETY: S1 and S2; the slot lies inside the table.
        let slot = unsafe { self.base.add(F::OFFSET) };
        // SAFETY: S1 and S2; a slot is a function pointer of this type or NULL.
        unsafe { slot.cast::<Option<FunctionPointer<F>>>().read() }
    }
}

/// A kind of table that an [`Api`] may have.
pub(crate) trait InApi: Sized {
    fn table(api: &Api) -> Option<Table<Self>>;
}

impl InApi for sys::api::Api {
    fn table(api: &Api) -> Option<Table<Self>> {
        Some(api.main)
    }
}

impl InApi for Layouts {
    fn table(api: &Api) -> Option<Table<Self>> {
        api.layouts
    }
}

impl InApi for Shardings {
    fn table(api: &Api) -> Option<Table<Self>> {
        api.shardings
    }
}

impl InApi for Ffi {
    fn table(api: &Api) -> Option<Table<Self>> {
        api.ffi
    }
}

/// The functions without which no error could be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorFunctions {
    pub(super) destroy: FunctionPointer<ErrorDestroy>,
    pub(super) message: FunctionPointer<ErrorMessage>,
    pub(super) code: FunctionPointer<ErrorGetCode>,
}

/// A plugin's function table and those of its extensions.
#[derive(Debug)]
pub(crate) struct Api {
    main: Table<sys::api::Api>,
    layouts: Option<Table<Layouts>>,
    shardings: Option<Table<Shardings>>,
    ffi: Option<Table<Ffi>>,
    extensions: Vec<i32>,
    minor: i32,
    pub(super) errors: ErrorFunctions,
}

/// Why a table cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableError {
    /// There is none.
    Null,
    /// It states a size without room for the functions that read errors, or lacks them.
    Truncated { size: usize },
    /// It is of a version with another order of functions.
    Version { major: i32, minor: i32 },
}

impl Api {
    /// Takes a plugin's table.
    ///
    /// # Safety
    /// S1: unless it is NULL, `raw` is the table of a plugin (or one made like it), as large as it
    /// states, immutable, and valid for the rest of the process.
    pub(crate) unsafe fn from_raw(raw: *const ApiHeader) -> Result<Self, TableError> {
        let base = NonNull::new(raw.cast_mut()).ok_or(TableError::Null)?;
        // SAFETY: S1; every table begins with its size, and the two words after it.
        let head = unsafe { base.cast::<[usize; 2]>().as_ref() };
        let size = head[0];
        if size < size_of::<ApiHeader>() {
            return Err(TableError::Truncated { size });
        }
        // SAFETY: S1; the size leaves room for the whole head.
        let header = unsafe { base.as_ref() };
        let (major, minor) = (header.version.major_version, header.version.minor_version);
        if major != sys::MAJOR || minor < sys::MIN_MINOR {
            return Err(TableError::Version { major, minor });
        }
        let main = Table {
            base: base.cast(),
            size,
            kind: PhantomData,
        };
        let errors = (|| {
            Some(ErrorFunctions {
                destroy: main.function::<ErrorDestroy>()?,
                message: main.function::<ErrorMessage>()?,
                code: main.function::<ErrorGetCode>()?,
            })
        })()
        .ok_or(TableError::Truncated { size })?;
        // SAFETY: S1; the chain belongs to the table.
        let chain = unsafe { extensions(header.extension_start) };
        Ok(Self {
            main,
            layouts: find(&chain, extension_type::LAYOUTS),
            shardings: find(&chain, extension_type::SHARDINGS),
            ffi: find(&chain, extension_type::FFI),
            extensions: chain.iter().map(|(kind, ..)| *kind).collect(),
            minor,
            errors,
        })
    }

    /// The minor version of the API that the plugin was built with.
    pub(crate) fn minor(&self) -> i32 {
        self.minor
    }

    /// The numbers of the extensions that the plugin has, in the order of its chain.
    pub(crate) fn extensions(&self) -> &[i32] {
        &self.extensions
    }

    /// True if the plugin has the function `F`.
    pub(crate) fn has<F: Function>(&self) -> bool
    where
        F::Table: InApi,
    {
        F::Table::table(self).is_some_and(|table| table.function::<F>().is_some())
    }

    /// Calls `F`.
    ///
    /// # Safety
    /// S3 to S12 as far as the function needs them: the pointers in `args` are what the header of
    /// the API asks for.
    ///
    /// # Errors
    /// UNIMPLEMENTED if the plugin lacks the function; else the error of the call.
    pub(crate) unsafe fn call<F>(&self, args: &mut F::Args) -> Result<()>
    where
        F: Function<Ret = *mut sys::Error>,
        F::Table: InApi,
    {
        let function = F::Table::table(self)
            .and_then(Table::function::<F>)
            .ok_or_else(|| self.missing::<F>())?;
        tracing::trace!(op = F::NAME, "pjrt.call");
        // SAFETY: S1 and S2 for the function, S3 to S12 as promised by the caller.
        let error = unsafe { function(args) };
        error::check(self, error)
    }

    fn missing<F: Function>(&self) -> Status {
        let since = match F::SINCE {
            0 => String::new(),
            since => format!("; it came with version 0.{since}"),
        };
        Status::unimplemented(format!(
            "this plugin (PJRT C API 0.{}) has no {}{since}",
            self.minor,
            F::NAME
        ))
    }
}

/// The type, the address and the size of each extension in a chain.
///
/// # Safety
/// S1 for the chain.
unsafe fn extensions(start: *mut ExtensionBase) -> Vec<(i32, NonNull<u8>, usize)> {
    let mut found = Vec::new();
    let mut next = NonNull::new(start);
    while let Some(extension) = next {
        if found.len() == MAX_EXTENSIONS {
            break;
        }
        // SAFETY: S1; each extension begins with the common head.
        let head = unsafe { extension.as_ref() };
        found.push((head.type_, extension.cast(), head.struct_size));
        next = NonNull::new(head.next);
    }
    found
}

fn find<T>(chain: &[(i32, NonNull<u8>, usize)], wanted: i32) -> Option<Table<T>> {
    let (_, base, size) = chain.iter().find(|(kind, ..)| *kind == wanted)?;
    Some(Table {
        base: *base,
        size: *size,
        kind: PhantomData,
    })
}

#[cfg(test)]
mod tests;
