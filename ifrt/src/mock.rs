//! Mocks of the contract: objects that do what a test expects, and fail it if something else is
//! asked of them.
//!
//! Use them to see *how* something is called: exactly once, never, with which arguments. To see
//! *what* comes out, use the working runtime in [`crate::fake`].
//!
//! Each mock has an `expect_…` function per method, as `mockall` describes. What a trait derives
//! from its other methods (`lookup_device` from `devices`, for example) is not mocked, so that it
//! works as it does everywhere. Nor is what a mock knows of itself: a [`MockArray`] is an array to
//! tuples and bundles.
//!
//! # Examples
//! ```
//! use ifrt::mock::MockArray;
//! use ifrt::{Completion, Value};
//!
//! let mut array = MockArray::new();
//! array.expect_delete().times(1).returning(Completion::done);
//! assert_eq!(array.delete().wait(), Ok(()));
//! // Dropping the mock fails the test if it was not deleted exactly once.
//! ```
//!
//! # Mirrors
//! `xla/python/ifrt/mock.h`.

#![allow(
    missing_docs,
    reason = "written by a macro; the traits document the methods"
)]

mod client;
mod executable;
mod place;
mod value;

pub use client::MockClient;
pub use executable::{
    MockCompiler, MockExecutable, MockHostCallback, MockLoadedExecutable, MockLoadedHostCallback,
};
pub use place::{MockDevice, MockMemory, MockTopology, MockUserContext};
pub use value::{MockArray, MockBundle, MockTuple};

/// Mocks print their name only: a description must not depend on expectations.
macro_rules! print_as_name {
    ($($mock:ident),*) => {
        $(impl std::fmt::Debug for $mock {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($mock))
            }
        })*
    };
}

print_as_name!(
    MockArray,
    MockBundle,
    MockClient,
    MockCompiler,
    MockDevice,
    MockExecutable,
    MockHostCallback,
    MockLoadedExecutable,
    MockLoadedHostCallback,
    MockMemory,
    MockTopology,
    MockTuple,
    MockUserContext
);
