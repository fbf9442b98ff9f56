//! Copies: who shares with whom, who survives.

use std::sync::Arc;

use ifrt::ArrayCopySemantics::{self, AlwaysCopy, DonateInput, ReuseInput};
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::{
    ArrayRef, Client, Code, DType, DeviceList, HostBuffer, HostData, Layout, MemoryKind, Result,
    Sharding, ShardingKind,
};

use crate::support::*;

const KINDS: [&str; 3] = ["device", "pinned_host", "unpinned_host"];

fn copy(
    client: &FakeClient,
    array: &ArrayRef,
    to: Option<DeviceList>,
    kind: Option<&str>,
    semantics: ArrayCopySemantics,
) -> Result<ArrayRef> {
    let kind = kind.map(MemoryKind::new);
    let copies = client.copy_arrays(&[Arc::clone(array)], to, kind, semantics);
    copies.map(|mut copies| copies.remove(0))
}

/// How many buffers of the one are buffers of the other.
fn shared(client: &FakeClient, one: &ArrayRef, other: &ArrayRef) -> usize {
    let others = client.buffers_of(other).unwrap();
    let own = client.buffers_of(one).unwrap();
    own.iter().filter(|buffer| others.contains(buffer)).count()
}

#[test]
fn arr_32_the_matrix_of_copy_semantics_in_place() {
    let client = client();
    let on = replicated(&client, &[0, 1]);
    for (semantics, sharing, survives) in [
        (AlwaysCopy, 0, true),
        (ReuseInput, 2, true),
        (DonateInput, 0, false),
    ] {
        let source = array(&client, &[2, 3], &on);
        let copied = copy(&client, &source, None, None, semantics).unwrap();
        assert_eq!(shared(&client, &source, &copied), sharing, "{semantics:?}");
        assert_eq!(source.is_deleted(), !survives, "{semantics:?}");
        assert_eq!(**copied.sharding(), *on, "{semantics:?}");
        let buffers = if semantics == AlwaysCopy { 4 } else { 2 };
        assert_eq!(client.live_buffers(), buffers, "{semantics:?}");
        assert_eq!(read(&copied).unwrap().len(), 6);
        // Deleting the source: only what is shared dies with it.
        source.delete().detach();
        assert_eq!(
            copied.is_deleted(),
            semantics == ReuseInput,
            "{semantics:?}"
        );
        drop((source, copied));
        assert_eq!(client.live_buffers(), 0);
    }
}

#[test]
fn arr_45_copies_are_decided_shard_by_shard() {
    let client = client();
    let dims = [4, 1];
    for (semantics, sharing) in [(AlwaysCopy, 0), (ReuseInput, 2), (DonateInput, 0)] {
        let source = array(&client, &dims, &tiled(&client, &[0, 1, 2, 3], &[4, 1]));
        let to = devices(&client, &[0, 2, 1, 3]);
        let copied = copy(&client, &source, Some(to.clone()), None, semantics).unwrap();
        assert_eq!(copied.sharding().devices(), &to);
        assert_eq!(shared(&client, &source, &copied), sharing, "{semantics:?}");
        assert_eq!(source.is_deleted(), semantics == DonateInput);
        assert_eq!(read_shards(&copied).unwrap(), [[0.0], [1.0], [2.0], [3.0]]);
        if semantics != DonateInput {
            assert_eq!(read_shards(&source).unwrap(), [[0.0], [1.0], [2.0], [3.0]]);
        }
    }
}

