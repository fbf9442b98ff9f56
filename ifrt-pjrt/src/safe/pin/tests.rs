use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use super::*;

#[test]
fn a_deletion_waits_for_nobody_and_the_last_one_frees() {
    let state = PinState::default();
    state.pin().unwrap();
    state.pin().unwrap();
    assert_eq!(state.kill(), Leave::Nothing);
    assert!(state.is_dead());
    assert_eq!(state.pin(), Err(Refused::Dead));
    assert_eq!(state.pin_to_look(), Err(Refused::Dead));
    assert_eq!(state.pin_exclusively(), Err(Refused::Dead));
    assert_eq!(state.unpin(), Leave::Nothing);
    assert_eq!(state.unpin(), Leave::Free);
}

#[test]
fn a_deletion_without_users_frees_at_once_and_only_once() {
    let state = PinState::default();
    assert_eq!(state.kill(), Leave::Free);
    assert_eq!(state.kill(), Leave::Nothing);
    assert_eq!(state.kill(), Leave::Nothing);
}

#[test]
fn exclusive_pins_exclude_all_but_questions() {
    let state = PinState::default();
    state.pin().unwrap();
    assert_eq!(state.pin_exclusively(), Err(Refused::Busy));
    assert_eq!(state.unpin(), Leave::Nothing);
    state.pin_exclusively().unwrap();
    assert_eq!(state.pin_exclusively(), Err(Refused::Busy));
    assert_eq!(state.pin(), Err(Refused::Busy));
    state.pin_to_look().unwrap();
    assert_eq!(state.unpin(), Leave::Nothing);
    assert_eq!(state.unpin_exclusively(false), Leave::Nothing);
    state.pin().unwrap();
    assert_eq!(state.unpin(), Leave::Nothing);
}

#[test]
fn a_donation_is_the_end_of_a_buffer() {
    let state = PinState::default();
    state.pin_exclusively().unwrap();
    assert!(!state.is_dead());
    assert_eq!(state.unpin_exclusively(true), Leave::Free);
    assert!(state.is_dead());
    assert_eq!(state.kill(), Leave::Nothing);
}

#[test]
fn a_question_that_outlives_the_donation_frees() {
    let state = PinState::default();
    state.pin_exclusively().unwrap();
    state.pin_to_look().unwrap();
    assert_eq!(state.unpin_exclusively(true), Leave::Nothing);
    assert_eq!(state.unpin(), Leave::Free);
}

#[test]
fn a_deletion_during_a_donating_call_frees_after_it() {
    for donated in [false, true] {
        let state = PinState::default();
        state.pin_exclusively().unwrap();
        assert_eq!(state.kill(), Leave::Nothing);
        assert_eq!(state.unpin_exclusively(donated), Leave::Free);
    }
}

#[test]
fn waiting_ends_when_the_users_leave() {
    let state = Arc::new(PinState::default());
    state.wait_while_busy();
    state.pin().unwrap();
    let (sender, receiver) = mpsc::channel();
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let (state, sender) = (Arc::clone(&state), sender.clone());
            thread::spawn(move || {
                loop {
                    match state.pin_exclusively() {
                        Ok(()) => break,
                        Err(refused) => {
                            assert_eq!(refused, Refused::Busy);
                            sender.send(()).unwrap();
                            state.wait_while_busy();
                        }
                    }
                }
                assert_eq!(state.unpin_exclusively(false), Leave::Nothing);
            })
        })
        .collect();
    for _ in 0..4 {
        receiver.recv().unwrap();
    }
    assert_eq!(state.unpin(), Leave::Nothing);
    for waiter in waiters {
        waiter.join().unwrap();
    }
}

/// Many threads use, ask about, donate and delete one buffer at once: it is freed exactly once, and
/// never while a pin is held.
#[test]
fn freed_exactly_once_under_contention() {
    const THREADS: usize = 8;
    for round in 0..200 {
        let state = Arc::new(PinState::default());
        let (users, freed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let start = Arc::new(Barrier::new(THREADS));
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let state = Arc::clone(&state);
                let (users, freed) = (Arc::clone(&users), Arc::clone(&freed));
                let start = Arc::clone(&start);
                thread::spawn(move || {
                    let free = |leave: Leave| {
                        if leave == Leave::Free {
                            assert_eq!(users.load(Ordering::SeqCst), 0);
                            freed.fetch_add(1, Ordering::SeqCst);
                        }
                    };
                    start.wait();
                    for step in 0..50 {
                        let exclusive = (number + step + round) % 3 == 0;
                        let pinned = if exclusive {
                            state.pin_exclusively()
                        } else {
                            state.pin()
                        };
                        match pinned {
                            Ok(()) => {
                                users.fetch_add(1, Ordering::SeqCst);
                                assert_eq!(freed.load(Ordering::SeqCst), 0);
                                users.fetch_sub(1, Ordering::SeqCst);
                                free(if exclusive {
                                    state.unpin_exclusively(step > 40)
                                } else {
                                    state.unpin()
                                });
                            }
                            Err(Refused::Busy) => state.wait_while_busy(),
                            Err(Refused::Dead) => break,
                        }
                        if number == 0 && step == 30 {
                            free(state.kill());
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(state.is_dead());
        assert_eq!(freed.load(Ordering::SeqCst), 1, "round {round}");
    }
}
