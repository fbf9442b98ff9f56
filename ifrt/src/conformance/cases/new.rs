//! NEW: what deletion promises when a runtime is slow, fails or never answers.

use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::{Case, case};
use crate::array::{ArrayCopySemantics, ArrayRef};
use crate::completion::Completion;
use crate::conformance::check::{Check, Stop, check, equal, refused};
use crate::conformance::data::{Host, i32s, watched};
use crate::conformance::fixture::{Fixture, PATIENCE};
use crate::conformance::program::ProgramKind;
use crate::dtype::DType;
use crate::executable::ExecuteOptions;
use crate::fake::fault::{Fault, FaultPlan, Gate, Op, When};
use crate::host_buffer::{HostBuffer, HostData};
use crate::status::{Code, Result, Status};
use crate::value::READY_ON_DELETED;

pub(super) const CASES: &[Case] = &[
    case("NEW-01", "slow_deletion_does_not_hold_the_caller", new_01),
    case("NEW-02", "failed_deletion_stays_failed_and_deleted", new_02),
    case("NEW-03", "deletion_that_never_ends_holds_nobody", new_03),
    case("NEW-04", "dropped_completion_deletes_all_the_same", new_04),
    case("NEW-05", "second_deletion_sends_nothing", new_05),
    case("NEW-06", "reads_before_and_after_deletion", new_06),
    case("NEW-07", "deletion_under_a_run", new_07),
    case("NEW-08", "deletion_from_many_threads", new_08),
    case("NEW-09", "deletion_and_donation", new_09),
    case("NEW-10", "lost_promise_is_an_error", new_10),
    case("NEW-11", "text_of_ready_after_deletion", new_11),
    case("NEW-13", "callbacks_may_call_back", new_13),
    case("NEW-14", "host_memory_is_given_back_once", new_14),
];

fn injected() -> Status {
    Status::internal("injected error")
}

/// An array whose next deletion meets this fault.
fn doomed(fx: &Fixture, fault: Fault) -> Check<(ArrayRef, FaultPlan)> {
    let faults = fx.faults()?;
    let array = fx.standard()?;
    fx.ready(&array)?;
    faults.add(Op::Delete, When::Once, fault);
    Ok((array, faults))
}

/// Comes back when the runtime has seen everything that was enqueued before.
fn flush(fx: &Fixture) -> Check {
    fx.read(&fx.standard()?).map(drop)
}

/// Checks that the runtime was told of one deletion since it had been told of `before`.
///
/// A backend may hand deletions to a thread of its own, which nothing that is enqueued later waits for.
fn one_deletion(fx: &Fixture, faults: &FaultPlan, before: u64) -> Check {
    flush(fx)?;
    let start = Instant::now();
    while faults.calls(Op::Delete) == before && start.elapsed() < PATIENCE {
        thread::yield_now();
    }
    flush(fx)?;
    equal(
        faults.calls(Op::Delete) - before,
        1,
        "the deletions that the runtime saw",
    )
}

fn new_01(fx: &Fixture) -> Check {
    let gate = Gate::new();
    let (array, _) = doomed(fx, Fault::Slow(gate.clone()))?;
    let deletion = array.delete();
    equal(
        deletion.peek(),
        None,
        "the result while the runtime is busy",
    )?;
    check(array.is_deleted(), "the array is deleted at return")?;
    gate.open();
    fx.value(&deletion)
}

fn new_02(fx: &Fixture) -> Check {
    let (array, _) = doomed(fx, Fault::Fail(injected()))?;
    equal(fx.result(&array.delete())?, Err(injected()), "the result")?;
    for _ in 0..2 {
        check(array.is_deleted(), "the array stays deleted")?;
        equal(
            fx.result(&array.delete())?,
            Err(injected()),
            "a later result",
        )?;
    }
    Ok(())
}

fn new_03(fx: &Fixture) -> Check {
    let (array, _) = doomed(fx, Fault::Never)?;
    let deletion = array.delete();
    check(array.is_deleted(), "the array is deleted at return")?;
    drop(array);
    flush(fx)?;
    equal(deletion.peek(), None, "the result")
}

fn new_04(fx: &Fixture) -> Check {
    let faults = fx.faults()?;
    let array = fx.standard()?;
    let before = faults.calls(Op::Delete);
    array.delete().detach();
    one_deletion(fx, &faults, before)
}

fn new_05(fx: &Fixture) -> Check {
    let faults = fx.faults()?;
    let array = fx.standard()?;
    let before = faults.calls(Op::Delete);
    for _ in 0..3 {
        fx.value(&array.delete())?;
    }
    one_deletion(fx, &faults, before)
}

fn new_06(fx: &Fixture) -> Check {
    let array = fx.standard()?;
    let earlier = array.copy_to_host(None);
    let deletion = array.delete();
    let later = array.copy_to_host(None);
    let host = Host::iota(DType::F32, &[2, 3])?;
    equal(
        fx.value(&earlier)?.into_bytes()?,
        host.bytes,
        "the earlier read",
    )?;
    check(fx.result(&later)?.is_err(), "the later read fails")?;
    fx.value(&deletion)
}

fn numbers(fx: &Fixture) -> Check<ArrayRef> {
    fx.put(&Host::iota(DType::S32, &[2, 3])?, &fx.single(0)?)
}

