//! Bundles, beyond what the conformance suite asks of every runtime.

use std::sync::Arc;

use ifrt::ArrayCopySemantics::{AlwaysCopy, DonateInput, ReuseInput};
use ifrt::bundle::{BundleRef, CopySlice};
use ifrt::fake::FakeClient;
use ifrt::fake::fault::{Fault, Op, When};
use ifrt::value::{READY_ON_DELETED, to_arrays, to_values};
use ifrt::{
    ArrayRef, ArraySpec, Client, Code, Completion, ExecuteOptions, MemoryKind, Result, Status,
    ValueRef,
};

use crate::support::*;

/// Arrays whose first elements are their numbers.
fn arrays(client: &FakeClient, count: u8) -> Vec<ArrayRef> {
    let make = |number| array_of(client, &[f32::from(number)], &[1], &single(client, 0));
    (0..count).map(make).collect()
}

fn bundle(client: &FakeClient, count: u8) -> BundleRef {
    let values = to_values(&arrays(client, count));
    client.bundle(&values, DonateInput).unwrap()
}

fn numbers(bundle: &BundleRef) -> Vec<f32> {
    let arrays = to_arrays(&bundle.values(ReuseInput).unwrap()).unwrap();
    arrays.iter().map(|array| read(array).unwrap()[0]).collect()
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> Code {
    result.unwrap_err().code()
}

#[test]
fn always_copy_is_refused_everywhere() {
    let client = client();
    let values = to_values(&arrays(&client, 2));
    let bundle = bundle(&client, 2);
    let refused = [
        code(client.bundle(&values, AlwaysCopy)),
        code(client.concat_bundles(&[Arc::clone(&bundle)], AlwaysCopy)),
        code(bundle.values(AlwaysCopy)),
        code(bundle.slice(&[1, 1], AlwaysCopy)),
    ];
    assert_eq!(refused, [Code::InvalidArgument; 4]);
    assert!(!bundle.is_deleted());
}

#[test]
fn a_consumed_bundle_counts_as_deleted_and_gives_nothing() {
    let client = client();
    type Consume = fn(&FakeClient, &BundleRef);
    let consumers: [Consume; 5] = [
        |_, bundle| drop(bundle.values(DonateInput).unwrap()),
        |_, bundle| drop(bundle.slice(&[1, 1], DonateInput).unwrap()),
        |client, bundle| {
            let bundles = [Arc::clone(bundle)];
            drop(client.concat_bundles(&bundles, DonateInput).unwrap());
        },
        |_, bundle| {
            let all = CopySlice {
                num_values: 2,
                ..CopySlice::default()
            };
            drop(bundle.copy_arrays(&[all], DonateInput).unwrap());
        },
        |_, bundle| {
            let specs = bundle.array_specs().unwrap();
            drop(bundle.reshard_arrays(&specs, DonateInput).unwrap());
        },
    ];
    for (number, consume) in consumers.into_iter().enumerate() {
        let bundle = bundle(&client, 2);
        consume(&client, &bundle);
        assert!(bundle.is_deleted(), "{number}");
        assert_eq!(bundle.num_values(), 2, "{number}");
        assert_eq!(wait(&bundle.delete()), Ok(()), "{number}");
        let gone = Err(Status::invalid_argument(READY_ON_DELETED));
        assert_eq!(wait(&bundle.ready()), gone, "{number}");
        for result in [
            code(bundle.values(ReuseInput)),
            code(bundle.array_specs()),
            code(bundle.slice(&[2], ReuseInput)),
            code(bundle.copy_arrays(&[], ReuseInput)),
            code(bundle.reshard_arrays(&[], ReuseInput)),
            code(client.concat_bundles(&[Arc::clone(&bundle)], ReuseInput)),
        ] {
            assert_eq!(result, Code::FailedPrecondition, "{number}");
        }
    }
}

#[test]
fn sizes_must_add_up_and_nothing_is_consumed_otherwise() {
    let client = client();
    let bundle = bundle(&client, 3);
    for sizes in [&[1, 1][..], &[4], &[], &[usize::MAX, 4]] {
        let slices: Vec<_> = sizes
            .iter()
            .map(|size| CopySlice {
                num_values: *size,
                ..CopySlice::default()
            })
            .collect();
        let wrong = Code::InvalidArgument;
        assert_eq!(code(bundle.slice(sizes, DonateInput)), wrong, "{sizes:?}");
        let copied = bundle.copy_arrays(&slices, DonateInput);
        assert_eq!(code(copied), wrong, "{sizes:?}");
    }
    assert_eq!(
        code(bundle.reshard_arrays(&[], DonateInput)),
        Code::InvalidArgument
    );
    assert_eq!(numbers(&bundle), [0.0, 1.0, 2.0]);
    let slices = bundle.slice(&[0, 3, 0], DonateInput).unwrap();
    assert_eq!(slices.iter().map(|s| s.num_values()).max(), Some(3));
}

#[test]
fn an_empty_bundle_knows_its_client_and_can_be_deleted() {
    let client = client();
    let expected: Arc<dyn Client> = Arc::clone(&client) as _;
    for bundle in [
        client.bundle(&[], ReuseInput).unwrap(),
        client.concat_bundles(&[], DonateInput).unwrap(),
    ] {
        assert!(Arc::ptr_eq(&bundle.client(), &expected));
        assert_eq!(wait(&bundle.ready()), Ok(()));
        assert_eq!(wait(&bundle.delete()), Ok(()));
        assert!(bundle.is_deleted());
    }
}

#[test]
fn dropping_a_bundle_deletes_nothing_that_is_shared() {
    let client = client();
    let array = array(&client, &[4], &single(&client, 0));
    let pieces = array.disassemble(ReuseInput, ifrt::ShardSemantics::All);
    let pieces = to_values(&pieces.unwrap());
    // The bundle holds the only reference to an array that shares its buffer with another one.
    let bundle = client.bundle(&pieces, DonateInput).unwrap();
    drop(pieces);
    drop(bundle);
    assert!(!array.is_deleted());
    assert_eq!(read(&array).unwrap(), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(client.delete_counts().total, 0);
}

#[test]
fn dropping_a_bundle_frees_what_only_it_held() {
    let client = client();
    let bundle = bundle(&client, 10);
    let kept: Vec<ValueRef> = bundle.values(ReuseInput).unwrap().drain(5..).collect();
    drop(bundle);
    assert_eq!(client.live_buffers(), 5);
    assert!(kept.iter().all(|value| !value.is_deleted()));
}

#[test]
fn one_deletion_with_one_result_for_all() {
    let client = client();
    let bundle = bundle(&client, 3);
    let broken = Status::internal("stuck");
    let faults = client.faults();
    faults.add(Op::Delete, When::Nth(1), Fault::Fail(broken.clone()));
    let completions: Vec<Completion> = (0..4).map(|_| bundle.delete()).collect();
    for completion in completions {
        assert_eq!(wait(&completion), Err(broken.clone()));
    }
    assert_eq!(client.delete_counts().total, 3);
}

#[test]
fn a_bundle_cannot_be_donated_twice_in_one_call() {
    let client = client();
    let bundle = bundle(&client, 1);
    let twice = [Arc::clone(&bundle), Arc::clone(&bundle)];
    let error = client.concat_bundles(&twice, DonateInput).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(!bundle.is_deleted(), "a refused call consumes nothing");
    let both = client.concat_bundles(&twice, ReuseInput).unwrap();
    assert_eq!(numbers(&both), [0.0, 0.0]);
}

#[test]
fn only_arrays_can_be_copied() {
    let client = client();
    let tuple: ValueRef = client.make_tuple(&[]).unwrap();
    let bundle = client.bundle(&[tuple], ReuseInput).unwrap();
    let one = CopySlice {
        num_values: 1,
        ..CopySlice::default()
    };
    let spec = ArraySpec {
        dtype: ifrt::DType::F32,
        shape: shape(&[1]),
        sharding: single(&client, 0),
        layout: None,
    };
    for result in [
        code(bundle.array_specs()),
        code(bundle.copy_arrays(&[one], ReuseInput)),
        code(bundle.reshard_arrays(&[spec], ReuseInput)),
    ] {
        assert_eq!(result, Code::InvalidArgument);
    }
}

#[test]
fn each_slice_goes_where_it_should() {
    let client = client();
    let bundle = bundle(&client, 3);
    let moved = bundle
        .copy_arrays(
            &[
                CopySlice {
                    num_values: 1,
                    devices: Some(devices(&client, &[2])),
                    memory_kind: None,
                },
                CopySlice {
                    num_values: 2,
                    devices: None,
                    memory_kind: Some(MemoryKind::new("pinned_host")),
                },
            ],
            ReuseInput,
        )
        .unwrap();
    assert_eq!(numbers(&moved), [0.0, 1.0, 2.0]);
    let places: Vec<_> = moved
        .array_specs()
        .unwrap()
        .iter()
        .map(|spec| {
            let sharding = &spec.sharding;
            (sharding.devices().clone(), sharding.memory_kind().clone())
        })
        .collect();
    let pinned = (devices(&client, &[0]), MemoryKind::new("pinned_host"));
    assert_eq!(
        places,
        [
            (devices(&client, &[2]), MemoryKind::default()),
            pinned.clone(),
            pinned
        ]
    );
    assert!(!bundle.is_deleted());
}

#[test]
fn executions_take_the_values_of_bundles_in_order() {
    let client = client();
    let module = "fake:identity(f32[1], f32[1], f32[1]) -> (f32[1], f32[1], f32[1])";
    let executable = wait(&compile(&client, module, None)).unwrap();
    let inputs = bundle(&client, 3).slice(&[2, 1], DonateInput).unwrap();
    let options = ExecuteOptions {
        fill_status: true,
        ..ExecuteOptions::default()
    };
    let result = executable.execute_bundle(&inputs, &options).unwrap();
    assert_eq!(wait(&result.status.unwrap()), Ok(()));
    assert_eq!(result.outputs.len(), 1);
    assert_eq!(numbers(&result.outputs[0]), [0.0, 1.0, 2.0]);

    let sliced = |sizes: &[usize]| {
        ifrt::bundle::execute_bundle(&*executable, &inputs, Some(sizes), &options)
    };
    let outputs = sliced(&[1, 2]).unwrap().outputs;
    assert_eq!(numbers(&outputs[0]), [0.0]);
    assert_eq!(numbers(&outputs[1]), [1.0, 2.0]);
    assert_eq!(code(sliced(&[1, 1])), Code::InvalidArgument);

    assert_eq!(wait(&inputs[1].delete()), Ok(()));
    let gone = executable.execute_bundle(&inputs, &options);
    assert_eq!(code(gone), Code::FailedPrecondition);
    let tuple: ValueRef = client.make_tuple(&[]).unwrap();
    let no_array = client.bundle(&[tuple], ReuseInput).unwrap();
    let error = code(executable.execute_bundle(&[no_array], &options));
    assert_eq!(error, Code::InvalidArgument);
}
