//! Arrays spread differently.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use ifrt::client::HostShards;
use ifrt::xla::{DeviceOrder, HloSharding, TileAssignment};
use ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, Client, Code, DType, DeviceList, HostBuffer, HostData,
    HostValue, IndexDomain, MemoryKind, ShardSemantics, Sharding, ShardingKind, ShardingRef,
    Status,
};
use ifrt_pjrt::PjrtClient;
use proptest::prelude::*;

use crate::support::*;

use ArrayCopySemantics::{AlwaysCopy, DonateInput, ReuseInput};

fn devices(client: &PjrtClient, positions: &[usize]) -> DeviceList {
    let devices = client.devices();
    positions
        .iter()
        .map(|position| Arc::clone(&devices[*position]))
        .collect()
}

fn hlo(client: &PjrtClient, hlo: HloSharding, positions: &[usize]) -> ShardingRef {
    Sharding::hlo(hlo, devices(client, positions), MemoryKind::default()).unwrap()
}

fn tiled(client: &PjrtClient, tiles: &[i64], positions: &[usize]) -> ShardingRef {
    hlo(client, HloSharding::tile(tiles).unwrap(), positions)
}

fn spec(dtype: DType, dims: &[i64], sharding: &ShardingRef) -> ArraySpec {
    ArraySpec {
        dtype,
        shape: shape(dims),
        sharding: Arc::clone(sharding),
        layout: None,
    }
}

fn reshard(
    client: &PjrtClient,
    array: &ArrayRef,
    spec: ArraySpec,
    copy: ArrayCopySemantics,
) -> ifrt::Result<ArrayRef> {
    let made = client.reshard_arrays(&[Arc::clone(array)], &[spec], copy)?;
    assert_eq!(made.len(), 1);
    Ok(made.into_iter().next().unwrap())
}

/// The elements that each shard of a `u8` array of numbered elements should have.
fn expected(sharding: &Sharding, dims: &[i64]) -> Vec<Vec<u8>> {
    let domains = sharding.index_domains(&shape(dims), ShardSemantics::All);
    let cut = |domain: &IndexDomain| {
        let count = domain.shape().num_elements();
        let element = |mut number: i64| {
            let (mut place, mut step) = (0, 1);
            for (dim, whole) in dims.iter().enumerate().rev() {
                let extent = domain.shape().dims()[dim];
                place += (domain.origin()[dim] + number % extent) * step;
                number /= extent;
                step *= whole;
            }
            u8::try_from(place % 16).unwrap()
        };
        (0..count).map(element).collect()
    };
    domains.unwrap().iter().map(cut).collect()
}

fn shards(array: &ArrayRef) -> Vec<Vec<u8>> {
    let shards = array.disassemble(ReuseInput, ShardSemantics::All).unwrap();
    shards.iter().map(|one| fetch_bytes(one).unwrap()).collect()
}

/// An array of numbered elements, made shard by shard.
fn numbered(client: &PjrtClient, dtype: DType, dims: &[i64], sharding: &ShardingRef) -> ArrayRef {
    let contents = expected(sharding, dims);
    let shapes = sharding
        .shard_shapes(&shape(dims), ShardSemantics::All)
        .unwrap();
    let buffers = contents.iter().zip(shapes).enumerate();
    let buffers = buffers
        .map(|(number, (bytes, shape))| {
            let data = HostData::Borrowed(bytes);
            (vec![number], HostBuffer::dense(data, dtype, shape))
        })
        .collect();
    let spec = spec(dtype, dims, sharding);
    let made = client.make_arrays_from_host_buffer_shards(vec![HostShards { spec, buffers }]);
    made.unwrap().remove(0)
}

#[test]
fn sources_that_are_not_ready_are_waited_for_by_nobody() {
    let client = client(4);
    let f = compile(&client, &slow(2000));
    let x = put(&client, &[64, 64], &vec![0.01; 4096]);
    let y = run(&f, &[&x]).unwrap().remove(0);
    let read = y.copy_to_host(None);
    let sharding = tiled(&client, &[2, 2], &[3, 1, 0, 2]);
    let z = reshard(
        &client,
        &y,
        spec(DType::F32, &[64, 64], &sharding),
        DonateInput,
    )
    .unwrap();
    assert!(y.is_deleted(), "a donated source is consumed at once");
    // What is promised can be read, used and resharded like what is there.
    let back = tiled(&client, &[1, 1], &[1]);
    let back = reshard(&client, &z, spec(DType::F32, &[64, 64], &back), ReuseInput).unwrap();
    let quarter = z
        .disassemble(ReuseInput, ShardSemantics::All)
        .unwrap()
        .remove(2);
    let before = read.peek();
    let ready = z.ready();
    assert!(
        before.is_some() || ready.peek().is_none(),
        "not before the source"
    );
    assert_eq!(wait(ready), Ok(()));
    let bytes = wait(read).unwrap().into_bytes().unwrap();
    let whole = floats_of(&bytes);
    assert_eq!(fetch(&back), whole);
    let rows = whole.chunks(64).skip(32);
    let expected: Vec<f32> = rows.flat_map(|row| &row[..32]).copied().collect();
    assert_eq!(fetch(&quarter), expected, "the third quarter");
    let gone = client.gone();
    drop((f, x, y, z, back, quarter, client));
    assert_eq!(wait(gone), Ok(()));
}

