//! A subscriber that keeps what spans were made of.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The spans of one thread, in the order in which they were made.
#[derive(Clone, Default)]
pub(crate) struct Collector(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    spans: Vec<Span>,
    entered: Vec<usize>,
}

struct Span {
    name: &'static str,
    depth: usize,
    fields: BTreeMap<&'static str, String>,
    references: usize,
}

impl Collector {
    /// A line per span. What differs from run to run is replaced.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for span in &self.0.lock().unwrap().spans {
            text.push_str(span.name);
            for (name, value) in &span.fields {
                let value = match *name {
                    "client_id" => "ID",
                    "elapsed_us" => "N",
                    _ => value,
                };
                write!(text, " {name}={value}").unwrap();
            }
            text.push('\n');
        }
        text
    }

    /// The names, each further in than the span that it is inside of.
    pub(crate) fn tree(&self) -> Vec<String> {
        let state = self.0.lock().unwrap();
        let line = |span: &Span| format!("{}{}", "  ".repeat(span.depth), span.name);
        state.spans.iter().map(line).collect()
    }

    /// The number of spans that are not closed.
    pub(crate) fn open(&self) -> usize {
        let state = self.0.lock().unwrap();
        state
            .spans
            .iter()
            .filter(|span| span.references > 0)
            .count()
    }

    fn with_span<T>(&self, id: &Id, f: impl FnOnce(&mut Span) -> T) -> T {
        let position = position(id);
        f(&mut self.0.lock().unwrap().spans[position])
    }
}

fn position(id: &Id) -> usize {
    usize::try_from(id.into_u64()).unwrap() - 1
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.name().starts_with("ifrt.")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = BTreeMap::new();
        attributes.record(&mut Fields(&mut fields));
        let mut state = self.0.lock().unwrap();
        let depth = state.entered.len();
        state.spans.push(Span {
            name: attributes.metadata().name(),
            depth,
            fields,
            references: 1,
        });
        Id::from_u64(u64::try_from(state.spans.len()).unwrap())
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.with_span(id, |span| values.record(&mut Fields(&mut span.fields)));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().entered.push(position(id));
    }

    fn exit(&self, id: &Id) {
        assert_eq!(self.0.lock().unwrap().entered.pop(), Some(position(id)));
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.with_span(id, |span| span.references += 1);
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        self.with_span(&id, |span| {
            span.references -= 1;
            span.references == 0
        })
    }
}
