//! The crate on a real plugin: the CPU plugin of `cargo xtask setup`.

mod create;
mod host;
mod run;
mod support;
