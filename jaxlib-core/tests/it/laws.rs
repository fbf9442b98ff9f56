//! The laws of deletion, each as a property.
//!
//! The numbers are those by which the laws are known in the design; each names the tests that would
//! fail if it did not hold. A model test compares every array with the model after every command, so
//! it stands for many laws at once. `model::` and `laws::` are property tests, over the fake with
//! every fault and its witness; those marked P also run over the CPU plugin.
//! The model tests run over a server over the fake, too (`…_on_a_server`).
//! `PROPTEST_CASES` sets the number of cases; `cargo xtask test --all` takes 10,000.
//!
//! | law | what it says | tests |
//! |---|---|---|
//! | 1 | delete is total | `laws::death::deletion_under_every_fault`, `model::` P |
//! | 2 | it is silent | the same |
//! | 3 | it does not wait | the same (gates open only afterwards); `deletion::` |
//! | 4 | n deletions are one | the same; `check_handles` P |
//! | 5 | it is immediate, for ever, in every thread | `model::threads` P |
//! | 6 | is_deleted asks nobody about what is known dead | `deletion::after_deletion_nobody_asks_the_runtime`, `laws::death` |
//! | 7 | what was donated is not deleted | `laws::death`, `check_handles` P |
//! | 8 | pending, failed and empty arrays die like others | `laws::death` |
//! | 9 | so do those whose client is gone or lost | `laws::death::the_client_goes_away` |
//! | 10 | nobody needs to wait for memory to come back | `laws::death`, `model::` P |
//! | 11 | bad arrays do not harm good ones | `laws::death`, `deletion::one_bad_array_…` |
//! | 12 | a failure is logged once | `laws::death` |
//! | 13 | aliases die together, nobody else does | `model::` P |
//! | 14 | a shard takes its array along, not its siblings | `model::` P |
//! | 15 | an array takes its shards along | `model::` P |
//! | 16 | copies are independent | `model::` P |
//! | 17 | metadata survives | `model::` P, `laws::death` |
//! | 18 | everything else says that the array is dead | `model::` P, `laws::death` |
//! | 19 | a call is checked before anything happens | `laws::calls::a_refused_call_changes_nothing` P |
//! | 20 | a racing call is whole or refused | `model::threads` P |
//! | 21 | what was called before is exact | `model::threads` P, `model::` P |
//! | 22 | what was being read before is exact | `model::` P (`StartRead`) |
//! | 23 | what the host holds does not change | `laws::calls::what_the_host_holds_stays` P |
//! | 24 | delete does not wait for it | the same |
//! | 25 | donated means dead or unchanged | `model::` P, `laws::calls::only_what_is_donated_is_consumed` P |
//! | 26 | a failed call gives donated arrays back | `laws::calls::a_refused_call_changes_nothing` P |
//! | 27 | a buffer has one place in a call that consumes it | `model::` P, `laws::calls` P |
//! | 28 | donation does not change what the host holds | `laws::calls::what_the_host_holds_stays` P |
//! | 29 | deletion and donation have one winner | `model::threads`, `deletion::donating_against_deleting_has_one_winner` |
//! | 30 | what is not donated is not consumed | `laws::calls::only_what_is_donated_is_consumed` P |
//! | 31 | live_arrays lists the living | `model::` P, `laws::accounting::the_list_of_the_living` |
//! | 32 | memory goes back to zero | `model::` P |
//! | 33 | dropping is not deleting | `laws::accounting::dropping_is_not_deleting` |
//! | 34 | deleting many is deleting each | `laws::accounting::many_at_once` |
//! | 35 | a dead array can be printed | `model::` P, `laws::death` |
//! | 36 | a dead array cannot be written | `arrays::dead_arrays_are_not_written` of `jax-api` |
//! | 37 | a client goes away in time | `laws::death::the_client_goes_away`, `deletion::a_client_…` |
//! | 38 | the runtime may call back | `laws::accounting::the_runtime_calls_back` |
//!
//! Where a law is about the runtime being asked from inside a tokio runtime, see
//! `executors::deleting_inside_of_executors` of `jax-api`.
//!
//! `cargo xtask mutants --list` lists bugs in the cell and its neighbors and the test that finds each;
//! `cargo xtask mutants` plants them in a copy of the tree and shows that it does.

mod accounting;
mod calls;
mod death;
