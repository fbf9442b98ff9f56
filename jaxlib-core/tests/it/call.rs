//! Compiled calls: arguments, results, donation.

use ifrt::fake::FakeOptions;
use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt::{Code, Status};
use jaxlib_core::{
    Arg, Array, CompileRequest, DeadReason, Kind, LoadedExecutable, Sharding, Target,
};

use crate::support::{World, read};
use crate::witness::Event;

const ADD: &str = "fake:add(f32[4], f32[4]) -> (f32[4])";
const STEP: &str = "fake:add(f32[4] donated, f32[4]) -> (f32[4])";
const ADD_SPLIT: &str = "fake:add(f32[8] tiled[8] donated, f32[8]) -> (f32[8] tiled[8])";

fn call(f: &LoadedExecutable, args: &[Arg<'_>]) -> ifrt::Result<Array> {
    let mut results = f.execute(args)?;
    assert_eq!(results.len(), 1);
    Ok(results.remove(0))
}

fn deleted(array: &Array, reason: DeadReason) -> Option<Kind> {
    let aval = array.aval().clone();
    Some(Kind::ArrayDeleted { aval, reason })
}

#[test]
fn a_call_on_one_device() {
    let world = World::new();
    let f = world.compile(ADD);
    let x = world.put(&[1.0, 2.0, 3.0, 4.0], Target::Default);
    let y = call(&f, &[Arg::Reference(&x), Arg::Reference(&x)]).unwrap();
    assert_eq!(read(&y).unwrap(), [2.0, 4.0, 6.0, 8.0]);
    assert!(!y.is_committed(), "nothing was");
    let committed = world.put(&[1.0; 4], world.device(0));
    let z = call(&f, &[Arg::Reference(&x), Arg::Reference(&committed)]).unwrap();
    assert!(z.is_committed());
    x.delete();
    assert!(!y.is_deleted(), "results are independent");
    assert_eq!(f.name(), "add");
    assert!(format!("{f:?}").contains("add"));
}

#[test]
fn a_call_over_eight_devices() {
    let world = World::new();
    let f = LoadedExecutable::compile(
        &world.client,
        CompileRequest {
            module: ADD_SPLIT.into(),
            devices: Some(world.devices(8)),
            in_shardings: Some(vec![Some(world.split(8).into()), None]),
            out_shardings: Some(vec![Some(world.split(8).into())]),
            ..CompileRequest::default()
        },
    )
    .unwrap();
    let state = world.put(&[1.0; 8], world.split(8));
    // Uncommitted: goes where the program wants it.
    let ones = world.put(&[1.0; 8], Target::Default);
    let y = call(&f, &[Arg::Donate(&state), Arg::Reference(&ones)]).unwrap();
    assert_eq!(read(&y).unwrap(), [2.0; 8]);
    assert_eq!(
        y.sharding(),
        &Sharding::from(world.split(8)),
        "in the words of the user"
    );
    assert!(y.is_committed());
    assert!(state.is_deleted() && !ones.is_deleted());
    let shards = y.addressable_shards().unwrap();
    assert_eq!(shards.len(), 8);
}

#[test]
fn arguments_that_do_not_fit() {
    let world = World::new();
    let f = LoadedExecutable::compile(
        &world.client,
        CompileRequest {
            module: ADD.into(),
            in_avals: Some(vec![
                Some(
                    world.put(&[0.0; 4], Target::Default).aval().clone()
                );
                2
            ]),
            ..CompileRequest::default()
        },
    )
    .unwrap();
    let x = world.put(&[1.0; 4], Target::Default);
    let short = world.put(&[1.0; 3], Target::Default);
    let count = call(&f, &[Arg::Reference(&x)]).unwrap_err();
    assert_eq!(
        count.message(),
        "Computation compiled for 2 inputs but called with 1"
    );
    let types = call(&f, &[Arg::Reference(&x), Arg::Reference(&short)]).unwrap_err();
    assert!(
        types
            .message()
            .ends_with("Argument 1 compiled with float32[4] and called with float32[3]")
    );
    let elsewhere = world.put(&[1.0; 4], world.device(2));
    let error = call(&f, &[Arg::Donate(&x), Arg::Reference(&elsewhere)]).unwrap_err();
    assert_eq!(Kind::of(&error), Some(Kind::IncompatibleDevices));
    assert!(
        error.message().starts_with(
            "Received incompatible devices for jitted computation. Got argument 1 with shape \
             float32[4] and with device ids [2] on platform FAKE"
        ),
        "{error}"
    );
    let stranger = World::new().put(&[1.0; 4], Target::Default);
    let error = call(&f, &[Arg::Reference(&x), Arg::Reference(&stranger)]).unwrap_err();
    assert!(
        error.message().contains("belongs to another client"),
        "{error}"
    );
    assert!(!x.is_deleted());
}

#[test]
fn a_committed_argument_must_be_spread_as_the_program_wants_it() {
    let world = World::new();
    let f = LoadedExecutable::compile(
        &world.client,
        CompileRequest {
            module: ADD_SPLIT.into(),
            devices: Some(world.devices(8)),
            ..CompileRequest::default()
        },
    )
    .unwrap();
    let copies = world.put(&[1.0; 8], world.copies(8));
    let error = call(&f, &[Arg::Reference(&copies), Arg::Reference(&copies)]).unwrap_err();
    assert_eq!(Kind::of(&error), Some(Kind::ArgumentMismatch));
    assert!(
        error.message().contains("Passed sharding: NamedSharding("),
        "{error}"
    );
    assert!(
        error
            .message()
            .contains("Required sharding: GSPMDSharding("),
        "{error}"
    );
}

#[test]
fn an_uncommitted_argument_follows_the_program() {
    let world = World::new();
    let f = LoadedExecutable::compile(
        &world.client,
        CompileRequest {
            module: STEP.into(),
            devices: Some(std::iter::once(world.devices(3).devices()[2].clone()).collect()),
            ..CompileRequest::default()
        },
    )
    .unwrap();
    let x = world.put(&[1.0; 4], Target::Default);
    let y = call(&f, &[Arg::Donate(&x), Arg::Reference(&x)]).unwrap_err();
    assert!(
        y.message().contains("`f(donate(a), a)`"),
        "found before anything moves"
    );
    let z = world.put(&[1.0; 4], Target::Default);
    let y = call(&f, &[Arg::Donate(&x), Arg::Reference(&z)]).unwrap();
    assert_eq!(y.sharding().devices().ids().next().map(|id| id.0), Some(2));
    assert_eq!(read(&y).unwrap(), [2.0; 4]);
    assert!(!x.is_deleted(), "its copy was consumed");
}

#[test]
fn donation() {
    let world = World::new();
    let f = world.compile(STEP);
    assert_eq!(
        f.donatable_argnums()
            .unwrap()
            .iter()
            .copied()
            .collect::<Vec<_>>(),
        [0]
    );
    let x = world.put(&[1.0; 4], Target::Default);
    let y = world.put(&[2.0; 4], Target::Default);
    // By reference nothing is consumed, whatever the module says.
    drop(call(&f, &[Arg::Reference(&x), Arg::Reference(&y)]).unwrap());
    assert!(!x.is_deleted());
    let z = call(&f, &[Arg::Donate(&x), Arg::Donate(&y)]).unwrap();
    assert_eq!(read(&z).unwrap(), [3.0; 4]);
    assert!(x.is_deleted());
    assert!(!y.is_deleted(), "the program cannot use it");
    assert_eq!(read(&y).unwrap(), [2.0; 4]);
    assert_eq!(x.to_string(), "Array(float32[4], donated)");
    let error = read(&x).unwrap_err();
    assert_eq!(Kind::of(&error), deleted(&x, DeadReason::Donated));
    x.delete();
    x.delete();
    world.drain();
    let deletions = |event: &Event| matches!(event, Event::Delete(_) | Event::DeleteTogether(_));
    assert!(
        !world.witness.events().iter().any(deletions),
        "donated is not deleted"
    );
}

#[test]
fn the_same_buffer_twice() {
    let world = World::new();
    let split = "fake:add(f32[8] tiled[8] donated, f32[8] tiled[8]) -> (f32[8] tiled[8])";
    for (module, target) in [(STEP, Target::Default), (split, world.split(8).into())] {
        let len = if module == STEP { 4 } else { 8 };
        let x = world.put(&vec![1.0; len], target);
        let f = world.compile_for(module, &x);
        let alias =
            jaxlib_core::device_put_array(&x, x.sharding().clone(), jaxlib_core::Source::MayAlias)
                .unwrap();
        for (args, words) in [
            (
                [Arg::Donate(&x), Arg::Reference(&alias)],
                "`f(donate(a), a)`",
            ),
            (
                [Arg::Reference(&x), Arg::Donate(&alias)],
                "`f(a, donate(a))`",
            ),
            (
                [Arg::Donate(&x), Arg::Donate(&x)],
                "`f(donate(a), donate(a))`",
            ),
        ] {
            let error = call(&f, &args).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains(words), "{error}");
            assert!(!x.is_deleted() && !alias.is_deleted());
        }
        assert_eq!(read(&x).unwrap(), vec![1.0; len]);
    }
}

