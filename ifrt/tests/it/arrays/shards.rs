//! One host buffer per shard.

use std::sync::Arc;

use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::{
    ArraySpec, Client, Code, DType, HostBuffer, HostData, HostShards, MemoryKind, ShardingRef,
};

use crate::support::*;

fn spec(dims: &[i64], sharding: &ShardingRef) -> ArraySpec {
    ArraySpec {
        dtype: DType::F32,
        shape: shape(dims),
        sharding: Arc::clone(sharding),
        layout: None,
    }
}

fn buffer(values: &[f32]) -> HostBuffer<'static> {
    let count = i64::try_from(values.len()).unwrap();
    HostBuffer::dense(
        HostData::Shared(bytes_of(values)),
        DType::F32,
        shape(&[1, count]),
    )
}

#[test]
fn arr_14_two_arrays_of_two_shards() {
    let client = client();
    let on = tiled(&client, &[0, 1], &[2, 1]);
    let (low, high) = ([0.0, 1.0, 2.0], [3.0, 4.0, 5.0]);
    let arrays = client
        .make_arrays_from_host_buffer_shards(vec![
            shards(spec(&[2, 3], &on), [buffer(&low), buffer(&high)]),
            HostShards {
                spec: spec(&[2, 3], &on),
                buffers: vec![(vec![1], buffer(&low)), (vec![0], buffer(&high))],
            },
        ])
        .unwrap();
    assert_eq!(arrays.len(), 2);
    assert_eq!(read_shards(&arrays[0]).unwrap(), [low, high]);
    assert_eq!(read_shards(&arrays[1]).unwrap(), [high, low]);
    assert!(Arc::ptr_eq(arrays[1].sharding(), &on));
}

#[test]
fn replicas_share_a_buffer() {
    let client = client();
    let on = hlo(
        ifrt::xla::HloSharding::Tiled(
            ifrt::xla::TileAssignment::new(
                vec![2, 1, 2],
                ifrt::xla::DeviceOrder::Explicit(vec![0, 2, 1, 3]),
                Vec::new(),
                true,
            )
            .unwrap(),
        ),
        devices(&client, &[0, 1, 2, 3]),
    );
    let array = HostShards {
        spec: spec(&[2, 2], &on),
        buffers: vec![
            (vec![0, 2], buffer(&[1.0, 2.0])),
            (vec![1, 3], buffer(&[3.0, 4.0])),
        ],
    };
    let arrays = client
        .make_arrays_from_host_buffer_shards(vec![array])
        .unwrap();
    assert_eq!(
        read_shards(&arrays[0]).unwrap(),
        [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    );
}

#[test]
fn uneven_tiles_and_unreachable_shards() {
    let client = FakeClient::new(FakeOptions::fixture(3, 2));
    let on = tiled(&client, &[0, 2, 1], &[1, 3]);
    // Five columns in tiles of two; the middle tile is on the device that is out of reach.
    let array = shards(spec(&[1, 5], &on), [buffer(&[1.0, 2.0]), buffer(&[5.0])]);
    let arrays = client
        .make_arrays_from_host_buffer_shards(vec![array])
        .unwrap();
    assert_eq!(
        read_shards(&arrays[0]).unwrap(),
        [vec![1.0, 2.0], vec![5.0]]
    );
    assert_eq!(arrays[0].byte_size(), Ok(None), "shards of different sizes");
    let all = arrays[0].disassemble(
        ifrt::ArrayCopySemantics::ReuseInput,
        ifrt::ShardSemantics::All,
    );
    assert_eq!(all.unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn buffers_must_cover_each_shard_once() {
    let client = client();
    let on = tiled(&client, &[0, 1], &[2, 1]);
    let good = || buffer(&[0.0, 1.0, 2.0]);
    let integers = HostBuffer {
        dtype: DType::S32,
        ..good()
    };
    for (buffers, text) in [
        (vec![], "shard 0 has no host buffer"),
        (vec![(vec![0], good())], "shard 1 has no host buffer"),
        (vec![(vec![0, 0, 1], good())], "shard 0 has several"),
        (
            vec![(vec![0, 1], good()), (vec![1], good())],
            "shard 1 has several",
        ),
        (
            vec![(vec![0, 1, 2], good())],
            "is for shard 2, but the array has 2",
        ),
        (vec![(vec![usize::MAX], good())], "but the array has 2"),
        (
            vec![(vec![0, 1], good()), (vec![], good())],
            "is for no shard",
        ),
        (
            vec![(vec![0, 1], buffer(&[0.0]))],
            "shard 0 is f32[1,3], but its host buffer is f32[1,1]",
        ),
        (vec![(vec![0, 1], integers)], "is s32[1,3]"),
    ] {
        let array = HostShards {
            spec: spec(&[2, 3], &on),
            buffers,
        };
        let refused = client
            .make_arrays_from_host_buffer_shards(vec![array])
            .unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains(text), "{refused}");
    }
    assert_eq!(client.live_buffers(), 0);
}

#[test]
fn arr_18_19_all_arrays_have_one_place() {
    let client = client();
    let here = single(&client, 0);
    let there = single(&client, 1);
    let pinned = here
        .with_device_assignment(None, Some(MemoryKind::new("pinned_host")))
        .unwrap();
    for other in [there, pinned] {
        let arrays = [&here, &other]
            .map(|on| shards(spec(&[1, 1], on), [buffer(&[1.0])]))
            .into();
        let refused = client
            .make_arrays_from_host_buffer_shards(arrays)
            .unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{other:?}");
    }
    assert!(
        client
            .make_arrays_from_host_buffer_shards(vec![])
            .unwrap()
            .is_empty()
    );
}

#[test]
fn memory_that_is_full_is_an_error_of_the_call() {
    let client = FakeClient::new(FakeOptions {
        memory_bytes: 20,
        ..FakeOptions::default()
    });
    let on = tiled(&client, &[0, 1], &[2, 1]);
    let make = || {
        let buffers = [buffer(&[1.0]), buffer(&[2.0])];
        client.make_arrays_from_host_buffer_shards(vec![shards(spec(&[2, 1], &on), buffers)])
    };
    let first = make().unwrap();
    let second = make().unwrap();
    let full = make().unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted);
    first[0].delete().detach();
    assert!(make().is_ok(), "deletion makes room at once");
    drop(second);
}
