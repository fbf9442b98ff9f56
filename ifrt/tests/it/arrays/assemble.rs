//! Assembling arrays and taking them apart.

use std::sync::Arc;

use ifrt::ArrayCopySemantics::{AlwaysCopy, DonateInput, ReuseInput};
use ifrt::ShardSemantics::{Addressable, All};
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::{
    ArrayRef, Client, Code, DType, DeviceList, MemoryKind, Result, ShardSemantics, Sharding,
    ShardingKind, ShardingRef,
};

use crate::support::*;

fn assemble(
    client: &FakeClient,
    dims: &[i64],
    sharding: &ShardingRef,
    pieces: &[ArrayRef],
    shards: ShardSemantics,
) -> Result<ArrayRef> {
    let sharding = Arc::clone(sharding);
    client.assemble_array(
        DType::F32,
        shape(dims),
        sharding,
        pieces,
        AlwaysCopy,
        shards,
    )
}

fn sharding(kind: ShardingKind, devices: DeviceList) -> ShardingRef {
    Arc::new(Sharding::new(kind, devices, MemoryKind::default()).unwrap())
}

fn even(dims: &[i64], shard: &[i64], devices: DeviceList) -> ShardingRef {
    let kind = ShardingKind::ConcreteEven {
        shape: shape(dims),
        shard_shape: shape(shard),
        is_fully_replicated: false,
    };
    sharding(kind, devices)
}

fn pieces(client: &FakeClient, dims: &[i64]) -> [ArrayRef; 2] {
    let low = array(client, dims, &single(client, 0));
    let high = array(client, dims, &single(client, 1));
    [low, high]
}

#[test]
fn arr_28_31_assembled_arrays_share_their_buffers() {
    let client = client();
    let both = devices(&client, &[0, 1]);
    for on in [
        sharding(ShardingKind::opaque(), both.clone()),
        even(&[4, 3], &[2, 3], both.clone()),
        tiled(&client, &[0, 1], &[2, 1]),
        hlo(ifrt::xla::HloSharding::Manual, both),
    ] {
        let pieces = pieces(&client, &[2, 3]);
        let whole = assemble(&client, &[4, 3], &on, &pieces, Addressable).unwrap();
        assert_eq!(whole.shape(), &shape(&[4, 3]));
        assert!(Arc::ptr_eq(whole.sharding(), &on));
        assert_eq!(client.live_buffers(), 2, "nothing is copied");
        let again = whole.disassemble(DonateInput, All).unwrap();
        assert!(!whole.is_deleted(), "taking apart consumes nothing");
        for (piece, source) in again.iter().zip(&pieces) {
            assert_eq!(piece.dtype(), source.dtype());
            assert_eq!(piece.shape(), source.shape());
            assert_eq!(piece.sharding().devices(), source.sharding().devices());
            assert_eq!(read(piece).unwrap(), read(source).unwrap());
        }
        drop(pieces);
        assert_eq!(client.live_buffers(), 2, "the others still hold them");
    }
}

#[test]
fn arr_29_a_single_device_array() {
    let client = client();
    let piece = array(&client, &[2, 3], &single(&client, 0));
    let on = Arc::clone(piece.sharding());
    let same = assemble(&client, &[2, 3], &on, &[Arc::clone(&piece)], Addressable).unwrap();
    let pieces = same.disassemble(ReuseInput, Addressable).unwrap();
    assert_eq!(pieces.len(), 1);
    assert_eq!(pieces[0].shape(), &shape(&[2, 3]));
    assert_eq!(*pieces[0].sharding(), on);
}

#[test]
fn arr_30_an_array_without_shards_here() {
    let client = FakeClient::new(FakeOptions::fixture(3, 1));
    let away = devices(&client, &[1, 2]);
    let on = even(&[4, 3], &[2, 3], away);
    let whole = assemble(&client, &[4, 3], &on, &[], Addressable).unwrap();
    assert_eq!(wait(&whole.ready()), Ok(()));
    assert!(
        whole
            .disassemble(ReuseInput, Addressable)
            .unwrap()
            .is_empty()
    );
    assert_eq!(whole.byte_size(), Ok(Some(24)), "it is known all the same");
    assert_eq!(read(&whole).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(wait(&whole.delete()), Ok(()));
    assert!(whole.is_deleted());
    assert!(whole.disassemble(ReuseInput, Addressable).is_err());
    let all = assemble(&client, &[4, 3], &on, &[], All).unwrap_err();
    assert_eq!(all.code(), Code::InvalidArgument);
}

#[test]
fn pieces_that_do_not_fit() {
    let client = client();
    let on = tiled(&client, &[0, 1], &[2, 1]);
    let [low, high] = pieces(&client, &[2, 3]);
    let wide = array(&client, &[2, 4], &single(&client, 1));
    let two = array(&client, &[2, 3], &replicated(&client, &[0, 1]));
    let pinned = client
        .copy_arrays(
            &[Arc::clone(&high)],
            None,
            Some(MemoryKind::new("pinned_host")),
            AlwaysCopy,
        )
        .unwrap()
        .remove(0);
    let dead = array(&client, &[2, 3], &single(&client, 1));
    dead.delete().detach();
    for (pieces, text) in [
        (vec![], "over 2 devices cannot be assembled from 0"),
        (vec![&low], "from 1 arrays"),
        (vec![&low, &high, &high], "from 3 arrays"),
        (vec![&high, &low], "must be on device 0"),
        (vec![&low, &low], "must be on device 1"),
        (vec![&low, &wide], "has the shape [2,4]"),
        (vec![&low, &two], "not on a single device"),
        (
            vec![&low, &pinned],
            "in memory FakeMemory(kind=device, device=1)",
        ),
        (vec![&low, &dead], "deleted or donated buffer (array 1)"),
    ] {
        let pieces: Vec<ArrayRef> = pieces.into_iter().cloned().collect();
        let refused = assemble(&client, &[4, 3], &on, &pieces, Addressable).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains(text), "{refused}");
    }
    let pieces = [low, high];
    let on = Arc::clone(&on);
    let dtype = client
        .assemble_array(
            DType::S32,
            shape(&[4, 3]),
            on,
            &pieces,
            ReuseInput,
            Addressable,
        )
        .unwrap_err();
    assert!(dtype.message().contains("of dtype f32"), "{dtype}");
}
