//! Data to devices and back.

use std::sync::{Arc, mpsc};

use bytes::Bytes;
use ifrt::host_buffer::{HostBuffer, HostData};
use ifrt::{ArrayCopySemantics, ArraySpec, ShardSemantics, xla::HloSharding};
use ifrt::{Client, Code, DType, DeviceList, HostShards, Layout, MemoryKind, Sharding};

use crate::support::*;

/// Seven elements, so that types below a byte end within one.
fn elements(dtype: DType) -> Vec<u8> {
    let size = dtype.host_byte_size().unwrap();
    let bits = dtype.bit_size().unwrap();
    let low = |value: u8| {
        if bits < 8 {
            value & ((1 << bits) - 1)
        } else {
            value
        }
    };
    match dtype {
        DType::Pred => vec![1, 0, 1, 1, 0, 0, 1],
        DType::S1 => vec![0, 0xff, 0xff, 0, 0xff, 0, 0],
        DType::S2 => vec![0, 1, 0xfe, 0xff, 1, 0xff, 0xfe],
        DType::S4 => vec![1, 0xfe, 3, 0xff, 0, 7, 0xf8],
        _ => (0..7 * size)
            .map(|n| low(u8::try_from(n * 37 % 256).unwrap()))
            .collect(),
    }
}

#[test]
fn every_dtype_comes_back_as_it_went() {
    let client = client(1);
    for dtype in DType::ALL {
        if dtype.host_byte_size().is_none() {
            continue;
        }
        let sent = elements(*dtype);
        let array = match put_bytes(&client, *dtype, &[7], &sent) {
            // Plugins that are older than the type say so.
            Err(error) if error.code() == Code::Unimplemented => {
                assert!(client.plugin().api_minor() < 114, "{error}");
                continue;
            }
            array => array.unwrap(),
        };
        assert_eq!(array.dtype(), *dtype);
        assert_eq!(fetch_bytes(&array).unwrap(), sent, "{dtype}");
        let bits = u64::try_from(dtype.bit_size().unwrap()).unwrap();
        assert_eq!(
            array.byte_size().unwrap(),
            Some((7 * bits).div_ceil(8)),
            "{dtype}"
        );
    }
}

