//! The conformance suite: what the contract asks, as named cases that any backend can run.
//!
//! A backend adds one file. It says how to make a client and what the runtime below cannot do; the
//! suite brings the cases, the judgment and the report.
//!
//! ```no_run
//! // tests/conformance.rs, with `harness = false` in the manifest
//! # use ifrt::fake::{FakeClient, FakeOptions};
//! use std::process::ExitCode;
//! use std::sync::Arc;
//!
//! use ifrt::conformance::{self, Backend};
//! use ifrt::{Client, Result};
//!
//! # fn connect() -> Arc<dyn Client> {
//! #     FakeClient::new(FakeOptions::default())
//! # }
//! struct Mine;
//!
//! impl Backend for Mine {
//!     fn name(&self) -> &str {
//!         "mine"
//!     }
//!
//!     fn client(&self) -> Result<Arc<dyn Client>> {
//!         Ok(connect())
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     conformance::main(vec![Arc::new(Mine)])
//! }
//! ```
//!
//! # Names
//! A case is called `BACKEND::GROUP::ID_WORDS`, for example `fake::arr::ARR_04_on_done_called`. The
//! ids are those of the contract's list, each of them once: either there is a case, or
//! [`ids::NOT_APPLICABLE`] says why there is none.
//!
//! # Outcomes
//! - A case is *skipped* with a reason if the client lacks what it needs ([`Caps`], too few devices
//!   or memories), or if the backend lists it as *unsupported*, which is meant for ever.
//! - A case that the backend lists as an *expected failure* runs and must fail. One that passes
//!   fails the run, so that the list can only shrink.
//! - A case that does not come to an end within [`harness::DEADLINE`] has failed.
//!
//! Each case gets a client of its own. Cases run on several threads at once.

pub mod backend;
mod cases;
mod check;
mod data;
mod fixture;
pub mod harness;
pub mod ids;
pub mod program;

pub use backend::{Backend, Caps, Listed};
pub use harness::main;
pub use program::ProgramKind;

#[cfg(test)]
mod tests;
