//! What was logged, from any thread.

use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Starts to collect; lines of other tests are among them.
pub(crate) fn collect() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| tracing::subscriber::set_global_default(Collector).unwrap());
}

/// The lines so far that contain all of `words`.
pub(crate) fn lines_with(words: &[&str]) -> Vec<String> {
    let lines = LINES.lock().unwrap();
    let fitting = lines
        .iter()
        .filter(|line| words.iter().all(|word| line.contains(word)));
    fitting.cloned().collect()
}

struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        LINES.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}
