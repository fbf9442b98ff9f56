//! ARR-50 to ARR-55 and deletion in general, with every fault.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt::{ArrayRef, Client, Code, Completion, Result, Status};

use super::{INPUT, ready_on_deleted, small, values};
use crate::support::*;

fn boom() -> Status {
    Status::internal("boom")
}

/// What becomes of the completion of a call that a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Succeeds,
    FailsWithBoom,
    LosesItsPromise,
    /// Pending until the gate opens.
    WaitsForGate,
    /// Pending until the next call of the operation.
    WaitsForNext,
    Pends,
}

/// The faults with which a call returns, and what they do to its completion.
fn faults_that_return(gate: &Gate) -> Vec<(Fault, Outcome)> {
    vec![
        (Fault::Slow(gate.clone()), Outcome::WaitsForGate),
        (Fault::Fail(boom()), Outcome::FailsWithBoom),
        (Fault::Refuse(boom()), Outcome::FailsWithBoom),
        (Fault::Never, Outcome::Pends),
        (Fault::DropPromise, Outcome::LosesItsPromise),
        (Fault::AfterNext, Outcome::WaitsForNext),
    ]
}

#[track_caller]
fn check(completion: &Completion, outcome: Outcome, what: &str) {
    let expected: Option<Result<()>> = match outcome {
        Outcome::Succeeds => Some(Ok(())),
        Outcome::FailsWithBoom => Some(Err(boom())),
        Outcome::LosesItsPromise => {
            Some(Err(Status::internal("Promise destroyed without being set")))
        }
        Outcome::WaitsForGate | Outcome::WaitsForNext | Outcome::Pends => None,
    };
    assert_eq!(completion.peek(), expected, "{what}");
}

#[test]
fn arr_52_54_55_with_every_fault_of_delete() {
    let gate = Gate::new();
    for (fault, outcome) in faults_that_return(&gate) {
        let client = client();
        client.faults().add(Op::Delete, When::Once, fault);
        let plan = client.faults().to_string();
        let array = small(&client);
        let first = array.delete();
        assert!(array.is_deleted(), "{plan}");
        let second = array.delete();
        check(&first, outcome, &plan);
        check(&second, outcome, &plan);
        assert_eq!(client.live_bytes(), 0, "{plan}");
        assert_eq!(wait(&array.ready()), Err(ready_on_deleted()), "{plan}");
        assert!(read(&array).is_err(), "{plan}");

        let other = small(&client);
        assert_eq!(wait(&other.delete()), Ok(()), "{plan}");
        let settled = match outcome {
            Outcome::WaitsForNext => Outcome::Succeeds,
            same => same,
        };
        check(&first, settled, &plan);
        check(&second, settled, &plan);
        assert!(array.is_deleted(), "{plan}");
        assert_eq!(client.delete_counts().total, 2, "{plan}");
    }
    gate.open();
}

#[test]
fn arr_53_with_every_fault_of_delete() {
    for position in 0..3 {
        let gate = Gate::new();
        for (fault, outcome) in faults_that_return(&gate) {
            let client = client();
            client.faults().add(Op::Delete, When::Nth(position), fault);
            let plan = client.faults().to_string();
            let arrays: Vec<ArrayRef> = (0..3).map(|_| small(&client)).collect();
            let all = client.delete_values(&values(&arrays));
            assert!(arrays.iter().all(|array| array.is_deleted()), "{plan}");
            // The last deletion has no next one, so it stays pending.
            let settled = match outcome {
                Outcome::WaitsForNext if position < 2 => Outcome::Succeeds,
                same => same,
            };
            check(&all, settled, &plan);
            assert_eq!(client.delete_counts().total, 3, "{plan}");
            if outcome == Outcome::WaitsForGate {
                gate.open();
                check(&all, Outcome::Succeeds, &plan);
            }
        }
    }
}

#[test]
fn arr_50_51_with_every_fault_of_ready() {
    let gate = Gate::new();
    for (fault, outcome) in faults_that_return(&gate) {
        let client = client();
        let arrays = [small(&client), small(&client)];
        client.faults().add(Op::Ready, When::Once, fault.clone());
        let plan = client.faults().to_string();
        let one = arrays[0].ready();
        check(&one, outcome, &plan);
        client.faults().add(Op::Ready, When::Once, fault);
        let both = client.ready(&values(&arrays));
        let settled = match outcome {
            Outcome::WaitsForNext => Outcome::Succeeds,
            same => same,
        };
        check(&one, settled, &plan);
        check(&both, settled, &plan);
        assert!(
            !arrays[0].is_deleted(),
            "a fault of ready deletes nothing: {plan}"
        );
        assert_eq!(read(&arrays[0]).unwrap(), INPUT, "{plan}");
        assert_eq!(wait(&arrays[0].delete()), Ok(()), "{plan}");
    }
}