#[test]
fn what_was_promised_may_be_deleted_before_it_comes() {
    let client = client(2);
    let f = compile(&client, &slow(500));
    let x = put(&client, &[64, 64], &vec![0.01; 4096]);
    let y = run(&f, &[&x]).unwrap().remove(0);
    let sharding = tiled(&client, &[1, 2], &[0, 1]);
    let z = reshard(
        &client,
        &y,
        spec(DType::F32, &[64, 64], &sharding),
        ReuseInput,
    )
    .unwrap();
    assert_eq!(wait(z.delete()), Ok(()));
    assert!(z.is_deleted());
    assert_eq!(wait(y.ready()), Ok(()));
    // Everything that was made on the way is freed.
    let gone = client.gone();
    drop((f, x, y, z, client));
    assert_eq!(wait(gone), Ok(()));
}

#[test]
fn errors_come_along() {
    let client = client(4);
    let error = Status::unavailable("injected error");
    let from = tiled(&client, &[4], &[0, 1, 2, 3]);
    let made = client.make_error_arrays(error.clone(), &[spec(DType::F32, &[8], &from)]);
    let bad = made.unwrap().remove(0);
    for to in [
        tiled(&client, &[2], &[0, 1]),
        tiled(&client, &[4], &[3, 2, 1, 0]),
        hlo(&client, HloSharding::Replicated, &[2, 3]),
    ] {
        let made = reshard(&client, &bad, spec(DType::F32, &[8], &to), ReuseInput).unwrap();
        let result = wait(made.ready()).unwrap_err();
        assert_eq!(result.code(), error.code());
        assert!(result.message().contains("injected error"), "{result}");
    }
}

#[test]
fn strings_are_cut_as_well() {
    let client = client(4);
    let strings: Arc<[Bytes]> = (0..6).map(|n| format!("s{n}").into()).collect();
    let whole = hlo(&client, HloSharding::Replicated, &[0]);
    let data = HostData::Strings(strings);
    let host = HostBuffer::dense(data, DType::String, shape(&[2, 3]));
    let source = client
        .make_array_from_host_buffer(host, whole, None)
        .unwrap();
    let to = tiled(&client, &[2, 1], &[2, 3]);
    let made = reshard(
        &client,
        &source,
        spec(DType::String, &[2, 3], &to),
        DonateInput,
    )
    .unwrap();
    assert!(source.is_deleted());
    let parts = made.disassemble(ReuseInput, ShardSemantics::All).unwrap();
    for (part, expected) in parts.iter().zip([["s0", "s1", "s2"], ["s3", "s4", "s5"]]) {
        assert_eq!(part.shape().dims(), [1, 3]);
        let HostValue::Strings(strings) = wait(part.copy_to_host(None)).unwrap() else {
            panic!("strings are read as strings");
        };
        assert_eq!(&*strings, &expected);
    }
}

#[test]
fn shards_in_place_are_shared_unless_they_have_to_be_copied() {
    let client = client(2);
    let from = tiled(&client, &[2], &[0, 1]);
    let x = numbered(&client, DType::U8, &[4], &from);
    let made = client.buffer_counts().made;
    let shared = reshard(&client, &x, spec(DType::U8, &[4], &from), ReuseInput).unwrap();
    assert_eq!(client.buffer_counts().made, made);
    let copied = reshard(&client, &x, spec(DType::U8, &[4], &from), AlwaysCopy).unwrap();
    assert_eq!(client.buffer_counts().made, made + 2);
    wait(x.delete()).unwrap();
    assert!(shared.is_deleted() && !copied.is_deleted());
    assert_eq!(shards(&copied), expected(&from, &[4]));
}

