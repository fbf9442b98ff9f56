use std::sync::atomic::AtomicUsize as Counter;

use super::*;

#[derive(Default)]
struct Waiter(Counter);

impl Settled for Waiter {
    fn settled(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn waiter() -> (Arc<Waiter>, Arc<dyn Settled>) {
    let waiter = Arc::new(Waiter::default());
    (Arc::clone(&waiter), waiter)
}

impl Waiter {
    fn told(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn deletion_of_a_quiet_cell_is_immediate() {
    let cell = Cell::new();
    assert!(cell.condemn());
    assert_eq!(cell.state(), State::Deleted);
    assert!(cell.condemn(), "again is fine");
    assert_eq!(cell.pin(), Err(DeadReason::Deleted));
    assert_eq!(cell.begin_donation(), Begin::Dead(DeadReason::Deleted));
}

#[test]
fn deletion_of_a_pinned_cell_is_told_at_the_last_unpin() {
    let cell = Cell::new();
    let (waiter, dynamic) = waiter();
    cell.pin().unwrap();
    cell.pin().unwrap();
    assert!(!cell.condemn());
    assert!(cell.condemn_later(&dynamic));
    assert_eq!(cell.dead(), Some(DeadReason::Deleted), "dead at once");
    assert!(cell.pin().is_err());
    cell.unpin();
    assert_eq!(waiter.told(), 0);
    cell.unpin();
    assert_eq!(waiter.told(), 1);
    assert!(cell.condemn(), "quiet now");
}

#[test]
fn one_tells_the_runtime() {
    let cell = Cell::new();
    assert!(!cell.claim(), "not while it lives");
    cell.condemn();
    assert!(cell.claim());
    assert!(!cell.claim());
    assert_eq!(cell.state(), State::Deleted);
    assert!(cell.condemn(), "quiet");
}

#[test]
fn whoever_comes_too_late_is_not_told() {
    let cell = Cell::new();
    let (waiter, dynamic) = waiter();
    cell.pin().unwrap();
    assert!(!cell.condemn());
    cell.unpin();
    assert!(!cell.condemn_later(&dynamic));
    assert_eq!(cell.state(), State::Deleted);
    assert_eq!(waiter.told(), 0);
}

#[test]
fn several_deletions_of_one_busy_cell_are_all_told() {
    let cell = Cell::new();
    let (first, first_dyn) = waiter();
    let (second, second_dyn) = waiter();
    cell.pin().unwrap();
    assert!(cell.condemn_later(&first_dyn));
    assert!(cell.condemn_later(&second_dyn));
    cell.unpin();
    assert_eq!((first.told(), second.told()), (1, 1));
}

#[test]
fn donation_excludes_everybody() {
    let cell = Cell::new();
    assert_eq!(cell.begin_donation(), Begin::Begun);
    assert_eq!(cell.pin(), Err(DeadReason::Donated));
    assert_eq!(cell.begin_donation(), Begin::Dead(DeadReason::Donated));
    assert!(!cell.is_condemned(), "it may still fail");
    cell.end_donation(false);
    assert_eq!(cell.state(), State::Live);
    cell.pin().unwrap();
    assert_eq!(cell.begin_donation(), Begin::Busy);
    cell.unpin();
    assert_eq!(cell.begin_donation(), Begin::Begun);
    cell.end_donation(true);
    assert_eq!(cell.state(), State::Donated);
    assert!(cell.condemn(), "deleting it is a no-op");
    assert_eq!(cell.state(), State::Donated);
}

#[test]
fn deletion_during_donation_waits_for_its_outcome() {
    for (consumed, state) in [(true, State::Donated), (false, State::Deleted)] {
        let cell = Cell::new();
        let (waiter, dynamic) = waiter();
        assert_eq!(cell.begin_donation(), Begin::Begun);
        assert!(!cell.condemn());
        assert!(cell.condemn_later(&dynamic));
        assert!(cell.is_condemned(), "dead whatever the outcome");
        assert_eq!(waiter.told(), 0);
        cell.end_donation(consumed);
        assert_eq!(waiter.told(), 1);
        assert_eq!(cell.state(), state);
    }
}

#[test]
fn what_the_runtime_took_on_its_own_is_donated() {
    let cell = Cell::new();
    cell.pin().unwrap();
    cell.lost();
    assert_eq!(cell.dead(), Some(DeadReason::Donated));
    cell.unpin();
    assert!(cell.condemn());
    let deleted = Cell::new();
    deleted.condemn();
    deleted.lost();
    assert_eq!(deleted.state(), State::Deleted);
}

#[test]
fn every_deletion_in_a_storm_is_told_exactly_once_and_after_the_pins() {
    use std::sync::Barrier;

    for _ in 0..500 {
        let cell = Cell::new();
        let pins = Counter::new(0);
        let barrier = Barrier::new(4);
        let told: usize = std::thread::scope(|scope| {
            let users: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        for _ in 0..20 {
                            if cell.pin().is_ok() {
                                pins.fetch_add(1, Ordering::SeqCst);
                                pins.fetch_sub(1, Ordering::SeqCst);
                                cell.unpin();
                            }
                        }
                    })
                })
                .collect();
            let deleters: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let (waiter, dynamic) = waiter();
                        barrier.wait();
                        let later = !cell.condemn() && cell.condemn_later(&dynamic);
                        (waiter, later)
                    })
                })
                .collect();
            for user in users {
                user.join().unwrap();
            }
            deleters
                .into_iter()
                .map(|deleter| {
                    let (waiter, later) = deleter.join().unwrap();
                    assert_eq!(waiter.told(), usize::from(later));
                    usize::from(later)
                })
                .sum()
        });
        assert!(told <= 2);
        assert_eq!(cell.state(), State::Deleted);
        assert_eq!(pins.load(Ordering::SeqCst), 0);
    }
}
