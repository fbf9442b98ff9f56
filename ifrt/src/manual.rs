//! The manual, in pages.
//!
//! 1. [`what_ifrt_is`]: the idea, the objects and their verbs.
//! 2. [`who_checks_what`]: whose task each check is, and what errors say.
//! 3. [`blocking`]: which calls may take time, and what completions promise.
//! 4. [`deletion`]: how data ends.
//! 5. [`writing_a_backend`]: what to implement, in which order, and how to know that it is right.

#[doc = include_str!("manual/what_ifrt_is.md")]
pub mod what_ifrt_is {}

#[doc = include_str!("manual/who_checks_what.md")]
pub mod who_checks_what {}

#[doc = include_str!("manual/blocking.md")]
pub mod blocking {}

#[doc = include_str!("manual/deletion.md")]
pub mod deletion {}

#[doc = include_str!("manual/writing_a_backend.md")]
pub mod writing_a_backend {}
