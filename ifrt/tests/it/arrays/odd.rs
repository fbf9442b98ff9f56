//! Arrays without numbers: strings, tokens, nothing at all.

use std::sync::Arc;

use bytes::Bytes;
use ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, Client, Code, DType, HostBuffer, HostData, HostValue,
    Layout, MemoryKind, Result, ShardSemantics, Sharding, ShardingKind, ShardingRef,
};

use crate::support::*;

fn strings(texts: &[&str]) -> Arc<[Bytes]> {
    texts
        .iter()
        .map(|text| Bytes::copy_from_slice(text.as_bytes()))
        .collect()
}

fn string_buffer(texts: &[&str], dims: &[i64]) -> HostBuffer<'static> {
    HostBuffer::dense(
        HostData::Strings(strings(texts)),
        DType::String,
        shape(dims),
    )
}

fn value(array: &ArrayRef) -> Result<HostValue> {
    wait(&array.copy_to_host(None))
}

#[test]
fn arr_21_strings_there_and_back() {
    let client = client();
    let texts = ["string-0", "", "string-2 \0", "é", "4", "5"];
    for on in [single(&client, 0), replicated(&client, &[1, 2])] {
        let made = client
            .make_array_from_host_buffer(string_buffer(&texts, &[2, 3]), on, None)
            .unwrap();
        assert_eq!(made.byte_size(), Ok(None));
        assert_eq!(value(&made), Ok(HostValue::Strings(strings(&texts))));
        assert!(
            wait(&made.copy_to_host(Some(&[8, 8]))).is_err(),
            "no strides"
        );
    }
}

#[test]
fn arr_22_strings_in_shards() {
    let client = client();
    let on = tiled(&client, &[0, 1], &[2, 1]);
    let spec = ArraySpec {
        dtype: DType::String,
        shape: shape(&[2, 2]),
        sharding: Arc::clone(&on),
        layout: None,
    };
    let halves = [&["a", "b"][..], &["c", "d"]];
    let buffers = halves.map(|half| string_buffer(half, &[1, 2]));
    let made = client
        .make_arrays_from_host_buffer_shards(vec![shards(spec.clone(), buffers)])
        .unwrap();
    let pieces = made[0]
        .disassemble(ArrayCopySemantics::ReuseInput, ShardSemantics::Addressable)
        .unwrap();
    for (piece, half) in pieces.iter().zip(halves) {
        assert_eq!(value(piece), Ok(HostValue::Strings(strings(half))));
    }
    let whole = ArraySpec {
        sharding: single(&client, 3),
        ..spec
    };
    let joined = client
        .reshard_arrays(&made, &[whole], ArrayCopySemantics::AlwaysCopy)
        .unwrap();
    assert_eq!(
        value(&joined[0]),
        Ok(HostValue::Strings(strings(&["a", "b", "c", "d"])))
    );
}

#[test]
fn str_09_10_what_strings_cannot_have() {
    let client = client();
    let here = single(&client, 0);
    let opaque = Sharding::new(
        ShardingKind::opaque(),
        devices(&client, &[0]),
        MemoryKind::default(),
    );
    let strided = HostBuffer {
        byte_strides: Some([8, 8].into()),
        ..string_buffer(&["a"], &[1, 1])
    };
    let numbers = HostBuffer {
        dtype: DType::U8,
        ..string_buffer(&["a"], &[1])
    };
    let make = |buffer, on: ShardingRef, layout| {
        client
            .make_array_from_host_buffer(buffer, on, layout)
            .map(drop)
    };
    for (what, made) in [
        ("strides", make(strided, Arc::clone(&here), None)),
        (
            "opaque",
            make(string_buffer(&["a"], &[1]), Arc::new(opaque.unwrap()), None),
        ),
        (
            "count",
            make(string_buffer(&["a"], &[2]), Arc::clone(&here), None),
        ),
        ("dtype", make(numbers, Arc::clone(&here), None)),
        (
            "layout",
            make(
                string_buffer(&["a"], &[1]),
                here,
                Some(Layout::descending(1)),
            ),
        ),
    ] {
        assert_eq!(made.unwrap_err().code(), Code::InvalidArgument, "{what}");
    }
}

#[test]
fn str_17_20_26_strings_are_shared_and_copied() {
    let client = client();
    let on = replicated(&client, &[0, 1]);
    let made = client
        .make_array_from_host_buffer(string_buffer(&["x", "y"], &[2]), on, None)
        .unwrap();
    let expected = HostValue::Strings(strings(&["x", "y"]));
    let shard = made
        .fully_replicated_shard(ArrayCopySemantics::ReuseInput)
        .unwrap();
    let moved = client
        .copy_arrays(
            &[Arc::clone(&made)],
            Some(devices(&client, &[2, 3])),
            None,
            ArrayCopySemantics::ReuseInput,
        )
        .unwrap();
    made.delete().detach();
    assert!(value(&made).is_err() && value(&shard).is_err());
    assert_eq!(value(&moved[0]), Ok(expected));
}

#[test]
fn arr_25_40_tokens() {
    let client = client();
    for kind in ["device", "pinned_host", "unpinned_host"] {
        let all = replicated(&client, &[0, 1, 2, 3]);
        let on = all
            .with_device_assignment(None, Some(MemoryKind::new(kind)))
            .unwrap();
        let buffer = HostBuffer::dense(HostData::Borrowed(&[]), DType::Token, shape(&[]));
        let token = client
            .make_array_from_host_buffer(buffer, on, None)
            .unwrap();
        assert_eq!(wait(&token.ready()), Ok(()));
        assert_eq!(token.byte_size(), Ok(None));
        assert_eq!(
            value(&token),
            Ok(HostValue::Bytes(Bytes::new())),
            "readiness only"
        );
        let copies = client
            .copy_arrays(
                &[token],
                Some(devices(&client, &[3, 2, 1, 0])),
                None,
                ArrayCopySemantics::ReuseInput,
            )
            .unwrap();
        assert_eq!(wait(&copies[0].ready()), Ok(()));
    }
}

#[test]
fn arr_38_arrays_without_elements() {
    let client = client();
    for kind in ["device", "pinned_host", "unpinned_host"] {
        let on = single(&client, 0);
        let on = on
            .with_device_assignment(None, Some(MemoryKind::new(kind)))
            .unwrap();
        let buffer = HostBuffer::dense(HostData::Borrowed(&[]), DType::F32, shape(&[0, 1]));
        let empty = client
            .make_array_from_host_buffer(buffer, on, None)
            .unwrap();
        assert_eq!(empty.byte_size(), Ok(Some(0)));
        for position in 0..4 {
            let copies = client
                .copy_arrays(
                    &[Arc::clone(&empty)],
                    Some(devices(&client, &[position])),
                    None,
                    ArrayCopySemantics::ReuseInput,
                )
                .unwrap();
            assert_eq!(wait(&copies[0].ready()), Ok(()));
            assert_eq!(value(&copies[0]), Ok(HostValue::Bytes(Bytes::new())));
            assert!(wait(&copies[0].copy_to_host(Some(&[4, 4]))).is_ok());
        }
    }
}