#[test]
fn a_dead_argument_has_no_side_effects() {
    let world = World::new();
    let f = world.compile(STEP);
    let dead = world.put(&[1.0; 4], Target::Default);
    dead.delete();
    world.drain();
    let elsewhere = world.put(&[1.0; 4], world.device(1));
    let state = world.put(&[1.0; 4], Target::Default);
    let calls = |world: &World| {
        let faults = world.fake.faults();
        Op::ALL.map(|op| faults.calls(op))
    };
    let before = calls(&world);
    for args in [
        [Arg::Donate(&state), Arg::Reference(&dead)],
        [Arg::Reference(&dead), Arg::Donate(&state)],
        [Arg::Donate(&dead), Arg::Reference(&elsewhere)],
    ] {
        let error = call(&f, &args).unwrap_err();
        assert_eq!(
            error.message(),
            "Array has been deleted with shape=float32[4]."
        );
        assert!(!state.is_deleted());
    }
    assert_eq!(calls(&world), before, "the runtime heard nothing");
}

#[test]
fn a_refused_call_leaves_its_arguments_alive() {
    let world = World::new();
    let f = world.compile(STEP);
    let x = world.put(&[1.0; 4], Target::Default);
    let y = world.put(&[2.0; 4], Target::Default);
    let refusal = Status::unavailable("the device fell off");
    let fault = Fault::Refuse(refusal.clone());
    world.fake.faults().add(Op::Execute, When::Always, fault);
    let args = [Arg::Donate(&x), Arg::Reference(&y)];
    assert_eq!(call(&f, &args).unwrap_err(), refusal);
    assert!(!x.is_deleted());
    world.fake.faults().clear();
    assert_eq!(read(&x).unwrap(), [1.0; 4]);
    assert_eq!(read(&call(&f, &args).unwrap()).unwrap(), [3.0; 4]);
    assert!(x.is_deleted());
}

