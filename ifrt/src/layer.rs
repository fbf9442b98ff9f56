//! Layers: decorators that make a client out of any client.
//!
//! A layer sees every operation with its arguments and its outcome, and changes nothing. Whatever
//! cuts across backends (tracing, recording, metrics) is written once, as an [`Observer`], instead
//! of in each of them. Arrays, executables, tuples, bundles and compilers that come out of a layered
//! client are layered too, and are unwrapped when they go back in; their identity, their
//! descriptions and their shardings are those of the objects below.
//!
//! [`Traced`] opens a span per operation, [`Recorded`] keeps a list of them.
//!
//! # What is not here
//! Local questions (devices, names, dtypes, `is_deleted`) pass without being observed. Devices,
//! memories, topologies and unloaded executables are handed out as they are: nothing is enqueued
//! through them.
//!
//! # Examples
//! ```
//! # use ifrt::fake::{FakeClient, FakeOptions};
//! use ifrt::Client;
//! use ifrt::layer::{Op, Recorded};
//!
//! let fake = FakeClient::new(FakeOptions::default());
//! let (client, recording) = Recorded::wrap(fake);
//! client.make_tuple(&[])?.delete().wait()?;
//! let ops: Vec<Op> = recording.operations().iter().map(|one| one.op).collect();
//! assert_eq!(ops, [Op::MakeTuple, Op::Delete]);
//! # Ok::<(), ifrt::Status>(())
//! ```

mod array;
mod client;
mod executable;
mod group;
mod op;
mod record;
mod trace;

use std::fmt::Debug;

pub use client::LayeredClient;
pub use op::Op;
pub use record::{Operation, Recorded, Recording};
pub use trace::Traced;

use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::shape::Shape;
use crate::status::{Result, Status};

/// A call that an [`Observer`] sees.
///
/// Arrays, tuples and bundles have numbers that count up from one for each layered client, and so
/// have executables.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// What is called.
    pub op: Op,
    /// The layered client, unique in the process.
    pub client_id: u64,
    /// The arrays, tuples and bundles that go in; zero for one that is not of this client.
    pub inputs: &'a [u64],
    /// The executable.
    pub executable: Option<u64>,
    /// The element type, if all that is handled has one.
    pub dtype: Option<DType>,
    /// The shape of the whole array, if there is one array.
    pub shape: Option<&'a Shape>,
    /// The devices that the call is about.
    pub devices: Option<&'a DeviceList>,
    /// The bytes that go in from the host.
    pub bytes: Option<u64>,
}

/// What sees the operations of a layered client.
///
/// The methods are called on the thread that makes the call, without any lock; [`Observer::end`] on
/// the thread that fulfils the completion, if the call returned one. They must not block.
pub trait Observer: Send + Sync + Debug + 'static {
    /// What is kept from the beginning of a call to its end.
    type Pending: Send + 'static;

    /// Called before the operation.
    fn begin(&self, call: &Call<'_>) -> Self::Pending;

    /// Runs the operation. An observer with a notion of "inside" enters it here.
    fn within<T>(&self, pending: &Self::Pending, run: impl FnOnce() -> T) -> T {
        let _: &Self::Pending = pending;
        run()
    }

    /// Called once with the outcome: the numbers of the arrays, tuples and bundles that came out, or
    /// the error. If the operation returned a completion, this is the result of the completion, and
    /// never comes if the completion never does.
    fn end(&self, pending: Self::Pending, outcome: Result<&[u64], &Status>);
}
