//! The crate on a real plugin: the CPU plugin of `cargo xtask setup`.

mod create;
mod deletion;
mod donation;
mod host;
mod run;
mod spmd;
mod support;