#[test]
fn a_failed_run_fails_its_results() {
    let world = World::new();
    let f = world.compile(STEP);
    let x = world.put(&[1.0; 4], Target::Default);
    let y = world.put(&[2.0; 4], Target::Default);
    let failure = Status::internal("nan");
    let fault = Fault::Fail(failure.clone());
    world.fake.faults().add(Op::Execute, When::Once, fault);
    let z = call(&f, &[Arg::Donate(&x), Arg::Reference(&y)]).unwrap();
    assert_eq!(z.block_until_ready().unwrap_err(), failure);
    assert!(x.is_deleted(), "the run was accepted");
    z.delete();
    assert!(z.is_deleted());
}

#[test]
fn inputs_may_be_deleted_while_their_consumer_runs() {
    let world = World::new();
    let f = world.compile(ADD);
    let gate = Gate::new();
    let fault = Fault::Slow(gate.clone());
    world.fake.faults().add(Op::Execute, When::Once, fault);
    let x = world.put(&[1.0; 4], Target::Default);
    let pending = call(&f, &[Arg::Reference(&x), Arg::Reference(&x)]).unwrap();
    let second = call(&f, &[Arg::Reference(&pending), Arg::Reference(&x)]).unwrap();
    let reading = x.read().unwrap();
    x.delete();
    pending.delete();
    assert!(x.is_deleted() && pending.is_deleted());
    world.drain();
    gate.open();
    assert_eq!(read(&second).unwrap(), [3.0; 4]);
    let copied = reading.wait().unwrap();
    assert_eq!(
        crate::support::from_bytes(copied.bytes().unwrap()),
        [1.0; 4]
    );
}

#[test]
fn memory_that_is_on_its_way_back_is_waited_for() {
    let world = World::with(FakeOptions {
        num_devices: 1,
        memory_bytes: 1000,
        ..FakeOptions::default()
    });
    let f = world.compile("fake:zeros() -> (f32[200])");
    for _ in 0..20 {
        // Each takes 800 of 1000 bytes.
        let x = world.put(&[1.0; 200], Target::Default);
        x.delete();
        let y = call(&f, &[]).unwrap();
        y.delete();
    }
    let live = world.put(&[1.0; 200], Target::Default);
    let error = call(&f, &[]).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "nothing to wait for");
    assert_eq!(read(&live).unwrap(), [1.0; 200]);
}

