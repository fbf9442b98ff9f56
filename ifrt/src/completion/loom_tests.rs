//! Every interleaving of the threads that share a completion, as loom explores them.

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::{Completion, Promise, join_all};
use crate::status::{Code, Result, Status};

/// A pair whose promise another thread fulfils.
fn fulfilled_elsewhere(result: Result<i32>) -> (Completion<i32>, thread::JoinHandle<()>) {
    let (promise, completion) = Completion::pair();
    (completion, thread::spawn(move || promise.set(result)))
}

fn counter() -> Arc<AtomicUsize> {
    Arc::new(AtomicUsize::new(0))
}

#[test]
fn a_waiting_thread_sees_the_result() {
    loom::model(|| {
        let (completion, setter) = fulfilled_elsewhere(Ok(7));
        assert_eq!(completion.wait(), Ok(7));
        assert!(completion.is_ready());
        setter.join().unwrap();
    });
}

#[test]
fn two_waiting_threads_see_the_result() {
    loom::model(|| {
        let (completion, setter) = fulfilled_elsewhere(Ok(7));
        let other = completion.clone();
        let waiter = thread::spawn(move || other.wait());
        assert_eq!(completion.wait(), Ok(7));
        assert_eq!(waiter.join().unwrap(), Ok(7));
        setter.join().unwrap();
    });
}

#[test]
fn a_dropped_promise_wakes_as_well() {
    loom::model(|| {
        let (promise, completion) = Completion::<i32>::pair();
        let dropper = thread::spawn(move || drop(promise));
        assert_eq!(completion.wait().unwrap_err().code(), Code::Internal);
        dropper.join().unwrap();
    });
}

#[test]
fn a_callback_runs_exactly_once_whoever_is_first() {
    loom::model(|| {
        let (completion, setter) = fulfilled_elsewhere(Ok(7));
        let runs = counter();
        let counted = Arc::clone(&runs);
        completion.on_ready(move |result| {
            assert_eq!(*result, Ok(7));
            counted.fetch_add(1, Ordering::SeqCst);
        });
        setter.join().unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_callback_may_register_another() {
    loom::model(|| {
        let (completion, setter) = fulfilled_elsewhere(Ok(7));
        let runs = counter();
        let (inner, counted) = (completion.clone(), Arc::clone(&runs));
        completion.on_ready(move |_| {
            inner.on_ready(move |_| {
                counted.fetch_add(1, Ordering::SeqCst);
            });
        });
        setter.join().unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn no_wake_is_lost() {
    loom::model(|| {
        let (completion, setter) = fulfilled_elsewhere(Ok(7));
        assert_eq!(loom::future::block_on(completion), Ok(7));
        setter.join().unwrap();
    });
}

#[test]
fn who_sees_the_result_sees_what_came_before_it() {
    loom::model(|| {
        let (promise, completion) = Completion::pair();
        let work = counter();
        let done = Arc::clone(&work);
        let setter = thread::spawn(move || {
            done.store(1, Ordering::Relaxed);
            promise.set(Ok(()));
        });
        if completion.peek().is_some() {
            assert_eq!(work.load(Ordering::Relaxed), 1);
        }
        setter.join().unwrap();
    });
}

#[test]
fn a_mapped_completion_follows() {
    loom::model(|| {
        let (completion, setter) = fulfilled_elsewhere(Ok(7));
        let mapped = completion.then(|result| result.clone().map(|n| n + 1));
        assert_eq!(mapped.wait(), Ok(8));
        setter.join().unwrap();
    });
}

#[test]
fn a_joined_completion_waits_for_both() {
    loom::model(|| {
        let (one, first) = Completion::pair();
        let (two, second) = Completion::pair();
        let joined = join_all([first.clone(), second.clone()]);
        let fail = |promise: Promise| promise.set(Err(Status::internal("no")));
        let setters = [
            thread::spawn(move || fail(one)),
            thread::spawn(move || two.set(Ok(()))),
        ];
        assert_eq!(joined.wait(), Err(Status::internal("no")));
        assert!(first.is_ready() && second.is_ready());
        for setter in setters {
            setter.join().unwrap();
        }
    });
}
