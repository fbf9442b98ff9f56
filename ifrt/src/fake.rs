//! A runtime in host memory, written to be read first by whoever writes a backend.
//!
//! It does everything that the contract asks for: it stores, copies, assembles, takes apart, remaps,
//! reshards, bitcasts, donates and deletes arrays, and runs programs, on as many devices as wanted.
//! It needs no plugin and no thread. What goes wrong, and when, is up to a [`fault::FaultPlan`].
//!
//! # How to read it
//! 1. `client.rs`: the trait [`crate::Client`], one line per method.
//! 2. `make.rs`: how an array is made, from the checks to the buffers.
//! 3. `array.rs`: what an array is made of, and how it is read.
//! 4. `heap.rs`: what lives and dies. Deletion and donation are decided there, under one lock.
//! 5. `task.rs`: how work waits for its inputs without a thread.
//! 6. `rearrange.rs`: arrays from arrays. `program.rs`, `compiler.rs`, `executable.rs`: programs.
//!
//! # What a backend should copy
//! Each operation has the same four steps. First everything is checked, so that an error leaves all
//! arrays as they were. Then the runtime below may refuse (here: the fault plan). Then all inputs
//! are taken at once, which is where donated ones die. Last, the outputs are made; they exist at
//! once and become ready when the work is done, so nothing waits.
//!
//! # What is not here
//! Speed, memory layouts (they are remembered, but the data stays dense), transfers between
//! processes, StableHLO. Test support only: the feature `fake` is never enabled by a normal
//! dependency.

mod array;
mod client;
mod compiler;
mod device;
mod elements;
mod executable;
pub mod fault;
mod heap;
mod make;
mod options;
pub mod program;
mod rearrange;
mod task;

pub use client::FakeClient;
pub use heap::{BufferId, DeleteCounts};
pub use options::FakeOptions;