#[test]
fn modules_that_cannot_be() {
    let world = World::new();
    let compile = |request: CompileRequest| {
        LoadedExecutable::compile(&world.client, request)
            .map(drop)
            .unwrap_err()
    };
    let module = |text: &'static str| CompileRequest {
        module: text.into(),
        ..CompileRequest::default()
    };
    assert_eq!(compile(module("nonsense")).code(), Code::InvalidArgument);
    assert_eq!(
        compile(CompileRequest::default()).code(),
        Code::InvalidArgument
    );
    let error = compile(CompileRequest {
        donate_argnums: vec![0],
        ..module(ADD)
    });
    assert!(
        error.message().contains("must say itself what it donates"),
        "{error}"
    );
    let error = compile(CompileRequest {
        donate_argnums: vec![1],
        ..module("module { func.func public @main(%a: tensor<f32>) -> (tensor<f32>) {} }")
    });
    assert!(
        error
            .message()
            .contains("names argument 1, but the program has 1"),
        "{error}"
    );
    let error = compile(module(
        "module attributes {mhlo.num_partitions = 9 : i32} {}",
    ));
    assert!(
        error
            .message()
            .contains("for 9 devices, but this process can reach 8"),
        "{error}"
    );
    let error = compile(CompileRequest {
        in_shardings: Some(vec![None]),
        ..module(ADD)
    });
    assert!(
        error
            .message()
            .contains("for 1 arguments, but the program has 2"),
        "{error}"
    );
    let error = compile(CompileRequest {
        out_shardings: Some(vec![None, None, None]),
        ..module("fake:identity(f32[4], f32[4]) -> (f32[4], f32[4])")
    });
    assert!(
        error
            .message()
            .contains("for 3 results, but the program has 2"),
        "{error}"
    );
    let error = compile(CompileRequest {
        devices: Some(world.devices(8)),
        in_shardings: Some(vec![Some(world.copies(8).into()), None]),
        ..module(ADD_SPLIT)
    });
    assert!(
        error
            .message()
            .starts_with("Unexpected XLA sharding override: in_shardings[0]")
    );
    let error = compile(CompileRequest {
        devices: Some(world.devices(8)),
        out_shardings: Some(vec![Some(world.copies(8).into())]),
        ..module(ADD_SPLIT)
    });
    assert!(
        error
            .message()
            .starts_with("Unexpected XLA sharding override: out_shardings[0]")
    );
    let error = compile(CompileRequest {
        in_avals: Some(vec![]),
        ..module(ADD)
    });
    assert!(
        error
            .message()
            .contains("the program has 2 parameters, but the types of 0")
    );
    let error = compile(CompileRequest {
        devices: Some(std::iter::empty().collect()),
        ..module(ADD)
    });
    assert!(
        error.message().contains("needs at least one device"),
        "{error}"
    );
}

#[test]
fn compile_options_as_jax_sends_them() {
    let world = World::new();
    let serialize = |count: usize| {
        let options = [("xla_flag".to_owned(), true.into())].into();
        let plain = jaxlib_core::compile_options::serialize(&world.devices(count), &[].into());
        let tuned = jaxlib_core::compile_options::serialize(&world.devices(count), &options);
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        (hex(&plain.unwrap()), hex(&tuned.unwrap()))
    };
    let (one, tuned) = serialize(1);
    // What was tried against plugins of three versions.
    let minimal = "1a1f08ffffffffffffffffff012001280130014a09080110011a030a0100980101";
    assert_eq!(one, minimal);
    // Field 7, entry { key: "xla_flag", value { bool_field: true } }.
    assert_eq!(tuned, format!("{minimal}3a0e0a08786c615f666c616712021001"));
    let (two, _) = serialize(2);
    assert_eq!(
        two,
        "1a2408ffffffffffffffffff012001280230014a0e080110021a030a01001a030a0101980101"
    );
}

#[test]
fn only_what_is_donated_is_consumed() {
    let world = World::new();
    let f = world.compile("fake:add(f32[4] donated, f32[4] donated) -> (f32[4])");
    let x = world.put(&[1.0; 4], Target::Default);
    let y = world.put(&[2.0; 4], Target::Default);
    drop(call(&f, &[Arg::Reference(&x), Arg::Donate(&y)]).unwrap());
    assert!(!x.is_deleted() && y.is_deleted());
    assert_eq!(read(&x).unwrap(), [1.0; 4]);
}
