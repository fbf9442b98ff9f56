//! Arrays made of other arrays: assembled, copied, remapped, seen as another type.

use std::sync::Arc;

use ifrt::remap_plan::{Interval, Mapping};
use ifrt::xla::HloSharding;
use ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, Client, Code, DType, DeviceList, HostBuffer, HostData,
    MemoryKind, RemapPlan, ShardSemantics, Sharding, ShardingRef,
};
use ifrt_pjrt::PjrtClient;

use crate::support::*;

use ArrayCopySemantics::{AlwaysCopy, DonateInput, ReuseInput};

fn put_on(client: &PjrtClient, device: usize, values: &[f32]) -> ArrayRef {
    let bytes = bytes_of(values);
    let dims = shape(&[i64::try_from(values.len()).unwrap()]);
    let host = HostBuffer::dense(HostData::Borrowed(&bytes), DType::F32, dims);
    client
        .make_array_from_host_buffer(host, on(client, device), None)
        .unwrap()
}

fn tiled(client: &PjrtClient, devices: &[usize]) -> ShardingRef {
    let list: DeviceList = devices
        .iter()
        .map(|d| Arc::clone(&client.devices()[*d]))
        .collect();
    let tiles = HloSharding::tile([i64::try_from(devices.len()).unwrap()]).unwrap();
    Sharding::hlo(tiles, list, MemoryKind::default()).unwrap()
}

fn assemble(
    client: &PjrtClient,
    dims: &[i64],
    sharding: ShardingRef,
    arrays: &[ArrayRef],
    copy: ArrayCopySemantics,
) -> ifrt::Result<ArrayRef> {
    let (dims, all) = (shape(dims), ShardSemantics::All);
    client.assemble_array(DType::F32, dims, sharding, arrays, copy, all)
}

fn shards(array: &ArrayRef) -> Vec<Vec<f32>> {
    let shards = array.disassemble(ReuseInput, ShardSemantics::All).unwrap();
    shards.iter().map(fetch).collect()
}

#[test]
fn single_device_arrays_become_one_and_many_again() {
    let client = client(3);
    let parts: Vec<ArrayRef> = (0..3).map(|n| put_on(&client, n, &[1.0, 2.0])).collect();
    let sharding = tiled(&client, &[0, 1, 2]);
    let x = assemble(&client, &[6], Arc::clone(&sharding), &parts, ReuseInput).unwrap();
    assert!(Arc::ptr_eq(x.sharding(), &sharding));
    assert_eq!(x.shape().dims(), [6]);
    assert_eq!(shards(&x), vec![vec![1.0, 2.0]; 3]);
    assert!(parts.iter().all(|part| !part.is_deleted()));
    let y = assemble(&client, &[6], sharding, &parts, DonateInput).unwrap();
    assert!(parts.iter().all(|part| part.is_deleted()));
    assert!(!x.is_deleted() && !y.is_deleted());
    assert_eq!(client.buffer_counts().live(), 3);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let client = client(3);
    let part = |n| put_on(&client, n, &[1.0, 2.0]);
    let (a, b, c) = (part(0), part(1), part(2));
    let sharding = || tiled(&client, &[0, 1, 2]);
    let list = |arrays: &[&ArrayRef]| arrays.iter().map(|a| Arc::clone(a)).collect::<Vec<_>>();
    let ints = put_bytes(&client, DType::S32, &[2], &[0; 8]).unwrap();
    let other_client = crate::support::client(1);
    let foreign = put(&other_client, &[2], &[0.0; 2]);
    let whole = assemble(&client, &[6], sharding(), &list(&[&a, &b, &c]), ReuseInput).unwrap();
    let deleted = part(0);
    wait(deleted.delete()).unwrap();
    for (dims, arrays, part) in [
        (
            &[6][..],
            list(&[&a, &b]),
            "3 shards cannot be assembled from 2 arrays",
        ),
        (&[6], list(&[&b, &a, &c]), "another device"),
        (&[6], list(&[&ints, &b, &c]), "dtype s32"),
        (&[6], list(&[&foreign, &b, &c]), "does not belong"),
        (&[6], list(&[&whole, &b, &c]), "is not on one device"),
        (&[6], list(&[&deleted, &b, &c]), "deleted or donated"),
        (&[9], list(&[&a, &b, &c]), "has shards of shape [3]"),
    ] {
        let error = assemble(&client, dims, sharding(), &arrays, DonateInput).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(part), "{error}");
    }
    assert!(![a, b, c].iter().any(|array| array.is_deleted()));
}