#[test]
fn arr_42_every_memory_to_every_device_and_memory() {
    let client = client();
    for from in KINDS {
        let on = single(&client, 0);
        let on = on
            .with_device_assignment(None, Some(MemoryKind::new(from)))
            .unwrap();
        let source = array(&client, &[2, 3], &on);
        for position in 0..4 {
            for to in KINDS {
                let device = devices(&client, &[position]);
                let copied =
                    copy(&client, &source, Some(device.clone()), Some(to), AlwaysCopy).unwrap();
                assert_eq!(copied.sharding().devices(), &device);
                assert_eq!(copied.sharding().memory_kind(), &MemoryKind::new(to));
                assert_eq!(read(&copied).unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
            }
        }
    }
}

#[test]
fn arr_43_types_below_a_byte_are_copied() {
    let client = client();
    let data = [1, 2, 3, 4, 5, 6];
    let buffer = HostBuffer::dense(HostData::Borrowed(&data), DType::S4, shape(&[2, 3]));
    let source = client
        .make_array_from_host_buffer(buffer, single(&client, 0), None)
        .unwrap();
    let to = devices(&client, &[1]);
    let copied = copy(&client, &source, Some(to), Some("pinned_host"), AlwaysCopy).unwrap();
    let bytes = wait(&copied.copy_to_host(None))
        .unwrap()
        .into_bytes()
        .unwrap();
    assert_eq!(bytes, data[..]);
    assert_eq!(copied.byte_size(), Ok(Some(3)));
}

#[test]
fn donation_into_another_memory_is_refused_and_harmless() {
    let client = client();
    let source = array(&client, &[2], &single(&client, 0));
    let refused = copy(&client, &source, None, Some("pinned_host"), DonateInput).unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert_eq!(read(&source).unwrap(), [0.0, 1.0]);
}

#[test]
fn arr_34_several_arrays_to_the_reversed_devices() {
    let client = client();
    let from = devices(&client, &[0, 1]);
    let to = devices(&client, &[1, 0]);
    let even = ShardingKind::ConcreteEven {
        shape: shape(&[2, 3]),
        shard_shape: shape(&[2, 3]),
        is_fully_replicated: true,
    };
    let even = Sharding::new(even, from, MemoryKind::default()).unwrap();
    let sources = [
        array(&client, &[2, 3], &Arc::new(even)),
        array(&client, &[4], &tiled(&client, &[0, 1], &[2])),
    ];
    let copies = client
        .copy_arrays(&sources, Some(to.clone()), None, AlwaysCopy)
        .unwrap();
    for (copied, source) in copies.iter().zip(&sources) {
        let expected = source
            .sharding()
            .with_device_assignment(Some(to.clone()), None)
            .unwrap();
        assert_eq!(*copied.sharding(), expected);
        assert_eq!(read_shards(copied).unwrap(), read_shards(source).unwrap());
    }
}

#[test]
fn arr_35_36_batches_have_one_place() {
    let client = client();
    let here = array(&client, &[2], &single(&client, 0));
    let there = array(&client, &[2], &single(&client, 1));
    let pinned = copy(&client, &here, None, Some("pinned_host"), AlwaysCopy).unwrap();
    for other in [there, pinned] {
        let refused = client.copy_arrays(&[Arc::clone(&here), other], None, None, ReuseInput);
        assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    }
    assert!(
        client
            .copy_arrays(&[], None, None, ReuseInput)
            .unwrap()
            .is_empty()
    );
    let two = Some(devices(&client, &[0, 1]));
    let count = copy(&client, &here, two, None, AlwaysCopy).unwrap_err();
    assert_eq!(count.code(), Code::InvalidArgument);
    let unknown = copy(&client, &here, None, Some("hbm2"), AlwaysCopy).unwrap_err();
    assert_eq!(unknown.code(), Code::InvalidArgument);
}

#[test]
fn a_layout_stays_with_its_kind_of_memory() {
    let client = client();
    let layout = Layout::parse("{0,1}").unwrap();
    let data = bytes_of(&[0.0; 6]);
    let buffer = HostBuffer::dense(HostData::Borrowed(&data), DType::F32, shape(&[2, 3]));
    let source = client
        .make_array_from_host_buffer(buffer, single(&client, 0), Some(layout.clone()))
        .unwrap();
    let to = devices(&client, &[1]);
    let same = copy(&client, &source, Some(to.clone()), None, AlwaysCopy).unwrap();
    assert_eq!(same.layout(), Ok(Some(layout)));
    let other = copy(&client, &source, Some(to), Some("pinned_host"), AlwaysCopy).unwrap();
    assert_eq!(other.layout(), Ok(None));
}

#[test]
fn data_stays_in_its_process() {
    let client = FakeClient::new(FakeOptions::fixture(3, 2));
    let source = array(&client, &[2], &single(&client, 0));
    let away = copy(
        &client,
        &source,
        Some(devices(&client, &[2])),
        None,
        AlwaysCopy,
    );
    assert_eq!(away.unwrap_err().code(), Code::Unimplemented);
    let partly = array(&client, &[2], &replicated(&client, &[0, 2]));
    let same = copy(
        &client,
        &partly,
        Some(devices(&client, &[1, 2])),
        None,
        AlwaysCopy,
    )
    .unwrap();
    assert_eq!(read(&same).unwrap(), [0.0, 1.0]);
}

#[test]
fn a_batch_with_one_dead_array_changes_nothing() {
    let client = client();
    let on = single(&client, 0);
    let (live, dead) = (array(&client, &[2], &on), array(&client, &[2], &on));
    dead.delete().detach();
    let batch = [Arc::clone(&live), dead];
    let refused = client
        .copy_arrays(&batch, None, None, DonateInput)
        .unwrap_err();
    assert_eq!(
        refused.message(),
        "CopyArrays() called on deleted or donated buffer (array 1)"
    );
    let twice = [Arc::clone(&live), Arc::clone(&live)];
    let refused = client
        .copy_arrays(&twice, None, None, DonateInput)
        .unwrap_err();
    assert!(refused.message().contains("asked to donate"), "{refused}");
    assert_eq!(read(&live).unwrap(), [0.0, 1.0]);
    assert_eq!(
        client
            .copy_arrays(&twice, None, None, ReuseInput)
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn a_thousand_copies_behind_a_gate_do_not_overflow_the_stack() {
    use ifrt::fake::fault::{Fault, Gate, Op, When};
    let (client, gate) = (client(), Gate::new());
    client
        .faults()
        .add(Op::MakeArray, When::Once, Fault::Slow(gate.clone()));
    let mut last = array(&client, &[2], &single(&client, 0));
    for step in 0..20_000 {
        let to = devices(&client, &[step % 2 + 1]);
        last = copy(&client, &last, Some(to), None, AlwaysCopy).unwrap();
    }
    let read = last.copy_to_host(None);
    assert!(!read.is_ready());
    gate.open();
    assert_eq!(
        floats_of(&wait(&read).unwrap().into_bytes().unwrap()),
        [0.0, 1.0]
    );
}