fn new_07(fx: &Fixture) -> Check {
    let executable = fx.load(ProgramKind::AddOne, &fx.devices(1)?)?;
    let array = numbers(fx)?;
    let gate = Gate::new();
    if let Ok(faults) = fx.faults() {
        faults.add(Op::Execute, When::Once, Fault::Slow(gate.clone()));
    }
    let args = [Arc::clone(&array)];
    let run = executable.execute(&args, &ExecuteOptions::default(), None)?;
    let deletion = array.delete();
    gate.open();
    equal(
        fx.read(&run.outputs[0])?,
        i32s(&[1, 2, 3, 4, 5, 6]),
        "the output",
    )?;
    fx.value(&deletion)
}

fn new_08(fx: &Fixture) -> Check {
    let array = fx.standard()?;
    let faults = fx.faults().ok();
    let before = faults.as_ref().map(|faults| faults.calls(Op::Delete));
    let start = Arc::new(Barrier::new(16));
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let (array, start) = (Arc::clone(&array), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                let deletion = array.delete();
                (deletion, array.is_deleted())
            })
        })
        .collect();
    let mut results: Vec<Result<()>> = Vec::new();
    for caller in callers {
        let joined = caller.join();
        let (deletion, deleted) = joined.map_err(|_| Stop::failed("a deletion panics"))?;
        check(deleted, "the array is deleted at return")?;
        results.push(fx.result(&deletion)?);
    }
    results.dedup();
    equal(results.len(), 1, "the number of different results")?;
    match (faults, before) {
        (Some(faults), Some(before)) => one_deletion(fx, &faults, before),
        _ => Ok(()),
    }
}

fn new_09(fx: &Fixture) -> Check {
    let executable = fx.load(ProgramKind::Donate, &fx.devices(1)?)?;
    let run = |args: &[ArrayRef]| executable.execute(args, &ExecuteOptions::default(), None);
    let donated = [numbers(fx)?, numbers(fx)?];
    let outputs = run(&donated)?.outputs;
    for array in &donated {
        check(array.is_deleted(), "a donated array counts as deleted")?;
        fx.value(&array.delete())?;
    }
    outputs.iter().try_for_each(|output| fx.ready(output))?;
    let (gone, live) = (numbers(fx)?, numbers(fx)?);
    fx.value(&gone.delete())?;
    let refused = run(&[gone, Arc::clone(&live)]);
    let fails = match refused {
        Err(_) => true,
        Ok(result) => {
            let ready = result
                .outputs
                .iter()
                .map(|output| fx.result(&output.ready()));
            ready.collect::<Check<Vec<_>>>()?.iter().all(Result::is_err)
        }
    };
    check(fails, "donating a deleted array fails")
}

fn new_10(fx: &Fixture) -> Check {
    let (array, _) = doomed(fx, Fault::DropPromise)?;
    let result = fx.result(&array.delete())?;
    refused(
        result,
        Code::Internal,
        "a deletion that the runtime forgets",
    )?;
    Ok(())
}

fn new_11(fx: &Fixture) -> Check {
    let array = fx.standard()?;
    fx.value(&array.delete())?;
    let expected = Err(Status::invalid_argument(READY_ON_DELETED));
    equal(fx.result(&array.ready())?, expected, "the result of ready")
}

fn new_13(fx: &Fixture) -> Check {
    let (first, second) = (fx.standard()?, fx.standard()?);
    let (sender, receiver) = mpsc::channel();
    let (ready, other) = (first.ready(), Arc::clone(&second));
    let again: Completion = ready.clone();
    ready.on_ready(move |_| {
        let deletion = other.delete();
        again.on_ready(move |_| {
            deletion.on_ready(move |result| sender.send(result.clone()).unwrap_or_default());
        });
    });
    let patience = Duration::from_secs(10);
    let result = receiver.recv_timeout(patience);
    let result = result.map_err(|_| Stop::failed("a callback that calls back does not return"))?;
    result?;
    check(second.is_deleted(), "the array is deleted")
}

fn new_14(fx: &Fixture) -> Check {
    let host = Host::iota(DType::F32, &[2, 3])?;
    let buffer =
        |memory| HostBuffer::dense(HostData::Shared(memory), host.dtype, host.shape.clone());
    // Refused at once.
    let (memory, watch) = watched(&host.bytes.slice(..4));
    let made = fx
        .client
        .make_array_from_host_buffer(buffer(memory), fx.single(0)?, None);
    refused(
        made,
        Code::InvalidArgument,
        "making an array of too little memory",
    )?;
    watch.given_back()?;
    // Replaced by donation.
    let (memory, watch) = watched(&host.bytes);
    let array = fx.put_buffer(buffer(memory), &fx.single(0)?)?;
    let to = Some(fx.devices_at(&[1])?);
    let donate = ArrayCopySemantics::DonateInput;
    let arrays = [array];
    let copies = fx.client.copy_arrays(&arrays, to, None, donate)?;
    copies.iter().try_for_each(|copy| fx.ready(copy))?;
    drop((arrays, copies));
    watch.given_back()?;
    // Failed after the call.
    if let Ok(faults) = fx.faults() {
        faults.add(Op::MakeArray, When::Once, Fault::Fail(injected()));
        let (memory, watch) = watched(&host.bytes);
        let array = fx.put_buffer(buffer(memory), &fx.single(0)?)?;
        equal(fx.result(&array.ready())?, Err(injected()), "the result")?;
        drop(array);
        watch.given_back()?;
    }
    Ok(())
}
