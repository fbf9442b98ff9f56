//! Error arrays, and how errors travel.

use std::sync::Arc;

use ifrt::ArrayCopySemantics::{AlwaysCopy, DonateInput, ReuseInput};
use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::{
    ArrayRef, ArraySpec, Client, Code, DType, ExecuteOptions, MemoryKind, ShardSemantics, Sharding,
    ShardingKind, ShardingRef, Status,
};

use crate::support::*;

fn injected() -> Status {
    Status::internal("injected error").with_payload("key", "value")
}

fn spec(dtype: DType, dims: &[i64], sharding: &ShardingRef) -> ArraySpec {
    ArraySpec {
        dtype,
        shape: shape(dims),
        sharding: Arc::clone(sharding),
        layout: None,
    }
}

fn poisoned(client: &FakeClient, spec: ArraySpec) -> ArrayRef {
    client
        .make_error_arrays(injected(), &[spec])
        .unwrap()
        .remove(0)
}

#[track_caller]
fn assert_poisoned(array: &ArrayRef) {
    assert_eq!(wait(&array.ready()), Err(injected()));
    assert!(!array.is_deleted());
}

#[test]
fn arr_26_27_44_error_arrays_keep_their_spec() {
    let client = FakeClient::new(FakeOptions::fixture(3, 2));
    let opaque = Sharding::new(
        ShardingKind::opaque(),
        devices(&client, &[0, 1]),
        MemoryKind::default(),
    );
    let shardings = [
        replicated(&client, &[0, 1]),
        replicated(&client, &[0, 2]),
        replicated(&client, &[2]),
        tiled(&client, &[0, 1], &[2, 1]),
        Arc::new(opaque.unwrap()),
    ];
    let specs: Vec<ArraySpec> = shardings
        .iter()
        .map(|on| spec(DType::S8, &[2, 2], on))
        .collect();
    let arrays = client.make_error_arrays(injected(), &specs).unwrap();
    for (array, sharding) in arrays.iter().zip(&shardings) {
        assert_poisoned(array);
        assert_eq!((array.dtype(), array.shape()), (DType::S8, &shape(&[2, 2])));
        assert!(Arc::ptr_eq(array.sharding(), sharding));
    }
    assert_eq!(client.live_bytes(), 0, "they hold no data");
    assert_eq!(
        wait(&arrays[0].delete()),
        Ok(()),
        "and are deleted like others"
    );
    assert!(arrays[0].is_deleted());
}

#[test]
fn arr_39_41_44_poison_goes_through_every_operation() {
    let client = client();
    let here = single(&client, 0);
    for (dtype, dims) in [
        (DType::F32, &[4][..]),
        (DType::F32, &[0, 1]),
        (DType::Token, &[]),
        (DType::S4, &[2]),
        (DType::String, &[2]),
    ] {
        let bad = poisoned(&client, spec(dtype, dims, &here));
        assert_eq!(wait(&bad.copy_to_host(None)), Err(injected()), "{dtype}");
        let one = [Arc::clone(&bad)];
        for copy in [AlwaysCopy, ReuseInput] {
            let to = Some(devices(&client, &[1]));
            let kind = Some(MemoryKind::new("pinned_host"));
            let moved = client.copy_arrays(&one, to, kind, copy).unwrap();
            assert_poisoned(&moved[0]);
            assert_poisoned(&client.copy_arrays(&one, None, None, copy).unwrap()[0]);
        }
        for piece in bad.disassemble(ReuseInput, ShardSemantics::All).unwrap() {
            assert_poisoned(&piece);
        }
        let same = spec(dtype, dims, &here);
        let assembled = client
            .assemble_array(
                dtype,
                shape(dims),
                Arc::clone(&here),
                &one,
                AlwaysCopy,
                ShardSemantics::All,
            )
            .unwrap();
        assert_poisoned(&assembled);
        let resharded = client.reshard_arrays(&one, &[same], AlwaysCopy).unwrap();
        assert_poisoned(&resharded[0]);
        let donated = client.copy_arrays(&one, None, None, DonateInput).unwrap();
        assert!(bad.is_deleted());
        assert_poisoned(&donated[0]);
    }
}

#[test]
fn only_outputs_of_a_poisoned_input_are_affected() {
    let client = client();
    let here = single(&client, 0);
    let good = array(&client, &[4], &here);
    let bad = poisoned(&client, spec(DType::F32, &[4], &here));
    let both = [Arc::clone(&good), Arc::clone(&bad)];
    let to = Some(devices(&client, &[1]));
    let copies = client.copy_arrays(&both, to, None, AlwaysCopy).unwrap();
    assert_eq!(read(&copies[0]).unwrap(), [0.0, 1.0, 2.0, 3.0]);
    assert_poisoned(&copies[1]);
    let values: Vec<ifrt::ValueRef> = both.iter().map(|one| Arc::clone(one) as _).collect();
    assert_eq!(wait(&client.ready(&values)), Err(injected()));
}

