//! One host buffer in, one host buffer out.

use std::sync::Arc;

use bytes::Bytes;
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::user_context::{self, UserContext};
use ifrt::{
    ArrayRef, Client, Code, DType, HostBuffer, HostData, Layout, MemoryKind, Result, Sharding,
    ShardingKind, ShardingRef, Status,
};

use crate::support::*;

#[derive(Debug)]
struct Numbered(u64);

impl UserContext for Numbered {
    fn id(&self) -> u64 {
        self.0
    }

    fn debug_string(&self) -> String {
        format!("TestUserContext({})", self.0)
    }
}

fn kinds() -> [MemoryKind; 3] {
    ["device", "pinned_host", "unpinned_host"].map(MemoryKind::new)
}

fn in_memory(client: &FakeClient, kind: MemoryKind) -> ShardingRef {
    Sharding::single_device(Arc::clone(&client.devices()[0]), kind)
}

fn put(client: &FakeClient, buffer: HostBuffer<'_>, on: &ShardingRef) -> Result<ArrayRef> {
    client.make_array_from_host_buffer(buffer, Arc::clone(on), None)
}

fn get(array: &ArrayRef, strides: Option<&[i64]>) -> Result<Bytes> {
    wait(&array.copy_to_host(strides))?.into_bytes()
}

#[test]
fn arr_01_an_array_is_what_it_was_made_as() {
    let client = client();
    let scope = user_context::scope(Some(Arc::new(Numbered(100))));
    let on = single(&client, 0);
    let made = array(&client, &[2, 3], &on);
    drop(scope);
    assert_eq!((made.dtype(), made.shape()), (DType::F32, &shape(&[2, 3])));
    assert!(Arc::ptr_eq(made.sharding(), &on), "the very object");
    assert_eq!(made.user_context().map(|context| context.id()), Some(100));
    assert_eq!(made.byte_size(), Ok(Some(24)));
    assert_eq!(made.layout(), Ok(None));
    let owner: Arc<dyn Client> = made.client();
    assert!(std::ptr::addr_eq(Arc::as_ptr(&owner), Arc::as_ptr(&client)));
}

