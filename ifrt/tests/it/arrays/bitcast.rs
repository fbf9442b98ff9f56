//! Bitcasts: another type for the same bytes.

use std::sync::Arc;

use ifrt::ArrayCopySemantics::{AlwaysCopy, DonateInput, ReuseInput};
use ifrt::fake::FakeClient;
use ifrt::{ArraySpec, Client, Code, DType, ShardingRef};

use crate::support::*;

fn spec(dtype: DType, dims: &[i64], sharding: &ShardingRef) -> ArraySpec {
    ArraySpec {
        dtype,
        shape: shape(dims),
        sharding: Arc::clone(sharding),
        layout: None,
    }
}

#[test]
fn arr_33_a_replicated_scalar_becomes_a_split_vector() {
    let client = client();
    let scalar = array_of(&client, &[3.0], &[], &replicated(&client, &[0, 1]));
    let on = tiled(&client, &[0, 1], &[2]);
    let target = spec(DType::F32, &[2], &on);
    let cast = client
        .bitcast_arrays(&[Arc::clone(&scalar)], &[target], DonateInput)
        .unwrap();
    assert!(scalar.is_deleted());
    assert!(Arc::ptr_eq(cast[0].sharding(), &on));
    assert_eq!(cast[0].shape(), &shape(&[2]));
    assert_eq!(cast[0].layout(), Ok(None));
    assert_eq!(read_shards(&cast[0]).unwrap(), [[3.0], [3.0]]);
}

fn cast(client: &FakeClient, to: (DType, &[i64]), on: &ShardingRef) -> ifrt::Result<Vec<u8>> {
    let source = array_of(client, &[1.0], &[1], &single(client, 0));
    let target = spec(to.0, to.1, on);
    let cast = client.bitcast_arrays(&[Arc::clone(&source)], &[target], DonateInput);
    assert_eq!(
        source.is_deleted(),
        cast.is_ok(),
        "consumed only by success"
    );
    let bytes = wait(&cast?[0].copy_to_host(None))?.into_bytes()?;
    Ok(bytes.to_vec())
}

#[test]
fn the_bytes_stay_the_same() {
    let client = client();
    let here = single(&client, 0);
    let one = 1.0_f32.to_ne_bytes().to_vec();
    for (dtype, dims) in [
        (DType::U32, &[1][..]),
        (DType::U8, &[2, 2]),
        (DType::BF16, &[2, 1]),
    ] {
        assert_eq!(
            cast(&client, (dtype, dims), &here),
            Ok(one.clone()),
            "{dtype}"
        );
    }
    let nibbles: Vec<u8> = one.iter().flat_map(|byte| [byte & 15, byte >> 4]).collect();
    assert_eq!(cast(&client, (DType::U4, &[8]), &here), Ok(nibbles));
}

#[test]
fn casts_that_change_more_than_the_type() {
    let client = client();
    let here = single(&client, 0);
    for (to, on, code) in [
        ((DType::F64, &[1][..]), &here, Code::InvalidArgument),
        ((DType::U8, &[3]), &here, Code::InvalidArgument),
        (
            (DType::U32, &[1]),
            &single(&client, 1),
            Code::InvalidArgument,
        ),
        ((DType::F6E2M3FN, &[5]), &here, Code::Unimplemented),
        ((DType::String, &[1]), &here, Code::InvalidArgument),
    ] {
        assert_eq!(
            cast(&client, to, on).unwrap_err().code(),
            code,
            "{to:?} {on:?}"
        );
    }
    let source = array(&client, &[1], &here);
    let target = spec(DType::U32, &[1], &here);
    let one = [Arc::clone(&source)];
    for (copy, specs, code) in [
        (AlwaysCopy, vec![target.clone()], Code::InvalidArgument),
        (ReuseInput, vec![target], Code::Unimplemented),
        (DonateInput, vec![], Code::InvalidArgument),
    ] {
        let refused = client.bitcast_arrays(&one, &specs, copy).unwrap_err();
        assert_eq!(refused.code(), code, "{copy:?}");
    }
    assert!(!source.is_deleted());
}
