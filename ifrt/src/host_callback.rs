//! [`HostCallback`] and [`LoadedHostCallback`]: code of the host that a program calls while it runs.
//!
//! Both are opaque: how the call is made is a matter between the program and its runtime.
//!
//! # Mirrors
//! `xla/python/ifrt/host_callback.h`.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use crate::client::Client;
use crate::status::{Result, Status};

/// A shared [`HostCallback`].
pub type HostCallbackRef = Arc<dyn HostCallback>;

/// A shared [`LoadedHostCallback`].
pub type LoadedHostCallbackRef = Arc<dyn LoadedHostCallback>;

/// Code of the host that is not yet bound to a runtime.
pub trait HostCallback: Any + Send + Sync + Debug {
    /// The callback as bytes, for whoever loads it.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Mirrors
    /// `HostCallback::Serialize`.
    fn serialize(&self) -> Bytes;
}

/// Code of the host that the programs of one client can call.
pub trait LoadedHostCallback: Any + Send + Sync + Debug {
    /// The client whose programs can call it.
    ///
    /// # Blocking
    /// Never.
    fn client(&self) -> Arc<dyn Client>;

    /// The callback as bytes.
    ///
    /// # Blocking
    /// Never.
    ///
    /// # Errors
    /// UNIMPLEMENTED unless the callback can leave its process.
    ///
    /// # Mirrors
    /// `LoadedHostCallback::Serialize`.
    fn serialize(&self) -> Result<Bytes> {
        Err(Status::unimplemented(
            "this host callback cannot be serialized: it lives in its process only",
        ))
    }
}
