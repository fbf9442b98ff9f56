//! Pointers to C objects that may cross threads. The only place with `Send` and `Sync` promises.

use std::fmt;
use std::ptr::NonNull;

use crate::sys;
use ifrt::{Result, Status};

/// A pointer to an object of the C API that is not NULL. It owns nothing.
pub(crate) struct Handle<T: Opaque>(NonNull<T>);

/// The objects of the C API that may be used from every thread.
pub(crate) trait Opaque {}

impl Opaque for sys::Buffer {}
impl Opaque for sys::Client {}
impl Opaque for sys::Device {}
impl Opaque for sys::Error {}
impl Opaque for sys::Event {}
impl Opaque for sys::Executable {}
impl Opaque for sys::FulfillAliasBufferCallback {}
impl Opaque for sys::LayoutsMemoryLayout {}
impl Opaque for sys::LoadedExecutable {}
impl Opaque for sys::Memory {}

impl<T: Opaque> Handle<T> {
    /// The handle for what a plugin gave; INTERNAL if it gave NULL.
    pub(crate) fn new(pointer: *mut T, function: &str) -> Result<Self> {
        NonNull::new(pointer)
            .map(Self)
            .ok_or_else(|| Status::internal(format!("{function} succeeded but gave no object")))
    }

    /// The handle for what a plugin gave, if it gave anything.
    pub(crate) fn new_opt(pointer: *mut T) -> Option<Self> {
        NonNull::new(pointer).map(Self)
    }

    pub(crate) const fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }
}

impl<T: Opaque> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Opaque> Copy for Handle<T> {}

impl<T: Opaque> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: Opaque> Eq for Handle<T> {}

impl<T: Opaque> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// SAFETY: S12; the handle itself is a number, and the objects allow calls from every thread.
unsafe impl<T: Opaque> Send for Handle<T> {}
// SAFETY: S12, as above.
unsafe impl<T: Opaque> Sync for Handle<T> {}
