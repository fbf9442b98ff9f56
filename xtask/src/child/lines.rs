//! The lines that a child prints, collected by one thread per stream.

use super::{Output, Shared};
use std::io::{BufRead as _, BufReader, Read};
use std::sync::Arc;

/// The stream on which a line came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// One line, without its end; bytes that are not Unicode are replaced.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) stream: Stream,
    pub(crate) text: String,
}

/// Starts the thread that collects one stream.
pub(super) fn collect(
    source: impl Read + Send + 'static,
    stream: Stream,
    output: Output,
    shared: Arc<Shared>,
) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(source);
        let mut bytes = Vec::new();
        // A read that fails ends the stream like its closing does: the child is about to end.
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&bytes)
                .trim_end_matches(['\n', '\r'])
                .to_owned();
            bytes.clear();
            if output == Output::KeepAndPrint {
                println!("{text}");
            }
            shared.lock().lines.push(Line { stream, text });
            shared.changed.notify_all();
        }
        let mut state = shared.lock();
        state.open_streams = state.open_streams.saturating_sub(1);
        drop(state);
        shared.changed.notify_all();
    });
}
