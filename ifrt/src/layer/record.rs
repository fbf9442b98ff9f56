//! [`Recorded`]: a layer that keeps a list of the operations, for tests.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Call, LayeredClient, Observer, Op};
use crate::client::Client;
use crate::device_list::DeviceList;
use crate::dtype::DType;
use crate::shape::Shape;
use crate::status::{Result, Status};
use crate::user_context;

/// A layer that keeps a list of the operations.
#[derive(Debug)]
pub struct Recorded(Recording);

impl Recorded {
    /// A client that does what `client` does, and the list of what it did.
    pub fn wrap(client: Arc<dyn Client>) -> (Arc<dyn Client>, Recording) {
        let recording = Recording::default();
        let layered = LayeredClient::new(client, Self(recording.clone()));
        (layered, recording)
    }
}

/// The operations of a [`Recorded`] client so far. A cheap clone of one list.
#[derive(Clone, Default)]
pub struct Recording(Arc<Mutex<Vec<Operation>>>);

/// An operation that was called.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Operation {
    /// What was called.
    pub op: Op,
    /// The arrays, tuples and bundles that went in; see [`Call::inputs`].
    pub inputs: Vec<u64>,
    /// The executable.
    pub executable: Option<u64>,
    /// The element type.
    pub dtype: Option<DType>,
    /// The shape of the whole array.
    pub shape: Option<Shape>,
    /// The devices that the call is about.
    pub devices: Option<DeviceList>,
    /// The bytes that went in from the host.
    pub bytes: Option<u64>,
    /// The number of the user context that was current.
    pub user_context: Option<u64>,
    /// What came out; `None` while the call or its completion is under way.
    pub outcome: Option<Result<Vec<u64>>>,
}

impl Recording {
    /// The operations in the order in which they were called.
    pub fn operations(&self) -> Vec<Operation> {
        self.lock().clone()
    }

    /// How often `op` was called.
    pub fn count(&self, op: Op) -> usize {
        self.lock().iter().filter(|one| one.op == op).count()
    }

    /// Neither foreign code nor anything that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, Vec<Operation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Recorded {
    /// The place of the operation in the list.
    type Pending = usize;

    fn begin(&self, call: &Call<'_>) -> usize {
        let operation = Operation {
            op: call.op,
            inputs: call.inputs.to_vec(),
            executable: call.executable,
            dtype: call.dtype,
            shape: call.shape.cloned(),
            devices: call.devices.cloned(),
            bytes: call.bytes,
            user_context: user_context::current().map(|context| context.id()),
            outcome: None,
        };
        let mut operations = self.0.lock();
        operations.push(operation);
        operations.len() - 1
    }

    fn end(&self, place: usize, outcome: Result<&[u64], &Status>) {
        let outcome = outcome.map(<[u64]>::to_vec).map_err(Clone::clone);
        if let Some(operation) = self.0.lock().get_mut(place) {
            operation.outcome = Some(outcome);
        }
    }
}

/// One line per operation, as `3 = execute(1, 2)`.
impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ids: &[u64]| {
            let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
            ids.join(", ")
        };
        for operation in self.operations() {
            let inputs = list(&operation.inputs);
            match &operation.outcome {
                None => writeln!(f, "{}({inputs}) under way", operation.op)?,
                Some(Err(status)) => writeln!(f, "{}({inputs}) failed: {status}", operation.op)?,
                Some(Ok(ids)) if ids.is_empty() => writeln!(f, "{}({inputs})", operation.op)?,
                Some(Ok(ids)) => writeln!(f, "{} = {}({inputs})", list(ids), operation.op)?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
