//! Values of values, beyond what the conformance suite asks of every runtime.

use std::sync::Arc;

use ifrt::fake::fault::{Fault, Op, When};
use ifrt::value::{READY_ON_DELETED, to_arrays, to_values};
use ifrt::{ArrayRef, Client, Code, Status, ValueRef};

use crate::support::*;

fn arrays(client: &ifrt::fake::FakeClient, count: usize) -> Vec<ArrayRef> {
    let make = |_| array(client, &[2, 3], &single(client, 0));
    (0..count).map(make).collect()
}

#[test]
fn vu_01_values_and_arrays_are_the_same_objects() {
    let client = client();
    let originals = arrays(&client, 3);
    let values = to_values(&originals);
    let again = to_arrays(&values).unwrap();
    assert_eq!(again.len(), 3);
    for (one, other) in originals.iter().zip(&again) {
        assert!(Arc::ptr_eq(one, other));
    }
}

#[test]
fn vu_02_what_is_no_array_is_refused() {
    let client = client();
    let tuple: ValueRef = client.make_tuple(&[]).unwrap();
    let array: ValueRef = array(&client, &[], &single(&client, 0));
    let error = to_arrays(&[array, tuple]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("value 1"), "{error}");
}

#[test]
fn sizes_add_up_and_one_without_a_size_spoils_the_sum() {
    let client = client();
    let mut values = to_values(&arrays(&client, 3));
    let tuple = client.make_tuple(&values).unwrap();
    assert_eq!(tuple.byte_size(), Ok(Some(72)));
    let token = ifrt::HostBuffer::dense(
        ifrt::HostData::Borrowed(&[]),
        ifrt::DType::Token,
        shape(&[]),
    );
    let token = client
        .make_array_from_host_buffer(token, single(&client, 0), None)
        .unwrap();
    values.push(token);
    let tuple = client.make_tuple(&values).unwrap();
    assert_eq!(tuple.byte_size(), Ok(None));
}

#[test]
fn deleting_a_tuple_asks_once_and_its_error_reaches_every_caller() {
    let client = client();
    let values = to_values(&arrays(&client, 2));
    let tuple = client.make_tuple(&values).unwrap();
    let broken = Status::internal("stuck");
    let faults = client.faults();
    faults.add(Op::Delete, When::Once, Fault::Fail(broken.clone()));
    let (first, second) = (tuple.delete(), tuple.delete());
    assert_eq!(wait(&first), Err(broken.clone()));
    assert_eq!(wait(&second), Err(broken));
    assert_eq!(client.delete_counts().total, 2, "one per element");
    assert!(tuple.is_deleted());
    assert_eq!(
        wait(&tuple.ready()),
        Err(Status::invalid_argument(READY_ON_DELETED))
    );
}

#[test]
fn values_of_another_client_are_refused() {
    let (client, other) = (client(), client());
    let mixed = [arrays(&client, 1), arrays(&other, 1)].concat();
    let error = client.make_tuple(&to_values(&mixed)).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("value 1"), "{error}");
}

#[test]
fn an_empty_tuple_knows_its_client() {
    let client = client();
    let tuple = client.make_tuple(&[]).unwrap();
    let expected: Arc<dyn Client> = client;
    assert!(Arc::ptr_eq(&tuple.client(), &expected));
}