#[test]
fn deletion_of_an_array_that_is_not_ready_or_failed() {
    let gate = Gate::new();
    for (fault, outcome) in faults_that_return(&gate) {
        if matches!(fault, Fault::Refuse(_)) {
            continue; // There is no array then.
        }
        let client = client();
        client.faults().add(Op::MakeArray, When::Once, fault);
        let plan = client.faults().to_string();
        let array = small(&client);
        check(&array.ready(), outcome, &plan);
        assert!(!array.is_deleted(), "{plan}");
        assert_eq!(wait(&array.delete()), Ok(()), "{plan}");
        assert!(array.is_deleted(), "{plan}");
        assert_eq!(client.live_bytes(), 0, "{plan}");
        assert_eq!(wait(&array.ready()), Err(ready_on_deleted()), "{plan}");
    }
}

#[test]
fn a_runtime_that_panics_in_delete() {
    let client = client();
    client.faults().add(Op::Delete, When::Once, Fault::Panic);
    let array = array(&client, &[4], &replicated(&client, &[0, 1]));
    let panicked = catch_unwind(AssertUnwindSafe(|| array.delete().detach()));
    assert!(panicked.is_err());
    assert!(array.is_deleted(), "the deletion was asked for");
    let second = wait(&array.delete()).unwrap_err();
    assert_eq!(
        second.code(),
        Code::Internal,
        "it is told, and does not hang"
    );
    assert_eq!(client.live_bytes(), 0);
    assert!(client.delete_counts().most_of_one_buffer <= 1);
    let other = small(&client);
    assert_eq!(wait(&other.delete()), Ok(()), "the client goes on");
}

#[test]
fn a_runtime_that_blocks_in_delete_holds_only_the_first_caller() {
    let (client, gate) = (client(), Gate::new());
    client
        .faults()
        .add(Op::Delete, When::Once, Fault::Block(gate.clone()));
    let array = small(&client);
    std::thread::scope(|scope| {
        let _open = gate.open_on_drop();
        let blocked = scope.spawn(|| wait(&array.delete()));
        gate.wait_until_held(1, DEADLINE).unwrap();
        assert!(array.is_deleted(), "others see it at once");
        let second = array.delete();
        assert!(!second.is_ready());
        assert_eq!(wait(&array.ready()), Err(ready_on_deleted()));
        assert_eq!(
            wait(&small(&client).delete()),
            Ok(()),
            "other arrays are free"
        );
        gate.open();
        assert_eq!(blocked.join().unwrap(), Ok(()));
        assert_eq!(wait(&second), Ok(()));
    });
    assert_eq!(client.delete_counts().most_of_one_buffer, 1);
}

#[test]
fn shards_that_fail_differently_give_all_callers_one_result() {
    let (client, gate) = (client(), Gate::new());
    let failures = [Status::internal("first"), Status::unavailable("second")];
    client
        .faults()
        .add(Op::Delete, When::Nth(0), Fault::Slow(gate.clone()));
    client
        .faults()
        .add(Op::Delete, When::Nth(1), Fault::Fail(failures[1].clone()));
    client
        .faults()
        .add(Op::Delete, When::Nth(2), Fault::Fail(failures[0].clone()));
    let array = array(&client, &[4], &replicated(&client, &[0, 1, 2]));
    let before = array.delete();
    assert!(!before.is_ready(), "all shards count");
    gate.open();
    let after = array.delete();
    assert_eq!(
        wait(&before),
        Err(failures[1].clone()),
        "the first that arrived"
    );
    assert_eq!(wait(&after), Err(failures[1].clone()));
}

#[test]
fn donated_and_deleted_arrays_accept_any_number_of_deletions_under_faults() {
    let gate = Gate::new();
    for (fault, _) in faults_that_return(&gate) {
        let client = client();
        let module = "fake:identity(f32[2,3] donated) -> (f32[2,3])";
        let executable = wait(&compile(&client, module, None)).unwrap();
        client.faults().add(Op::Delete, When::Always, fault);
        let donated = small(&client);
        let args = [Arc::clone(&donated)];
        let result = executable
            .execute(&args, &Default::default(), None)
            .unwrap();
        assert_eq!(wait(&donated.delete()), Ok(()), "nothing is left to delete");
        assert_eq!(client.delete_counts().total, 0);
        assert_eq!(read(&result.outputs[0]).unwrap(), INPUT);
    }
}
