//! How far a run is: a bar on a terminal, and a line per file everywhere.

use std::io::{IsTerminal as _, Write as _, stdout};
use std::sync::{Mutex, PoisonError};

/// How many characters the bar has.
const WIDTH: usize = 30;

/// The progress of a run, shared by its threads.
#[derive(Debug)]
pub(super) struct Progress {
    is_terminal: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: usize,
    files_done: usize,
    /// The tests of the files that are at work, and how many of them have ended.
    tests: usize,
    tests_done: usize,
}

impl Progress {
    pub(super) fn new(files: usize) -> Self {
        Self {
            is_terminal: stdout().is_terminal(),
            state: Mutex::new(State {
                files,
                ..State::default()
            }),
        }
    }

    /// A process has this many tests to run.
    pub(super) fn expect(&self, tests: usize, file: &str) {
        self.change(file, |state| state.tests += tests);
    }

    /// A test has ended.
    pub(super) fn advance(&self, file: &str) {
        self.change(file, |state| state.tests_done += 1);
    }

    /// A file is done; `line` says how it went.
    pub(super) fn finish(&self, line: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.files_done += 1;
        if self.is_terminal {
            print!("\r\x1b[2K");
        }
        println!("[{}/{}] {line}", state.files_done, state.files);
    }

    fn change(&self, file: &str, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if self.is_terminal {
            print!("\r\x1b[2K{}", line(&state, file));
            // A bar that cannot be drawn must not end the run.
            stdout().flush().unwrap_or_default();
        }
    }
}

fn line(state: &State, file: &str) -> String {
    let whole = state.tests.max(1);
    let filled = (state.tests_done * WIDTH / whole).min(WIDTH);
    format!(
        "[{}{}] file {} of {}, test {} of {}: {file}",
        "#".repeat(filled),
        ".".repeat(WIDTH - filled),
        (state.files_done + 1).min(state.files),
        state.files,
        state.tests_done,
        state.tests,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_never_too_long() {
        for (tests, tests_done) in [(0, 0), (0, 7), (3, 1), (3, 3), (3, 9)] {
            let state = State {
                files: 2,
                files_done: 2,
                tests,
                tests_done,
            };
            let bar = line(&state, "a_test");
            assert_eq!(bar.find(']'), Some(WIDTH + 1), "{bar}");
            assert!(bar.contains("file 2 of 2"), "{bar}");
        }
    }
}