#[test]
fn what_cannot_be_resharded_is_refused_and_stays() {
    let client = client(2);
    let both = devices(&client, &[0, 1]);
    let from = tiled(&client, &[2], &[0, 1]);
    let x = numbered(&client, DType::U8, &[4], &from);
    let concrete = |starts: [i64; 2]| {
        let part = shape(&[2]);
        let kind = ShardingKind::Concrete {
            shape: shape(&[4]),
            shard_shapes: vec![part.clone(); 2],
            index_domains: Some(
                starts
                    .map(|start| IndexDomain::new([start], part.clone()))
                    .to_vec(),
            ),
        };
        Arc::new(Sharding::new(kind, both.clone(), MemoryKind::default()).unwrap())
    };
    let opaque = ShardingKind::opaque();
    let opaque = Arc::new(Sharding::new(opaque, both.clone(), MemoryKind::default()).unwrap());
    let refused = |array: &ArrayRef, spec: ArraySpec, text: &str| {
        let error = reshard(&client, array, spec, DonateInput).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.message().contains(text), "{error}");
        assert!(!array.is_deleted(), "{error}");
    };
    refused(&x, spec(DType::S8, &[4], &from), "cannot make");
    refused(&x, spec(DType::U8, &[2, 2], &from), "cannot make");
    refused(&x, spec(DType::U8, &[4], &opaque), "index domain");
    let whole = hlo(&client, HloSharding::Replicated, &[0, 1]);
    // Concrete shardings that do not tile: made by someone who wrote down other domains.
    let pieces = x.disassemble(ReuseInput, ShardSemantics::All).unwrap();
    let assemble = |sharding: &Arc<Sharding>| {
        let (dims, sharding) = (shape(&[4]), Arc::clone(sharding));
        let all = ShardSemantics::All;
        client.assemble_array(DType::U8, dims, sharding, &pieces, ReuseInput, all)
    };
    for starts in [[0, 1], [1, 2]] {
        let odd = assemble(&concrete(starts)).unwrap();
        refused(&odd, spec(DType::U8, &[4], &whole), "leave gaps");
    }
    let swapped = assemble(&concrete([2, 0])).unwrap();
    let made = reshard(&client, &swapped, spec(DType::U8, &[4], &whole), ReuseInput).unwrap();
    assert_eq!(shards(&made), [[2, 3, 0, 1]; 2]);
    let counts = client.reshard_arrays(&[Arc::clone(&x)], &[], DonateInput);
    assert_eq!(counts.unwrap_err().code(), Code::InvalidArgument);
    wait(x.delete()).unwrap();
    let error = reshard(&client, &x, spec(DType::U8, &[4], &whole), ReuseInput).unwrap_err();
    assert!(error.message().contains("deleted"), "{error}");
}

/// Tiles, copies and a permutation of the devices.
fn spread(rank: usize) -> impl Strategy<Value = (TileAssignment, Vec<usize>)> {
    (prop::collection::vec(1..4_i64, rank), 1..3_i64)
        .prop_filter("eight devices", |(tiles, copies)| {
            tiles.iter().product::<i64>() * copies <= 8
        })
        .prop_flat_map(|(mut dims, copies)| {
            dims.push(copies);
            let count = dims.iter().product();
            let order = DeviceOrder::Explicit((0..count).collect());
            let tiles = TileAssignment::new(dims, order, vec![], true).unwrap();
            let positions: Vec<usize> = (0..8).collect();
            (Just(tiles), Just(positions).prop_shuffle())
        })
        .prop_map(|(tiles, mut positions)| {
            positions.truncate(usize::try_from(tiles.num_devices()).unwrap());
            (tiles, positions)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_element_arrives(
        (dims, from, to) in (0..4_usize).prop_flat_map(|rank| {
            (prop::collection::vec(0..7_i64, rank), spread(rank), spread(rank))
        }),
        dtype in prop_oneof![Just(DType::U8), Just(DType::U4), Just(DType::F8E5M2)],
        copy in prop_oneof![Just(AlwaysCopy), Just(ReuseInput), Just(DonateInput)],
    ) {
        static CLIENT: LazyLock<Arc<PjrtClient>> = LazyLock::new(|| client(8));
        let sharding = |(tiles, positions): (TileAssignment, Vec<usize>)| {
            hlo(&CLIENT, HloSharding::Tiled(tiles), &positions)
        };
        let (from, to) = (sharding(from), sharding(to));
        let x = numbered(&CLIENT, dtype, &dims, &from);
        let y = reshard(&CLIENT, &x, spec(dtype, &dims, &to), copy).unwrap();
        prop_assert_eq!(y.sharding(), &to);
        prop_assert_eq!(shards(&y), expected(&to, &dims));
        prop_assert_eq!(x.is_deleted(), copy == DonateInput);
        if copy != DonateInput {
            prop_assert_eq!(shards(&x), expected(&from, &dims));
        }
    }
}