#[test]
fn dtypes_without_data_are_refused_and_nothing_aborts() {
    let client = client(1);
    for dtype in [DType::Token, DType::Opaque, DType::String] {
        let error = put_bytes(&client, dtype, &[], &[0; 8]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{dtype}: {error}");
    }
}

#[test]
fn scalars_and_empty_arrays() {
    let client = client(1);
    assert_eq!(fetch(&put(&client, &[], &[7.5])), [7.5]);
    for dims in [&[0][..], &[0, 3], &[3, 0], &[0, 1 << 40]] {
        let array = put(&client, dims, &[]);
        assert_eq!(array.shape().dims(), dims);
        assert_eq!(fetch(&array), []);
        assert_eq!(wait(array.ready()), Ok(()));
        assert_eq!(array.byte_size(), Ok(Some(0)));
    }
}

#[track_caller]
fn check_strides(
    dtype: DType,
    data: &[u8],
    dims: &[i64],
    strides: &[i64],
    offset: usize,
    dense: &[u8],
) {
    let client = client(1);
    let host = HostBuffer {
        data: HostData::Borrowed(data),
        dtype,
        shape: shape(dims),
        byte_strides: Some(strides.into()),
        offset_bytes: offset,
    };
    let array = client
        .make_array_from_host_buffer(host, on(&client, 0), None)
        .unwrap();
    assert_eq!(fetch_bytes(&array).unwrap(), dense, "{dims:?} {strides:?}");
}

#[test]
fn strided_buffers() {
    for dtype in [DType::U8, DType::U4] {
        let data = [0, 1, 2, 3, 4, 5, 6, 7];
        check_strides(dtype, &data, &[2, 3], &[3, 1], 0, &[0, 1, 2, 3, 4, 5]);
        check_strides(dtype, &data, &[2, 3], &[1, 2], 0, &[0, 2, 4, 1, 3, 5]);
        check_strides(dtype, &data, &[4], &[-1], 7, &[7, 6, 5, 4]);
        check_strides(dtype, &data, &[2, 2], &[-4, 2], 5, &[5, 7, 1, 3]);
        check_strides(dtype, &data, &[2, 3], &[0, 0], 4, &[4; 6]);
        check_strides(dtype, &data, &[2, 2], &[2, 4], 0, &[0, 4, 2, 6]);
    }
    let words: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    check_strides(DType::F32, &words, &[2], &[-8], 12, &bytes_of(&[4.0, 2.0]));
}

#[test]
fn host_strides_are_honored_when_reading() {
    let client = client(1);
    let x = put_bytes(&client, DType::S4, &[2, 3], &[1, 2, 3, 0xff, 0xfe, 0xfd]).unwrap();
    let read =
        |strides: &[i64]| wait(x.copy_to_host(Some(strides))).and_then(ifrt::HostValue::into_bytes);
    assert_eq!(read(&[3, 1]).unwrap(), [1, 2, 3, 0xff, 0xfe, 0xfd][..]);
    assert_eq!(read(&[1, 2]).unwrap(), [1, 0xff, 2, 0xfe, 3, 0xfd][..]);
    assert_eq!(read(&[3]).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(read(&[6, 2]).unwrap_err().code(), Code::Unimplemented);
    assert_eq!(read(&[-3, 1]).unwrap_err().code(), Code::Unimplemented);
}

#[test]
fn buffers_that_do_not_hold_the_array_are_refused() {
    let client = client(1);
    let make = |dims: &[i64], strides: Option<&[i64]>, offset, bytes: &[u8]| {
        let host = HostBuffer {
            data: HostData::Borrowed(bytes),
            dtype: DType::F32,
            shape: shape(dims),
            byte_strides: strides.map(Into::into),
            offset_bytes: offset,
        };
        client
            .make_array_from_host_buffer(host, on(&client, 0), None)
            .map(drop)
    };
    for (dims, strides, offset) in [
        (&[5][..], None, 0),
        (&[4], None, 4),
        (&[2, 2], Some(&[8][..]), 0),
        (&[2, 2], Some(&[8, 4, 1]), 0),
        (&[2], Some(&[-4]), 0),
        (&[2], Some(&[i64::MAX]), 0),
        (&[i64::MAX], None, 0),
        (&[0], None, 17),
    ] {
        let error = make(dims, strides, offset, &[0; 16]).unwrap_err();
        assert_eq!(
            error.code(),
            Code::InvalidArgument,
            "{dims:?} {strides:?} {offset}: {error}"
        );
    }
    make(&[4], None, 0, &[0; 16]).unwrap();
}

/// Host memory that tells when it is dropped, which is what `on_done` is elsewhere.
struct Owner {
    memory: Vec<u8>,
    start: usize,
    len: usize,
    dropped: mpsc::Sender<()>,
}

impl Owner {
    /// So many bytes at an address that is `offset` past a multiple of 64.
    fn shared(len: usize, offset: usize) -> (Bytes, mpsc::Receiver<()>) {
        let (dropped, receiver) = mpsc::channel();
        let mut memory = vec![0; len + 128];
        let start = memory.as_ptr().align_offset(64) + offset;
        for (n, byte) in memory[start..].iter_mut().enumerate() {
            *byte = u8::try_from(n % 251).unwrap();
        }
        (
            Bytes::from_owner(Self {
                memory,
                start,
                len,
                dropped,
            }),
            receiver,
        )
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // The receiver is gone if the test does not care.
        self.dropped.send(()).ok();
    }
}

const LARGE: usize = 1 << 20;

fn put_shared(client: &ifrt_pjrt::PjrtClient, bytes: Bytes) -> ifrt::ArrayRef {
    let dims = shape(&[i64::try_from(bytes.len()).unwrap()]);
    let host = HostBuffer::dense(HostData::Shared(bytes), DType::U8, dims);
    client
        .make_array_from_host_buffer(host, on(client, 0), None)
        .unwrap()
}

#[test]
fn shared_memory_is_kept_as_long_as_the_array_and_given_back_once() {
    let client = client(1);
    let (bytes, dropped) = Owner::shared(LARGE, 0);
    let expected = bytes.to_vec();
    let array = put_shared(&client, bytes);
    assert_eq!(fetch_bytes(&array).unwrap(), expected);
    // Used in place: nobody has given it back.
    assert_eq!(dropped.try_recv(), Err(mpsc::TryRecvError::Empty));
    wait(array.delete()).unwrap();
    dropped.recv_timeout(PATIENCE).unwrap();
    assert_eq!(dropped.recv(), Err(mpsc::RecvError));
}

#[test]
fn shared_memory_is_given_back_when_the_array_is_dropped() {
    let client = client(1);
    let (bytes, dropped) = Owner::shared(LARGE, 0);
    let array = put_shared(&client, bytes);
    drop(array);
    dropped.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn shared_memory_that_cannot_be_used_in_place_is_copied() {
    let client = client(1);
    for (len, offset) in [(LARGE, 8), (16, 0), (0, 0)] {
        let (bytes, dropped) = Owner::shared(len, offset);
        let expected = bytes.to_vec();
        let array = put_shared(&client, bytes);
        dropped.recv_timeout(PATIENCE).unwrap();
        assert_eq!(fetch_bytes(&array).unwrap(), expected);
    }
}

#[test]
fn one_buffer_makes_a_replicated_array() {
    let client = client(8);
    let devices: DeviceList = client.devices().iter().cloned().collect();
    let replicated =
        Sharding::hlo(HloSharding::Replicated, devices, MemoryKind::default()).unwrap();
    let bytes = bytes_of(&[1.0, 2.0]);
    let host = HostBuffer::dense(HostData::Borrowed(&bytes), DType::F32, shape(&[2]));
    let array = client
        .make_array_from_host_buffer(host, Arc::clone(&replicated), None)
        .unwrap();
    assert!(Arc::ptr_eq(array.sharding(), &replicated));
    assert_eq!(fetch(&array), [1.0, 2.0]);
    let shards = array
        .disassemble(ArrayCopySemantics::ReuseInput, ShardSemantics::All)
        .unwrap();
    assert_eq!(shards.len(), 8);
    for (shard, device) in shards.iter().zip(client.devices()) {
        assert_eq!(shard.sharding().devices().devices()[0].id(), device.id());
        assert_eq!(fetch(shard), [1.0, 2.0]);
    }
    let first = array
        .fully_replicated_shard(ArrayCopySemantics::ReuseInput)
        .unwrap();
    assert_eq!(fetch(&first), [1.0, 2.0]);
}

#[test]
fn one_buffer_does_not_make_a_split_array() {
    let client = client(2);
    let devices: DeviceList = client.devices().iter().cloned().collect();
    let split = Sharding::hlo(
        HloSharding::tile([2]).unwrap(),
        devices,
        MemoryKind::default(),
    );
    let host = HostBuffer::dense(HostData::Borrowed(&[0; 8]), DType::F32, shape(&[2]));
    let error = client
        .make_array_from_host_buffer(host, split.unwrap(), None)
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[test]
fn shards_make_a_split_array() {
    let client = client(4);
    let devices: DeviceList = client.devices().iter().cloned().collect();
    let sharding = Sharding::hlo(
        HloSharding::tile([4]).unwrap(),
        devices,
        MemoryKind::default(),
    )
    .unwrap();
    let parts: Vec<Vec<u8>> = (0..4_u8)
        .map(|n| bytes_of(&[f32::from(n), f32::from(n) + 0.5]))
        .collect();
    let make = |indices: &[&[usize]], dims: &[i64], dtype| {
        let spec = ArraySpec {
            dtype: DType::F32,
            shape: shape(&[8]),
            sharding: Arc::clone(&sharding),
            layout: None,
        };
        let buffers = indices.iter().zip(&parts).map(|(indices, part)| {
            (
                indices.to_vec(),
                HostBuffer::dense(HostData::Borrowed(part), dtype, shape(dims)),
            )
        });
        let buffers = buffers.collect();
        client.make_arrays_from_host_buffer_shards(vec![HostShards { spec, buffers }])
    };
    // The order of the buffers does not matter, their numbers do.
    let array = make(&[&[3], &[1], &[0], &[2]], &[2], DType::F32)
        .unwrap()
        .remove(0);
    let shards = array
        .disassemble(ArrayCopySemantics::ReuseInput, ShardSemantics::Addressable)
        .unwrap();
    let values: Vec<f32> = shards.iter().flat_map(fetch).collect();
    assert_eq!(values, [2.0, 2.5, 1.0, 1.5, 3.0, 3.5, 0.0, 0.5]);
    let error = wait(array.copy_to_host(None)).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);

    let all: &[&[usize]] = &[&[0], &[1], &[2], &[3]];
    for (indices, dims, dtype, part) in [
        (&all[..3], &[2][..], DType::F32, "shard 3 is missing"),
        (
            &[&[0], &[1], &[1], &[2]],
            &[2],
            DType::F32,
            "shard 1 is given twice",
        ),
        (&[&[0], &[1], &[2], &[4]], &[2], DType::F32, "out of range"),
        (all, &[1], DType::F32, "has shape [1]"),
        (all, &[2], DType::S32, "dtype s32"),
    ] {
        let error = make(indices, dims, dtype).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn one_buffer_may_be_several_shards() {
    let client = client(4);
    let devices: DeviceList = client.devices().iter().cloned().collect();
    let sharding = Sharding::hlo(HloSharding::Replicated, devices, MemoryKind::default()).unwrap();
    let bytes = bytes_of(&[4.0]);
    let spec = ArraySpec {
        dtype: DType::F32,
        shape: shape(&[1]),
        sharding,
        layout: None,
    };
    let host = HostBuffer::dense(HostData::Borrowed(&bytes), DType::F32, shape(&[1]));
    let buffers = vec![(vec![0, 1, 2, 3], host)];
    let arrays = client
        .make_arrays_from_host_buffer_shards(vec![HostShards { spec, buffers }])
        .unwrap();
    assert_eq!(fetch(&arrays[0]), [4.0]);
}

#[test]
fn memory_kinds() {
    let client = client(1);
    let device = &client.devices()[0];
    let make = |kind: &str| {
        let sharding = Sharding::single_device(Arc::clone(device), MemoryKind::new(kind));
        let host = HostBuffer::dense(HostData::Borrowed(&[1, 2]), DType::U8, shape(&[2]));
        client.make_array_from_host_buffer(host, sharding, None)
    };
    for kind in ["device", "pinned_host", "unpinned_host"] {
        let array = make(kind).unwrap();
        assert_eq!(array.sharding().memory_kind().name(), kind);
        assert_eq!(fetch_bytes(&array).unwrap(), [1, 2]);
    }
    let error = make("hbm").unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(
        error
            .message()
            .contains("device, pinned_host, unpinned_host"),
        "{error}"
    );
}

#[test]
fn layouts() {
    let client = client(1);
    let device = &client.devices()[0];
    let default = |dtype, dims: &[i64], kind: &str| {
        client
            .default_layout(dtype, &shape(dims), device, &MemoryKind::new(kind))
            .unwrap()
    };
    assert_eq!(
        default(DType::F32, &[2, 3], "device"),
        Layout::descending(2)
    );
    assert!(default(DType::S4, &[2, 3], "device").is_descending());
    assert_eq!(
        default(DType::F32, &[2, 3], "unpinned_host"),
        Layout::descending(2)
    );
    assert_eq!(default(DType::Token, &[], "device"), Layout::descending(0));

    let bytes = bytes_of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let make = |layout: &str| {
        let host = HostBuffer::dense(HostData::Borrowed(&bytes), DType::F32, shape(&[2, 3]));
        client.make_array_from_host_buffer(host, on(&client, 0), Some(Layout::parse(layout)?))
    };
    for layout in ["{1,0}", "{0,1}"] {
        let array = match make(layout) {
            Err(error) if layout == "{0,1}" && client.plugin().api_minor() < 115 => {
                assert_eq!(error.code(), Code::Unimplemented);
                continue;
            }
            array => array.unwrap(),
        };
        assert_eq!(
            array.layout().unwrap(),
            Some(Layout::parse(layout).unwrap())
        );
        assert_eq!(fetch(&array), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{layout}");
    }
    assert_eq!(make("{0}").unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(
        make("{1,0:T(8,128)}").unwrap_err().code(),
        Code::Unimplemented
    );
}

#[test]
fn devices_of_another_client_are_refused() {
    let (client, other) = (client(2), client(2));
    let host = HostBuffer::dense(HostData::Borrowed(&[1]), DType::U8, shape(&[1]));
    let error = client
        .make_array_from_host_buffer(host, on(&other, 1), None)
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("does not belong"), "{error}");
}

#[test]
fn strings_stay_on_the_host() {
    let client = client(2);
    let strings: Arc<[Bytes]> = Arc::new([Bytes::from_static(b"a"), Bytes::from_static(b"\0\xff")]);
    let make = |dims: &[i64], layout, strides: Option<&[i64]>| {
        let host = HostBuffer {
            byte_strides: strides.map(Into::into),
            ..HostBuffer::dense(
                HostData::Strings(Arc::clone(&strings)),
                DType::String,
                shape(dims),
            )
        };
        client.make_array_from_host_buffer(host, on(&client, 0), layout)
    };
    let array = make(&[2], None, None).unwrap();
    let read = |array: &ifrt::ArrayRef| wait(array.copy_to_host(None));
    assert_eq!(
        read(&array).unwrap(),
        ifrt::HostValue::Strings(Arc::clone(&strings))
    );
    assert_eq!(array.byte_size(), Ok(None));
    assert_eq!(wait(array.ready()), Ok(()));
    let other = DeviceList::new([Arc::clone(&client.devices()[1])]);
    let copied = client
        .copy_arrays(
            &[Arc::clone(&array)],
            Some(other),
            None,
            ArrayCopySemantics::AlwaysCopy,
        )
        .unwrap()
        .remove(0);
    wait(array.delete()).unwrap();
    wait(array.delete()).unwrap();
    assert!(array.is_deleted() && !copied.is_deleted());
    assert_eq!(
        read(&copied).unwrap(),
        ifrt::HostValue::Strings(Arc::clone(&strings))
    );
    for error in [read(&array).map(drop), wait(array.ready())] {
        let error = error.unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert_eq!(error.message(), "Array has already been deleted");
    }
    assert_eq!(
        make(&[3], None, None).unwrap_err().code(),
        Code::InvalidArgument
    );
    let layout = Some(Layout::descending(1));
    assert_eq!(
        make(&[2], layout, None).unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(
        make(&[2], None, Some(&[1])).unwrap_err().code(),
        Code::InvalidArgument
    );
}
