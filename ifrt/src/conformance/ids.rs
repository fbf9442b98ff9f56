//! The ids of the contract's list, and those that have no case here.

/// How many ids each group of the contract's list has.
pub const COUNTS: [(&str, u32); 11] = [
    ("ARR", 55),
    ("XAR", 1),
    ("PRX", 4),
    ("CLI", 5),
    ("TUP", 4),
    ("BUN", 9),
    ("RMP", 7),
    ("EXE", 17),
    ("RSH", 20),
    ("STR", 34),
    ("NEW", 18),
];

/// The ids without a case that a backend could run, and why.
pub const NOT_APPLICABLE: &[(&str, &str)] = &[
    (
        "EXE-17",
        "tests a class of the PJRT backend of the reference; host callbacks are opaque here",
    ),
    (
        "STR-02",
        "a completion without a state, which the reference has, cannot be made here",
    ),
    (
        "STR-11",
        "strings are shared and never written: their host data has no other semantics to ask for",
    ),
    (
        "STR-29",
        "the tests of the reference create arrays and assert nothing",
    ),
    (
        "NEW-12",
        "is about a lost connection: the tests of the proxy client have it",
    ),
    (
        "NEW-15",
        "is about values, not about runtimes: a property test of shardings",
    ),
    (
        "NEW-16",
        "is about values, not about runtimes: a property test of remap plans",
    ),
    (
        "NEW-17",
        "is about values, not about runtimes: a property test of every decoder",
    ),
    (
        "NEW-18",
        "is about values, not about runtimes: the golden bytes of the serialized forms",
    ),
];

/// Every id of the list, in order.
pub fn all() -> impl Iterator<Item = String> {
    COUNTS
        .iter()
        .flat_map(|(group, count)| (1..=*count).map(move |number| format!("{group}-{number:02}")))
}
