//! Tasks: work that runs when its inputs are there.
//!
//! Nothing here has a thread. A task whose inputs are ready runs at once; otherwise it runs on the
//! thread that makes its last input ready, which in the end is the one that opens a gate.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;

use crate::completion::{Completion, Promise, join_all};
use crate::host_buffer::HostValue;
use crate::status::{Result, Status};

/// The data of a buffer: there, still to come, or failed.
pub(super) type Contents = Completion<HostValue>;

/// Computes outputs from inputs.
pub(super) type Work = Box<dyn FnOnce(Vec<HostValue>) -> Result<Vec<HostValue>> + Send>;

/// Work with its inputs, and the promises of its outputs.
pub(super) struct Task {
    /// What else must be ready, for example the permit of the fault plan.
    pub(super) after: Vec<Completion>,
    pub(super) inputs: Vec<Contents>,
    pub(super) outputs: Vec<Promise<HostValue>>,
    pub(super) work: Work,
}

impl Task {
    /// Runs the task as soon as its inputs are there. An error among them goes to all outputs.
    ///
    /// The result is ready when the task is done.
    pub(super) fn start(self) -> Completion {
        let Self {
            mut after,
            inputs,
            outputs,
            work,
        } = self;
        after.extend(inputs.iter().map(done));
        let (promise, finished) = Completion::pair();
        when_ready(&join_all(after), move |ready| {
            let values = ready.and_then(|()| run(inputs, work, outputs.len()));
            promise.set(fulfil(outputs, values));
        });
        finished
    }
}

/// One output: `work` applied to one input.
pub(super) fn derive(
    after: Completion,
    input: Contents,
    work: impl FnOnce(HostValue) -> Result<HostValue> + Send + 'static,
) -> Contents {
    let (promise, output) = Completion::pair();
    let task = Task {
        after: vec![after],
        inputs: vec![input],
        outputs: vec![promise],
        work: Box::new(move |mut values| {
            let value = values.pop().ok_or_else(|| Status::internal("no input"))?;
            work(value).map(|value| vec![value])
        }),
    };
    task.start().detach();
    output
}

/// This data, but not before `after` is ready.
pub(super) fn later(after: Completion, value: HostValue) -> Contents {
    let contents = Completion::ready(Ok(value));
    match after.peek() {
        Some(Ok(())) => contents,
        _ => derive(after, contents, Ok),
    }
}

/// The completion without the data.
pub(super) fn done(contents: &Contents) -> Completion {
    contents.then(|result| result.as_ref().map(drop).map_err(Clone::clone))
}

fn run(inputs: Vec<Contents>, work: Work, outputs: usize) -> Result<Vec<HostValue>> {
    let values = inputs
        .into_iter()
        .map(|input| {
            input
                .peek()
                .unwrap_or_else(|| Err(Status::internal("a task ran before its inputs")))
        })
        .collect::<Result<Vec<_>>>()?;
    let values = work(values)?;
    if values.len() == outputs {
        return Ok(values);
    }
    Err(Status::internal(format!(
        "a task made {} outputs instead of {outputs}",
        values.len()
    )))
}

fn fulfil(outputs: Vec<Promise<HostValue>>, values: Result<Vec<HostValue>>) -> Result<()> {
    match values {
        Ok(values) => {
            for (output, value) in outputs.into_iter().zip(values) {
                output.set(Ok(value));
            }
            Ok(())
        }
        Err(status) => {
            for output in outputs {
                output.set(Err(status.clone()));
            }
            Err(status)
        }
    }
}

type Job = Box<dyn FnOnce()>;

thread_local! {
    /// What this thread still has to run; `None` while it runs nothing.
    static QUEUE: RefCell<Option<VecDeque<Job>>> = const { RefCell::new(None) };
}

/// Runs `f` with the result: at once if it is there, else from the thread that makes it so.
///
/// A result that comes later runs `f` through a queue, because each output of a long chain of
/// operations would otherwise deepen the stack by one more callback.
pub(super) fn when_ready(completion: &Completion, f: impl FnOnce(Result<()>) + Send + 'static) {
    if let Some(result) = completion.peek() {
        f(result);
        return;
    }
    completion.on_ready(move |result| {
        let result = result.clone();
        run_queued(Box::new(move || f(result)));
    });
}

fn run_queued(job: Job) {
    let queued = QUEUE.with_borrow_mut(|queue| match queue {
        Some(queue) => {
            queue.push_back(job);
            true
        }
        None => {
            *queue = Some(VecDeque::from([job]));
            false
        }
    });
    if queued {
        return;
    }
    let _end = EndOfQueue;
    while let Some(job) =
        QUEUE.with_borrow_mut(|queue| queue.as_mut().and_then(VecDeque::pop_front))
    {
        job();
    }
}

/// Empties the queue also if a job panics. The promises of the jobs that are left are dropped,
/// which tells their receivers.
struct EndOfQueue;

impl Drop for EndOfQueue {
    fn drop(&mut self) {
        let rest = QUEUE.with_borrow_mut(Option::take);
        drop(rest);
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("after", &self.after)
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs.len())
            .finish_non_exhaustive()
    }
}
