//! Every interleaving of a few threads over one cell.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p jaxlib-core --lib --release models`

use loom::sync::atomic::{AtomicUsize as Counter, Ordering::SeqCst};
use loom::thread;

use super::*;

/// Counts how often it was told, and checks that nobody was using the cell then.
struct Waiter {
    cell: Arc<Cell>,
    told: Counter,
}

impl Settled for Waiter {
    fn settled(&self) {
        assert!(self.cell.condemn(), "told while the cell is in use");
        self.told.fetch_add(1, SeqCst);
    }
}

/// Deletes like a buffer set with one cell: tells the runtime now, or has it told later.
struct Deletion {
    waiter: Arc<Waiter>,
    is_later: bool,
}

fn delete(cell: &Arc<Cell>) -> Deletion {
    let waiter = Arc::new(Waiter {
        cell: Arc::clone(cell),
        told: Counter::new(0),
    });
    let dynamic: Arc<dyn Settled> = Arc::clone(&waiter) as _;
    let is_later = !cell.condemn() && cell.condemn_later(&dynamic);
    assert!(cell.is_condemned(), "dead as soon as delete returns");
    Deletion { waiter, is_later }
}

fn check_told(deletion: &Deletion) {
    let told = deletion.waiter.told.load(SeqCst);
    assert_eq!(told, usize::from(deletion.is_later));
}

#[test]
fn pin_against_delete() {
    loom::model(|| {
        let cell = Arc::new(Cell::new());
        let user = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                if cell.pin().is_ok() {
                    // Whatever happens now, the runtime has not been told.
                    cell.unpin();
                }
            })
        };
        let deletion = delete(&cell);
        user.join().unwrap();
        check_told(&deletion);
        assert!(cell.claim());
    });
}

#[test]
fn two_deletions_against_a_pin() {
    loom::model(|| {
        let cell = Arc::new(Cell::new());
        cell.pin().unwrap();
        let other = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || delete(&cell))
        };
        let user = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || cell.unpin())
        };
        let deletion = delete(&cell);
        let other = other.join().unwrap();
        user.join().unwrap();
        check_told(&deletion);
        check_told(&other);
        assert!(cell.claim() && !cell.claim(), "the runtime is told once");
    });
}

#[test]
fn donate_against_delete() {
    for consumed in [true, false] {
        loom::model(move || {
            let cell = Arc::new(Cell::new());
            let donor = {
                let cell = Arc::clone(&cell);
                thread::spawn(move || match cell.begin_donation() {
                    Begin::Begun => {
                        cell.end_donation(consumed);
                        true
                    }
                    Begin::Busy => panic!("nobody pins"),
                    Begin::Dead(_) => false,
                })
            };
            let deletion = delete(&cell);
            let was_donated = donor.join().unwrap() && consumed;
            check_told(&deletion);
            assert_ne!(cell.claim(), was_donated, "deleted or donated, never both");
        });
    }
}

#[test]
fn donate_against_pin_against_delete() {
    loom::model(|| {
        let cell = Arc::new(Cell::new());
        let donor = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                let begun = cell.begin_donation() == Begin::Begun;
                if begun {
                    cell.end_donation(true);
                }
                begun
            })
        };
        let user = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                if cell.pin().is_ok() {
                    cell.unpin();
                }
            })
        };
        let deletion = delete(&cell);
        let was_donated = donor.join().unwrap();
        user.join().unwrap();
        check_told(&deletion);
        assert_ne!(cell.claim(), was_donated);
    });
}

#[test]
fn lost_against_delete() {
    loom::model(|| {
        let cell = Arc::new(Cell::new());
        let asker = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || cell.lost())
        };
        let deletion = delete(&cell);
        asker.join().unwrap();
        check_told(&deletion);
        let claimed = cell.claim();
        assert_eq!(claimed, cell.state() == State::Deleted);
    });
}
