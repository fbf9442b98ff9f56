//! [`Traced`]: a layer that opens a span per operation.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use tracing::Span;

use super::{Call, LayeredClient, Observer};
use crate::client::Client;
use crate::device_list::DeviceList;
use crate::status::{Result, Status};
use crate::user_context;

/// A layer that opens a span per operation: `ifrt.execute`, `ifrt.delete` and so on, at debug level.
///
/// | Field | Meaning |
/// |---|---|
/// | `op` | the operation |
/// | `client_id` | the layered client, unique in the process |
/// | `array` | the arrays, tuples and bundles that go in, as hexadecimal numbers |
/// | `executable` | the executable, as a hexadecimal number |
/// | `dtype`, `shape` | `f32`, `2x3` |
/// | `devices` | a compact list, `0..4` for the devices 0 to 3 |
/// | `bytes` | what comes from the host; never its contents |
/// | `user_context` | the number of the current user context |
/// | `outputs` | the arrays, tuples and bundles that came out, as hexadecimal numbers |
/// | `code` | the name of the canonical code, on failure |
/// | `elapsed_us` | from the call to its result |
///
/// What the runtime does during the call happens inside the span. The span of an operation that
/// returns a completion closes when the completion is ready.
///
/// # Examples
/// ```
/// # use ifrt::fake::{FakeClient, FakeOptions};
/// let client = ifrt::layer::Traced::wrap(FakeClient::new(FakeOptions::default()));
/// assert_eq!(client.runtime_type(), "fake");
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Traced;

impl Traced {
    /// A client that does what `client` does, inside spans.
    pub fn wrap(client: Arc<dyn Client>) -> Arc<dyn Client> {
        LayeredClient::new(client, Self)
    }
}

impl Observer for Traced {
    type Pending = (Span, Instant);

    fn begin(&self, call: &Call<'_>) -> (Span, Instant) {
        let span = call.op.span();
        if !span.is_disabled() {
            record(&span, call);
        }
        (span, Instant::now())
    }

    fn within<T>(&self, (span, _): &(Span, Instant), run: impl FnOnce() -> T) -> T {
        span.in_scope(run)
    }

    fn end(&self, (span, since): (Span, Instant), outcome: Result<&[u64], &Status>) {
        if span.is_disabled() {
            return;
        }
        match outcome {
            Ok([]) => {}
            Ok(ids) => {
                span.record("outputs", hexadecimal(ids));
            }
            Err(status) => {
                span.record("code", status.code().name());
            }
        }
        let elapsed = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        span.record("elapsed_us", elapsed);
    }
}

fn record(span: &Span, call: &Call<'_>) {
    span.record("client_id", call.client_id);
    if !call.inputs.is_empty() {
        span.record("array", hexadecimal(call.inputs));
    }
    if let Some(executable) = call.executable {
        span.record("executable", hexadecimal(&[executable]));
    }
    if let Some(dtype) = call.dtype {
        span.record("dtype", dtype.name());
    }
    if let Some(shape) = call.shape {
        let dims: Vec<String> = shape.dims().iter().map(i64::to_string).collect();
        span.record("shape", dims.join("x"));
    }
    if let Some(devices) = call.devices {
        span.record("devices", compact(devices));
    }
    if let Some(bytes) = call.bytes {
        span.record("bytes", bytes);
    }
    if let Some(context) = user_context::current() {
        span.record("user_context", context.id());
    }
}

/// More than so many numbers say nothing to a reader.
const LISTED: usize = 16;

fn hexadecimal(ids: &[u64]) -> String {
    let mut text = String::new();
    for (position, id) in ids.iter().take(LISTED).enumerate() {
        let separator = if position > 0 { "," } else { "" };
        // Writing to a string cannot fail.
        write!(text, "{separator}{id:#x}").unwrap_or_default();
    }
    if ids.len() > LISTED {
        text.push_str(",…");
    }
    text
}

/// Runs of ids as ranges that exclude their ends: `0..4,7`.
fn compact(devices: &DeviceList) -> String {
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for id in devices.ids() {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(id.0) => *last = id.0,
            _ => runs.push((id.0, id.0)),
        }
    }
    let runs = runs
        .into_iter()
        .map(|(first, last)| match last.checked_add(1) {
            Some(end) if first != last => format!("{first}..{end}"),
            _ if first != last => format!("{first}..={last}"),
            _ => first.to_string(),
        });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
