//! IFRT, the contract between JAX and the runtimes below it, in Rust.
//!
//! A runtime implements the traits of this crate; whoever uses or serves one speaks only to them.
//! The crate itself performs no I/O, starts no thread and knows no backend.
//!
//! # The manual
//! - [`manual::what_ifrt_is`]: the objects and their verbs.
//! - [`manual::who_checks_what`]: whose task each check is, and what errors say.
//! - [`manual::blocking`]: which calls may take time, and what completions promise.
//! - [`manual::deletion`]: how data ends.
//! - [`manual::writing_a_backend`]: what to implement, in which order, and how to know that it is
//!   right.
//!
//! # What is where
//! - [`client`]: the entrance to a runtime; [`compiler`] and [`executable`]: programs.
//! - [`value`] and [`mod@array`]: data on devices, and the rules of deletion.
//!   [`mod@tuple`] and [`bundle`]: several of them as one.
//! - [`completion`]: how results arrive. Work is under way before a completion is returned.
//! - [`status`]: how errors look. [`user_context`]: where in the user's program they come from.
//! - [`sharding`], [`device_list`], [`memory`]: where data lives. [`xla`]: the values that XLA
//!   brings along. [`remap_plan`]: moving shards between arrays without moving data.
//! - [`serdes`]: the values on the wire. [`proto`]: the generated messages.
//! - [`layer`]: decorators that trace or record what a client does.
//! - Test support, behind features of the same names: `fake`, a runtime in host memory; `mock`,
//!   objects with expectations; `conformance`, the suite that every backend has to pass.

pub mod array;
pub mod array_hash;
pub mod array_spec;
pub mod attribute_map;
pub mod bundle;
pub mod client;
pub mod compiler;
pub mod completion;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod device;
pub mod device_list;
pub mod dtype;
pub mod executable;
#[cfg(feature = "fake")]
pub mod fake;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod host_buffer;
pub mod host_callback;
pub mod index;
pub mod layer;
pub mod layout;
pub mod manual;
pub mod memory;
#[cfg(feature = "mock")]
pub mod mock;
pub mod program;
pub mod proto;
pub mod remap_plan;
pub mod serdes;
pub mod shape;
pub mod sharding;
pub mod status;
pub mod topology;
pub mod tuple;
pub mod user_context;
pub mod value;
pub mod xla;

pub use array::{Array, ArrayCopySemantics, ArrayRef, ShardSemantics};
pub use array_hash::HashMode;
pub use array_spec::{AbstractArraySpec, ArraySpec};
pub use attribute_map::{AttributeMap, AttributeValue};
pub use bundle::{Bundle, BundleRef};
pub use client::{Client, HostShards};
pub use compiler::{Compiler, CompilerRef};
pub use completion::{Completion, Promise, join_all};
pub use device::{Device, DeviceId, DeviceRef};
pub use device_list::DeviceList;
pub use dtype::DType;
pub use executable::{
    CompiledMemoryStats, Executable, ExecutableRef, ExecutableVersion, ExecuteBundleResult,
    ExecuteOptions, ExecuteResult, LoadedExecutable, LoadedExecutableRef,
};
pub use host_buffer::{HostBuffer, HostData, HostValue};
pub use host_callback::{HostCallback, HostCallbackRef, LoadedHostCallback, LoadedHostCallbackRef};
pub use index::{Index, IndexDomain};
pub use layout::Layout;
pub use memory::{Memory, MemoryId, MemoryKind, MemoryRef};
pub use program::{CompileOptions, HloProgram, Program, XlaCompileOptions};
pub use remap_plan::RemapPlan;
pub use shape::Shape;
pub use sharding::{Sharding, ShardingKind, ShardingRef, ShardingSpec};
pub use status::{Code, Result, Status};
pub use topology::{Topology, TopologyRef};
pub use tuple::{Tuple, TupleRef};
pub use user_context::{UserContext, UserContextRef};
pub use value::{Value, ValueRef};
