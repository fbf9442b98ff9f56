use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::status::{Code, Status};

#[test]
fn deletion_happens_once_and_all_callers_agree() {
    let life = Arc::new(Lifecycle::new(7));
    let (asked, start) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(16)));
    let (promise, runtime) = Completion::pair();
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let (life, asked, start) = (Arc::clone(&life), Arc::clone(&asked), Arc::clone(&start));
            let runtime = runtime.clone();
            thread::spawn(move || {
                start.wait();
                life.delete(|resources| {
                    assert_eq!(resources, 7);
                    asked.fetch_add(1, Ordering::SeqCst);
                    runtime
                })
            })
        })
        .collect();
    let completions: Vec<_> = callers.into_iter().map(|c| c.join().unwrap()).collect();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(!life.is_live());
    assert!(completions.iter().all(|c| c.peek().is_none()));
    promise.set(Err(Status::internal("stuck")));
    for completion in completions {
        assert_eq!(completion.wait(), Err(Status::internal("stuck")));
    }
}

#[test]
fn a_donated_value_is_gone_and_its_deletion_succeeds() {
    let life = Lifecycle::new("buffer");
    assert_eq!(life.donate(), Some("buffer"));
    assert_eq!(life.donate(), None);
    assert_eq!(life.get(), None);
    assert!(!life.is_live());
    let deletion = life.delete(|_| Completion::ready(Err(Status::internal("not asked"))));
    assert_eq!(deletion.wait(), Ok(()));
}

#[test]
fn a_deleted_value_cannot_be_donated() {
    let life = Lifecycle::new("buffer");
    assert_eq!(life.delete(|_| Completion::done()).wait(), Ok(()));
    assert_eq!(life.donate(), None);
}

#[test]
fn the_value_is_dead_while_the_runtime_is_being_asked() {
    let life = Lifecycle::new(());
    let deletion = life.delete(|()| {
        assert!(!life.is_live());
        let again = life.delete(|()| Completion::ready(Err(Status::internal("asked twice"))));
        assert_eq!(again.peek(), None);
        again.detach();
        Completion::done()
    });
    assert_eq!(deletion.wait(), Ok(()));
}

#[test]
fn a_panicking_runtime_leaves_an_error_and_no_hang() {
    let life = Lifecycle::new(());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        life.delete(|()| panic!("the runtime")).detach();
    }));
    assert!(panicked.is_err());
    assert!(!life.is_live());
    let deletion = life.delete(|()| Completion::done());
    assert_eq!(deletion.wait().unwrap_err().code(), Code::Internal);
}
