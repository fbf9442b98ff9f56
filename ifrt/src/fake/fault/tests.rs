use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::plan::FaultPlan;
use super::*;
use crate::Code;

const SOON: Duration = Duration::from_secs(30);

fn boom() -> Status {
    Status::internal("boom")
}

#[test]
fn the_first_rule_that_fits_decides() {
    let plan = FaultPlan::new();
    plan.add(Op::Copy, When::Nth(1), Fault::Fail(boom()));
    plan.add(Op::Copy, When::Once, Fault::Refuse(boom()));
    assert_eq!(
        plan.strike(Op::Delete).unwrap().permit().peek(),
        Some(Ok(()))
    );
    assert_eq!(plan.strike(Op::Copy).unwrap_err(), boom());
    assert_eq!(
        plan.strike(Op::Copy).unwrap().permit().peek(),
        Some(Err(boom()))
    );
    assert_eq!(plan.strike(Op::Copy).unwrap().permit().peek(), Some(Ok(())));
    assert_eq!((plan.calls(Op::Copy), plan.calls(Op::Delete)), (3, 1));
    plan.add(Op::Copy, When::Always, Fault::Refuse(boom()));
    assert_eq!(
        plan.strike_completion(Op::Copy).permit().peek(),
        Some(Err(boom())),
        "calls that return a completion cannot be refused otherwise"
    );
    plan.clear();
    assert!(plan.strike(Op::Copy).is_ok());
}

#[test]
fn slow_results_come_in_order_when_the_gate_opens() {
    let (plan, gate) = (FaultPlan::new(), Gate::new());
    plan.add(Op::Ready, When::Always, Fault::Slow(gate.clone()));
    let order = Arc::new(Mutex::new(Vec::new()));
    for number in 0..3 {
        let order = Arc::clone(&order);
        let permit = plan.strike(Op::Ready).unwrap().permit();
        permit.on_ready(move |_| order.lock().unwrap().push(number));
    }
    assert_eq!(gate.held(), 3);
    assert!(gate.step());
    assert_eq!(*order.lock().unwrap(), [0]);
    gate.open();
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    assert!(gate.is_open() && !gate.step());
    let late = plan.strike(Op::Ready).unwrap().permit();
    assert_eq!(late.peek(), Some(Ok(())), "an open gate holds nothing");
}

#[test]
fn blocked_calls_go_on_when_the_gate_opens() {
    let (plan, gate) = (FaultPlan::new(), Gate::new());
    plan.add(Op::Delete, When::Always, Fault::Block(gate.clone()));
    std::thread::scope(|scope| {
        let _open = gate.open_on_drop();
        let caller = scope.spawn(|| plan.strike(Op::Delete).unwrap().permit().peek());
        gate.wait_until_held(1, SOON).unwrap();
        assert!(!caller.is_finished());
        gate.open();
        assert_eq!(caller.join().unwrap(), Some(Ok(())));
    });
    let late = gate.wait_until_held(1, Duration::from_millis(1));
    assert_eq!(late.unwrap_err().code(), Code::DeadlineExceeded);
}

#[test]
fn a_result_that_comes_after_the_next_one() {
    let plan = FaultPlan::new();
    plan.add(Op::Execute, When::Once, Fault::AfterNext);
    let gate = Gate::new();
    plan.add(Op::Execute, When::Once, Fault::Slow(gate.clone()));
    let first = plan.strike(Op::Execute).unwrap().permit();
    assert_eq!(plan.strike(Op::Copy).unwrap().permit().peek(), Some(Ok(())));
    let second = plan.strike(Op::Execute).unwrap().permit();
    assert!(!first.is_ready() && !second.is_ready());
    gate.open();
    assert!(first.is_ready() && second.is_ready());
}

#[test]
fn promises_that_are_lost_or_never_kept() {
    let plan = FaultPlan::new();
    plan.add(Op::Delete, When::Once, Fault::DropPromise);
    plan.add(Op::Delete, When::Once, Fault::Never);
    let lost = plan.strike(Op::Delete).unwrap().permit().peek();
    assert_eq!(lost.unwrap().unwrap_err().code(), Code::Internal);
    let never = plan.strike(Op::Delete).unwrap().permit();
    assert!(!never.is_ready());
    drop(plan);
    assert!(never.is_ready(), "a promise dies with the plan");
}

#[test]
fn a_planned_panic() {
    let plan = FaultPlan::new();
    plan.add(Op::Compile, When::Always, Fault::Panic);
    let caller = std::panic::catch_unwind(|| plan.strike(Op::Compile).map(drop));
    let text = caller.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("call 0 of compile"), "{text}");
    assert_eq!(plan.calls(Op::Compile), 1, "the plan is not poisoned");
}

#[test]
fn a_seed_strikes_the_same_calls_again() {
    let struck = |seed: u64, percent: u8| -> Vec<bool> {
        let plan = FaultPlan::new();
        plan.scatter(seed, percent, &Op::ALL, &[Fault::Refuse(boom())]);
        (0..200).map(|_| plan.strike(Op::Copy).is_err()).collect()
    };
    let count = |calls: &[bool]| calls.iter().filter(|struck| **struck).count();
    assert_eq!(struck(7, 30), struck(7, 30));
    assert_ne!(struck(7, 30), struck(8, 30));
    assert!((30..=90).contains(&count(&struck(7, 30))));
    assert_eq!(count(&struck(7, 100)), 200);
    assert_eq!(count(&struck(7, 0)), 0);
    let plan = FaultPlan::new();
    plan.scatter(7, 100, &[Op::Copy], &[]);
    assert!(plan.strike(Op::Copy).is_ok(), "no faults to choose from");
}

#[test]
fn a_plan_prints_what_a_failing_test_needs() {
    let plan = FaultPlan::new();
    plan.add(Op::Delete, When::Nth(1), Fault::Fail(boom()));
    plan.scatter(
        42,
        10,
        &[Op::Copy, Op::Ready],
        &[Fault::Never, Fault::AfterNext],
    );
    for _ in 0..2 {
        drop(plan.strike(Op::Delete));
    }
    assert_eq!(
        plan.to_string(),
        "faults:\n  delete, call 1: fail with INTERNAL: boom\n  copy ready, 10% by seed 42: never \
         ready or ready after the next\nstruck last:\n  delete 1: fail with INTERNAL: boom\n"
    );
}
