use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::status::Code;

#[test]
fn all_clones_see_one_result() {
    let (promise, completion) = Completion::pair();
    let other = completion.clone();
    assert!(!completion.is_ready());
    assert_eq!(completion.peek(), None);
    assert_eq!(completion.wait_timeout(Duration::ZERO), None);
    promise.set(Ok(3));
    assert_eq!(completion.wait(), Ok(3));
    assert_eq!(other.peek(), Some(Ok(3)));
}

#[test]
fn a_dropped_promise_is_an_error_and_no_hang() {
    let (promise, completion) = Completion::<()>::pair();
    drop(promise);
    let error = completion.wait().unwrap_err();
    assert_eq!(error.code(), Code::Internal);
    assert_eq!(error.message(), "Promise destroyed without being set");
}

#[test]
fn dropping_the_completion_does_not_lose_the_callbacks() {
    let (promise, completion) = Completion::pair();
    let (sender, receiver) = mpsc::channel();
    completion.on_ready(move |result| sender.send(result.clone()).unwrap());
    completion.detach();
    promise.set(Ok("ran"));
    assert_eq!(receiver.recv().unwrap(), Ok("ran"));
}

#[test]
fn callbacks_may_register_callbacks() {
    let (promise, completion) = Completion::pair();
    let runs = Arc::new(AtomicUsize::new(0));
    let (inner, counter) = (completion.clone(), Arc::clone(&runs));
    completion.on_ready(move |_: &Result<()>| {
        let counter = Arc::clone(&counter);
        inner.on_ready(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
        });
    });
    promise.set(Ok(()));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[test]
fn waits_across_threads() {
    let (promise, completion) = Completion::pair();
    let waiters: Vec<_> = (0..8)
        .map(|_| {
            let completion = completion.clone();
            thread::spawn(move || completion.wait())
        })
        .collect();
    promise.set(Ok(7));
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), Ok(7));
    }
}

#[test]
fn is_a_future() {
    struct Unpark(thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let (promise, mut completion) = Completion::pair();
    let setter = thread::spawn(move || promise.set(Ok(5)));
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut cx = Context::from_waker(&waker);
    let result = loop {
        match Pin::new(&mut completion).poll(&mut cx) {
            Poll::Ready(result) => break result,
            Poll::Pending => thread::park(),
        }
    };
    setter.join().unwrap();
    assert_eq!(result, Ok(5));
}

#[test]
fn join_waits_for_all_and_keeps_the_first_error() {
    assert_eq!(join_all([]).peek(), Some(Ok(())));
    let (one, first) = Completion::pair();
    let (two, second) = Completion::pair();
    let joined = join_all([first, Completion::done(), second]);
    two.set(Err(Status::internal("second")));
    assert_eq!(joined.peek(), None);
    one.set(Err(Status::unknown("first")));
    assert_eq!(joined.wait(), Err(Status::internal("second")));
}

#[test]
fn then_maps_results_and_errors() {
    let (promise, completion) = Completion::pair();
    let mapped = completion.then(|result| result.clone().map(|n: i32| n + 1));
    promise.set(Ok(1));
    assert_eq!(mapped.wait(), Ok(2));
    let failed = Completion::<i32>::ready(Err(Status::internal("no")));
    assert_eq!(
        failed.then(|r| r.clone().map(|n| n + 1)).wait(),
        Err(Status::internal("no"))
    );
}