#[test]
fn executions_carry_poison_and_their_own_failures() {
    let client = client();
    let here = single(&client, 0);
    let options = ExecuteOptions {
        fill_status: true,
        ..ExecuteOptions::default()
    };
    let module = "fake:add(f32[4], f32[4] donated) -> (f32[4])";
    let executable = wait(&compile(&client, module, None)).unwrap();
    let bad = poisoned(&client, spec(DType::F32, &[4], &here));
    let good = array(&client, &[4], &here);
    let args = [Arc::clone(&bad), Arc::clone(&good)];
    let result = executable.execute(&args, &options, None).unwrap();
    assert_poisoned(&result.outputs[0]);
    assert_eq!(wait(&result.status.unwrap()), Err(injected()));
    assert!(good.is_deleted(), "donated all the same");

    let failing = wait(&compile(&client, "fake:fail() -> (f32[1], s8[])", None)).unwrap();
    let result = failing.execute(&[], &options, None).unwrap();
    let status = wait(&result.status.unwrap()).unwrap_err();
    assert_eq!(status.message(), "the kernel `fail` fails");
    for output in &result.outputs {
        assert_eq!(wait(&output.ready()), Err(status.clone()));
    }
}

#[test]
fn faults_of_the_calls_poison_or_refuse() {
    let client = client();
    let source = array(&client, &[4], &single(&client, 0));
    for copy in [AlwaysCopy, ReuseInput, DonateInput] {
        client
            .faults()
            .add(Op::Copy, When::Once, Fault::Refuse(injected()));
        let refused = client.copy_arrays(&[Arc::clone(&source)], None, None, copy);
        assert_eq!(refused.unwrap_err(), injected());
        assert!(!source.is_deleted(), "a refused call consumes nothing");
    }
    for (fault, code) in [
        (Fault::Fail(injected()), Code::Internal),
        (Fault::DropPromise, Code::Internal),
    ] {
        client.faults().add(Op::Copy, When::Once, fault.clone());
        let one = [Arc::clone(&source)];
        let copies = client.copy_arrays(&one, None, None, ReuseInput).unwrap();
        assert_eq!(
            wait(&copies[0].ready()).unwrap_err().code(),
            code,
            "{fault}"
        );
        assert!(read(&copies[0]).is_err(), "{fault}");
        assert_eq!(
            read(&source).unwrap(),
            [0.0, 1.0, 2.0, 3.0],
            "{fault}: the source is fine"
        );
    }
}

#[test]
fn an_array_of_shared_buffers_is_not_ready_before_its_operation() {
    let (client, gate) = (client(), Gate::new());
    let here = single(&client, 0);
    let source = array(&client, &[2], &here);
    let one = [Arc::clone(&source)];
    let slow = || Fault::Slow(gate.clone());
    for op in [Op::Copy, Op::Assemble, Op::Disassemble] {
        client.faults().add(op, When::Once, slow());
    }
    let shared = client
        .copy_arrays(&one, None, None, ReuseInput)
        .unwrap()
        .remove(0);
    let assembled = client
        .assemble_array(
            DType::F32,
            shape(&[2]),
            Arc::clone(&here),
            &one,
            ReuseInput,
            ShardSemantics::All,
        )
        .unwrap();
    let piece = source
        .disassemble(ReuseInput, ShardSemantics::All)
        .unwrap()
        .remove(0);
    assert!(
        source.ready().is_ready(),
        "the buffers themselves are there"
    );

    let module = "fake:add(f32[2], f32[2]) -> (f32[2])";
    let executable = wait(&compile(&client, module, None)).unwrap();
    for late in [shared, assembled, piece] {
        let read = late.copy_to_host(None);
        let to = Some(devices(&client, &[1]));
        let copied = client
            .copy_arrays(&[Arc::clone(&late)], to, None, AlwaysCopy)
            .unwrap();
        let args = [Arc::clone(&late), Arc::clone(&source)];
        let sum = executable
            .execute(&args, &ExecuteOptions::default(), None)
            .unwrap();
        let outputs = [Arc::clone(&late), copied[0].clone(), sum.outputs[0].clone()];
        assert!(!read.is_ready());
        assert!(outputs.iter().all(|output| !output.ready().is_ready()));
        gate.step();
        assert_eq!(
            floats_of(&wait(&read).unwrap().into_bytes().unwrap()),
            [0.0, 1.0]
        );
        let found = outputs.map(|output| crate::support::read(&output).unwrap());
        assert_eq!(found, [[0.0, 1.0], [0.0, 1.0], [0.0, 2.0]]);
    }
}