#[test]
fn arr_02_a_given_layout_is_kept() {
    let client = client();
    let on = single(&client, 0);
    let (device, kind) = (&client.devices()[0], MemoryKind::default());
    let layout = client
        .default_layout(DType::F32, &shape(&[2, 3]), device, &kind)
        .unwrap();
    let data = bytes_of(&[0.0; 6]);
    let buffer = || HostBuffer::dense(HostData::Borrowed(&data), DType::F32, shape(&[2, 3]));
    let made = client
        .make_array_from_host_buffer(buffer(), Arc::clone(&on), Some(layout.clone()))
        .unwrap();
    assert_eq!(made.layout(), Ok(Some(layout)));
    let wrong = Layout::descending(3);
    let refused = client.make_array_from_host_buffer(buffer(), on, Some(wrong));
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn arr_03_devices_that_are_out_of_reach() {
    let client = FakeClient::new(FakeOptions::fixture(2, 1));
    let even = |position: [usize; 2]| {
        let kind = ShardingKind::ConcreteEven {
            shape: shape(&[2, 3]),
            shard_shape: shape(&[2, 3]),
            is_fully_replicated: true,
        };
        let devices = devices(&client, &position);
        Arc::new(Sharding::new(kind, devices, MemoryKind::default()).unwrap())
    };
    let on = even([1, 0]);
    let made = array(&client, &[2, 3], &on);
    assert!(Arc::ptr_eq(made.sharding(), &on));
    assert_eq!(wait(&made.ready()), Ok(()));
    assert_eq!(read(&made).unwrap().len(), 6, "the addressable replica");
    assert_eq!(client.live_buffers(), 1);
    let data = bytes_of(&[0.0; 6]);
    let buffer = HostBuffer::dense(HostData::Borrowed(&data), DType::F32, shape(&[2, 3]));
    let unreachable = put(&client, buffer, &even([1, 1]));
    assert_eq!(unreachable.unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn arr_06_07_borrowed_memory_is_free_after_the_call() {
    let client = client();
    let mut data = bytes_of(&[1.0, 2.0]).to_vec();
    let buffer = HostBuffer::dense(HostData::Borrowed(&data), DType::F32, shape(&[2]));
    let made = put(&client, buffer, &single(&client, 0)).unwrap();
    data.fill(0);
    assert_eq!(read(&made).unwrap(), [1.0, 2.0]);
}

#[test]
fn arr_08_09_23_every_memory() {
    let client = client();
    for kind in kinds() {
        let on = in_memory(&client, kind.clone());
        let made = array(&client, &[2, 3], &on);
        assert_eq!(wait(&made.ready()), Ok(()));
        assert_eq!(made.sharding().memory_kind(), &kind);
        assert_eq!(read(&made).unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }
    let data = bytes_of(&[0.0]);
    let buffer = HostBuffer::dense(HostData::Borrowed(&data), DType::F32, shape(&[]));
    let unknown = put(
        &client,
        buffer,
        &in_memory(&client, MemoryKind::new("hbm2")),
    )
    .unwrap_err();
    assert_eq!(unknown.code(), Code::InvalidArgument);
    assert!(
        unknown.message().contains("Got memory kind: hbm2"),
        "{unknown}"
    );
}

#[test]
fn every_dtype_comes_back_as_it_went_in() {
    let client = client();
    let on = single(&client, 0);
    for &dtype in DType::ALL {
        let Some(item) = dtype.host_byte_size() else {
            continue;
        };
        for dims in [&[][..], &[5], &[2, 3], &[0], &[3, 0, 2]] {
            let shape = shape(dims);
            let count = usize::try_from(shape.num_elements()).unwrap();
            // Small enough for every type: one bit, and no sign to extend.
            let bits = if dtype == DType::S1 { 0 } else { 1 };
            let data: Bytes = [0, bits].into_iter().cycle().take(count * item).collect();
            for host in [HostData::Borrowed(&data), HostData::Shared(data.clone())] {
                let buffer = HostBuffer::dense(host, dtype, shape.clone());
                let made = put(&client, buffer, &on).unwrap();
                assert_eq!(get(&made, None), Ok(data.clone()), "{dtype} {dims:?}");
                let bits = dtype.bit_size().unwrap() * count;
                assert_eq!(
                    made.byte_size(),
                    Ok(Some(bits.div_ceil(8) as u64)),
                    "{dtype}"
                );
            }
        }
    }
}

#[test]
fn arr_24_types_below_a_byte() {
    let client = client();
    let on = replicated(&client, &[0, 1, 2, 3]);
    for (dtype, input, output) in [
        (DType::S4, [1, 2, 3, 4], [1, 2, 3, 4]),
        (DType::S4, [0x0f, 0xf1, 8, 7], [0xff, 1, 0xf8, 7]),
        (DType::U4, [0x0f, 0xf1, 8, 7], [15, 1, 8, 7]),
        (DType::S2, [3, 2, 1, 0], [0xff, 0xfe, 1, 0]),
    ] {
        let buffer = HostBuffer::dense(HostData::Borrowed(&input), dtype, shape(&[2, 2]));
        let made = put(&client, buffer, &on).unwrap();
        assert_eq!(get(&made, None).unwrap(), output[..], "{dtype}");
    }
}

#[test]
fn arr_10_11_input_strides() {
    let client = client();
    for kind in kinds() {
        let data = bytes_of(&[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        let buffer = HostBuffer {
            byte_strides: Some([4, 8].into()),
            ..HostBuffer::dense(HostData::Borrowed(&data), DType::F32, shape(&[2, 3]))
        };
        let made = put(&client, buffer, &in_memory(&client, kind.clone())).unwrap();
        assert_eq!(read(&made).unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);

        let gaps = [0, 0xff, 1, 0xff, 2, 0xff, 3, 0xff];
        let buffer = HostBuffer {
            byte_strides: Some([2, 4].into()),
            ..HostBuffer::dense(HostData::Borrowed(&gaps), DType::S8, shape(&[2, 2]))
        };
        let all = replicated(&client, &[0, 1, 2, 3]);
        let all = all.with_device_assignment(None, Some(kind)).unwrap();
        let made = put(&client, buffer, &all).unwrap();
        assert_eq!(get(&made, None).unwrap(), [0, 2, 1, 3][..]);
    }
}

#[test]
fn negative_zero_and_repeated_strides() {
    let client = client();
    let data: Vec<u8> = (0..12).collect();
    for (dims, strides, offset, expected) in [
        (&[4][..], &[-1][..], 3, &[3, 2, 1, 0][..]),
        (&[2, 3], &[-6, 2], 6, &[6, 8, 10, 0, 2, 4]),
        (&[2, 2], &[-4, -2], 11, &[11, 9, 7, 5]),
        (&[3, 2], &[0, 1], 5, &[5, 6, 5, 6, 5, 6]),
        (&[1, 3], &[999, 1], 2, &[2, 3, 4]),
        (&[0, 3], &[7, 7], 12, &[]),
    ] {
        let buffer = HostBuffer {
            data: HostData::Shared(Bytes::copy_from_slice(&data)),
            dtype: DType::U8,
            shape: shape(dims),
            byte_strides: Some(strides.into()),
            offset_bytes: offset,
        };
        let made = put(&client, buffer, &single(&client, 0)).unwrap();
        assert_eq!(get(&made, None).unwrap(), expected, "{dims:?} {strides:?}");
    }
}

#[test]
fn arr_13_output_strides() {
    let client = client();
    let made = array(&client, &[2, 3], &single(&client, 0));
    let columns = get(&made, Some(&[4, 8])).unwrap();
    assert_eq!(floats_of(&columns), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    let rows = get(&made, Some(&[12, 4])).unwrap();
    assert_eq!(floats_of(&rows), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    for (strides, code) in [
        (&[16, 4][..], Code::Unimplemented),
        (&[4, 4], Code::Unimplemented),
        (&[-12, 4], Code::Unimplemented),
        (&[12, 0], Code::Unimplemented),
        (&[4], Code::InvalidArgument),
        (&[12, 4, 4], Code::InvalidArgument),
    ] {
        let refused = get(&made, Some(strides)).unwrap_err();
        assert_eq!(refused.code(), code, "{strides:?}");
    }
    let ones = array(&client, &[1, 3, 1], &single(&client, 0));
    let any = get(&ones, Some(&[-77, 4, 0])).unwrap();
    assert_eq!(
        floats_of(&any),
        [0.0, 1.0, 2.0],
        "a dimension of one has no stride"
    );
}

#[test]
fn buffers_that_do_not_hold_the_array() {
    let client = client();
    let data = [0_u8; 8];
    let dense =
        |dtype, dims: &[i64]| HostBuffer::dense(HostData::Borrowed(&data), dtype, shape(dims));
    let strided = |strides: &[i64]| HostBuffer {
        byte_strides: Some(strides.into()),
        ..dense(DType::U8, &[2, 2])
    };
    for buffer in [
        dense(DType::F32, &[3]),
        dense(DType::U8, &[i64::MAX]),
        dense(DType::Opaque, &[]),
        dense(DType::String, &[8]),
        dense(DType::Token, &[1]),
        strided(&[8, 1]),
        strided(&[-1, 1]),
        strided(&[1]),
        strided(&[i64::MIN, i64::MAX]),
    ] {
        let text = format!("{buffer:?}");
        let refused = put(&client, buffer, &single(&client, 0)).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{text}");
    }
    assert_eq!(client.live_buffers(), 0);
}

#[test]
fn a_huge_array_of_one_repeated_element_is_refused_and_not_allocated() {
    let client = client();
    for (dims, strides) in [(vec![1 << 40], vec![0]), (vec![1 << 62], vec![0])] {
        let buffer = HostBuffer {
            data: HostData::Borrowed(&[1]),
            dtype: DType::U8,
            shape: shape(&dims),
            byte_strides: Some(strides.into()),
            offset_bytes: 0,
        };
        let refused = put(&client, buffer, &single(&client, 0)).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(
            refused.message().starts_with("Out of memory allocating"),
            "{refused}"
        );
    }
}

#[test]
fn arr_12_a_replicated_array_has_one_shard_per_device() {
    let client = client();
    let order = [2, 0, 3, 1];
    let made = array(&client, &[2], &replicated(&client, &order));
    let pieces = made
        .disassemble(
            ifrt::ArrayCopySemantics::ReuseInput,
            ifrt::ShardSemantics::Addressable,
        )
        .unwrap();
    assert_eq!(pieces.len(), 4);
    for (piece, position) in pieces.iter().zip(order) {
        assert_eq!(piece.sharding().devices(), &devices(&client, &[position]));
        assert_eq!(read(piece).unwrap(), [0.0, 1.0]);
    }
}

#[test]
fn one_buffer_does_not_make_a_split_array() {
    let client = client();
    let data = bytes_of(&[0.0; 4]);
    let even = ShardingKind::ConcreteEven {
        shape: shape(&[4]),
        shard_shape: shape(&[2]),
        is_fully_replicated: true,
    };
    let lying = Sharding::new(even, devices(&client, &[0, 1]), MemoryKind::default());
    let manual = hlo(ifrt::xla::HloSharding::Manual, devices(&client, &[0, 1]));
    for sharding in [
        tiled(&client, &[0, 1], &[2]),
        Arc::new(lying.unwrap()),
        manual,
    ] {
        let buffer = HostBuffer::dense(HostData::Borrowed(&data), DType::F32, shape(&[4]));
        let refused = put(&client, buffer, &sharding).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{sharding:?}");
    }
    let manual = hlo(ifrt::xla::HloSharding::Manual, devices(&client, &[0]));
    let buffer = HostBuffer::dense(HostData::Borrowed(&data), DType::F32, shape(&[4]));
    assert!(
        put(&client, buffer, &manual).is_ok(),
        "one device has the whole"
    );
}

#[test]
fn devices_and_arrays_of_another_client_are_refused() {
    let (client, other) = (client(), client());
    let foreign = array(&other, &[4], &single(&other, 0));
    let data = bytes_of(&[0.0; 4]);
    let buffer = HostBuffer::dense(HostData::Borrowed(&data), DType::F32, shape(&[4]));
    let misplaced = put(&client, buffer, &single(&other, 0)).unwrap_err();
    assert_eq!(misplaced.code(), Code::InvalidArgument);
    let copy = ifrt::ArrayCopySemantics::AlwaysCopy;
    let copied = client
        .copy_arrays(&[foreign], None, None, copy)
        .unwrap_err();
    assert_eq!(
        copied,
        Status::invalid_argument("the array belongs to another client")
    );
}

#[test]
fn only_whole_arrays_are_read() {
    let client = client();
    let split = array(&client, &[4], &tiled(&client, &[0, 1], &[2]));
    assert_eq!(read(&split).unwrap_err().code(), Code::InvalidArgument);
    let copy = ifrt::ArrayCopySemantics::ReuseInput;
    let no_replica = split.fully_replicated_shard(copy).unwrap_err();
    assert_eq!(no_replica.code(), Code::InvalidArgument);
    let whole = array(&client, &[4], &replicated(&client, &[3, 1]));
    let shard = whole.fully_replicated_shard(copy).unwrap();
    assert_eq!(shard.sharding().devices(), &devices(&client, &[3]));
    assert_eq!(read(&shard).unwrap(), [0.0, 1.0, 2.0, 3.0]);
}