#[test]
fn copies_to_other_devices() {
    let client = client(4);
    let parts: Vec<ArrayRef> = (0..2_u8)
        .map(|n| put_on(&client, usize::from(n), &[f32::from(n)]))
        .collect();
    let x = assemble(&client, &[2], tiled(&client, &[0, 1]), &parts, ReuseInput).unwrap();
    drop(parts);
    let to = |devices: &[usize]| -> DeviceList {
        devices
            .iter()
            .map(|d| Arc::clone(&client.devices()[*d]))
            .collect()
    };
    let copy = |devices: &[usize], how| {
        client.copy_arrays(&[Arc::clone(&x)], Some(to(devices)), None, how)
    };
    // One shard moves, one stays and is shared.
    let made = client.buffer_counts().made;
    let y = copy(&[0, 3], ReuseInput).unwrap().remove(0);
    assert_eq!(client.buffer_counts().made - made, 1);
    assert_eq!(shards(&y), [[0.0], [1.0]]);
    assert_eq!(y.sharding().devices(), &to(&[0, 3]));
    let z = copy(&[0, 1], AlwaysCopy).unwrap().remove(0);
    wait(y.delete()).unwrap();
    assert!(x.is_deleted() && !z.is_deleted());
    assert_eq!(shards(&z), [[0.0], [1.0]]);

    let error = copy(&[0], ReuseInput).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let donated = client
        .copy_arrays(&[Arc::clone(&z)], Some(to(&[2, 3])), None, DonateInput)
        .unwrap();
    assert!(z.is_deleted());
    assert_eq!(shards(&donated[0]), [[0.0], [1.0]]);
    assert!(
        client
            .copy_arrays(&[], None, None, AlwaysCopy)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn copies_to_other_memories() {
    let client = client(1);
    let x = put(&client, &[2], &[1.0, 2.0]);
    let pinned = MemoryKind::new("pinned_host");
    let copy = |kind: &MemoryKind, how| {
        client.copy_arrays(&[Arc::clone(&x)], None, Some(kind.clone()), how)
    };
    let y = copy(&pinned, AlwaysCopy).unwrap().remove(0);
    assert_eq!(y.sharding().memory_kind(), &pinned);
    assert_eq!(fetch(&y), [1.0, 2.0]);
    let back = client
        .copy_arrays(&[y], None, Some(MemoryKind::default()), ReuseInput)
        .unwrap()
        .remove(0);
    assert_eq!(fetch(&back), [1.0, 2.0]);
    assert_eq!(
        copy(&pinned, DonateInput).unwrap_err().code(),
        Code::Unimplemented
    );
    assert!(!x.is_deleted());
    let error = copy(&MemoryKind::new("hbm"), AlwaysCopy).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[test]
fn a_batch_of_copies_needs_one_place() {
    let client = client(2);
    let arrays = [put_on(&client, 0, &[1.0]), put_on(&client, 1, &[2.0])];
    let error = client
        .copy_arrays(&arrays, None, None, AlwaysCopy)
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(
        error.message().contains("same device list and memory kind"),
        "{error}"
    );
}

/// Swaps the shards of one array.
fn swap(client: &PjrtClient) -> RemapPlan {
    let spec = |devices: &[usize]| ArraySpec {
        dtype: DType::F32,
        shape: shape(&[2]),
        sharding: tiled(client, devices),
        layout: None,
    };
    let one = |start| Interval {
        start,
        end: start + 1,
        step: 1,
    };
    RemapPlan::new(
        vec![spec(&[0, 1])],
        vec![spec(&[1, 0])],
        vec![Mapping {
            in_array: 0,
            out_array: 0,
            from: vec![one(0), one(1)],
            to: vec![one(1), one(0)],
        }],
    )
}

#[test]
fn shards_are_remapped_without_copies() {
    let client = client(2);
    let parts = [put_on(&client, 0, &[1.0]), put_on(&client, 1, &[2.0])];
    let x = assemble(&client, &[2], tiled(&client, &[0, 1]), &parts, DonateInput).unwrap();
    let plan = swap(&client);
    let made = client.buffer_counts().made;
    let y = client
        .remap_arrays(&plan, &[Arc::clone(&x)], ReuseInput)
        .unwrap()
        .remove(0);
    assert_eq!(client.buffer_counts().made, made);
    assert_eq!(shards(&y), [[2.0], [1.0]]);
    assert!(!x.is_deleted());
    let error = client
        .remap_arrays(&plan, &[Arc::clone(&x)], AlwaysCopy)
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let z = client
        .remap_arrays(&plan, &[Arc::clone(&x)], DonateInput)
        .unwrap()
        .remove(0);
    assert!(x.is_deleted() && !z.is_deleted());
    for (arrays, part) in [
        (&[][..], "expects 1 input arrays, but got 0"),
        (&[put(&client, &[2], &[0.0; 2])][..], "be on"),
        (&[put(&client, &[3], &[0.0; 3])][..], "have shape [2]"),
        (
            &[put_bytes(&client, DType::U8, &[2], &[0; 2]).unwrap()][..],
            "have dtype f32",
        ),
    ] {
        let error = client.remap_arrays(&plan, arrays, DonateInput).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn bytes_are_seen_as_another_type() {
    let client = client(1);
    let x = put(&client, &[2], &[1.0, -2.0]);
    let spec = |dtype, dims: &[i64]| ArraySpec {
        dtype,
        shape: shape(dims),
        sharding: on(&client, 0),
        layout: None,
    };
    let cast = |spec, how| client.bitcast_arrays(&[Arc::clone(&x)], &[spec], how);
    let ints = spec(DType::U32, &[2]);
    assert_eq!(
        cast(ints.clone(), AlwaysCopy).unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(
        cast(ints.clone(), ReuseInput).unwrap_err().code(),
        Code::Unimplemented
    );
    for wrong in [
        spec(DType::U32, &[3]),
        spec(DType::U8, &[2]),
        spec(DType::Token, &[]),
    ] {
        assert_eq!(
            cast(wrong, DonateInput).unwrap_err().code(),
            Code::InvalidArgument
        );
    }
    assert!(!x.is_deleted());
    if client.plugin().api_minor() < 98 {
        assert_eq!(
            cast(ints, DonateInput).unwrap_err().code(),
            Code::Unimplemented
        );
        return;
    }
    let y = cast(ints, DonateInput).unwrap().remove(0);
    assert!(x.is_deleted());
    assert_eq!(y.dtype(), DType::U32);
    assert_eq!(fetch_bytes(&y).unwrap(), bytes_of(&[1.0, -2.0]));
    let z = client
        .bitcast_arrays(&[y], &[spec(DType::F32, &[1, 2])], DonateInput)
        .unwrap();
    assert_eq!(z[0].shape().dims(), [1, 2]);
    assert_eq!(fetch(&z[0]), [1.0, -2.0]);
}
