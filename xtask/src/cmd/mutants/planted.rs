//! The bugs that are planted, and the test that has to find each.

/// A bug.
#[derive(Debug)]
pub(super) struct Planted {
    /// What is wrong then.
    pub(super) what: &'static str,
    /// The file below `jaxlib-core/src/deletion`.
    pub(super) file: &'static str,
    /// Text that stands in the file exactly once.
    pub(super) from: &'static str,
    /// What stands there instead.
    pub(super) to: &'static str,
    /// A part of the names of the tests of which one must fail.
    pub(super) tests: &'static str,
}

/// All of them.
pub(super) const PLANTED: [Planted; 12] = [
    Planted {
        what: "a dead buffer can be pinned",
        file: "cell.rs",
        from: "\
            if let Some(reason) = dead(decode(word)) {
                return Err(reason);
            }
            match self.exchange(word, word + ONE_PIN) {",
        to: "\
            match self.exchange(word, word + ONE_PIN) {",
        tests: "model::arrays_behave_as_the_model",
    },
    Planted {
        what: "the last unpin tells nobody",
        file: "cell.rs",
        from: "\
        if before / ONE_PIN == 1 && decode(before) != State::Live {
            self.notify();
        }",
        to: "",
        tests: "deletion::a_deletion_waits_for_calls_that_are_being_enqueued",
    },
    Planted {
        what: "a buffer in use can be given away",
        file: "cell.rs",
        from: "return Begin::Busy;",
        to: "return Begin::Begun;",
        tests: "deletion::a_busy_buffer_is_not_donated",
    },
    Planted {
        what: "a donation that did not happen is final",
        file: "cell.rs",
        from: "(false, _) => LIVE,",
        to: "(false, _) => DONATED,",
        tests: "laws::calls::a_call_that_the_runtime_refuses_gives_everything_back",
    },
    Planted {
        what: "a donation that did not happen undoes a deletion",
        file: "cell.rs",
        from: "(false, State::DonatingDeleted) => DELETED,",
        to: "(false, State::DonatingDeleted) => LIVE,",
        tests: "cell::tests::deletion_during_donation_waits_for_its_outcome",
    },
    Planted {
        what: "deletion does not look whether the buffer is in use",
        file: "cell.rs",
        from: "Err(word) => is_quiet(word),",
        to: "Err(_) => true,",
        tests: "model::threads::threads_see_one_truth",
    },
    Planted {
        what: "whoever waits for a quiet cell is forgotten",
        file: "cell.rs",
        from: "waiting.push(Arc::clone(waiter));",
        to: "",
        tests: "deletion::a_deletion_waits_for_calls_that_are_being_enqueued",
    },
    Planted {
        what: "everybody tells the runtime",
        file: "cell.rs",
        from: "self.exchange(DELETED, TOLD).is_ok()",
        to: "self.exchange(DELETED, TOLD).is_ok() || true",
        tests: "laws::death::deletion_under_every_fault",
    },
    Planted {
        what: "a donation that may still fail counts as done",
        file: "cell.rs",
        from: "!matches!(self.state(), State::Live | State::Donating)",
        to: "!matches!(self.state(), State::Live)",
        tests: "deletion::deletion_during_a_donating_call",
    },
    Planted {
        what: "what the runtime took by itself counts as deleted by us",
        file: "cell.rs",
        from: "self.exchange(word, word | DONATED)",
        to: "self.exchange(word, word | DELETED)",
        tests: "cell::tests::what_the_runtime_took_on_its_own_is_donated",
    },
    Planted {
        what: "only the first part of an array dies",
        file: "buffer_set.rs",
        from: "\
        for cell in self.cells.iter() {
            if cell.condemn() {",
        to: "\
        for cell in self.cells.iter().take(1) {
            if cell.condemn() {",
        tests: "model::arrays_behave_as_the_model",
    },
    Planted {
        what: "a batch loses its last array",
        file: "buffer_set.rs",
        from: "batch.push(last);",
        to: "",
        tests: "laws::accounting::many_at_once",
    },
];
