//! Placeholder.

pub mod proto;
