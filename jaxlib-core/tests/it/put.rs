//! `device_put`, reading, shards.

use std::sync::Arc;

use ifrt::fake::FakeOptions;
use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt::{Code, DType, HostBuffer, HostData, MemoryKind, Shape, Status};
use jaxlib_core::sharding::SingleDeviceSharding;
use jaxlib_core::{
    Array, Client, DeadReason, HostArray, Kind, Mesh, NamedSharding, PartitionSpec, Sharding,
    Source, Target, device_put, device_put_array,
};

use crate::support::{World, read, to_bytes};

const VALUES: [f32; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];

#[test]
fn everywhere_and_back() {
    let world = World::new();
    let targets: [Target; 4] = [
        Target::Default,
        world.device(3).into(),
        Sharding::from(world.copies(8)).into(),
        Sharding::from(world.split(8)).into(),
    ];
    for target in targets {
        let array = world.put(&VALUES, target.clone());
        assert_eq!(read(&array).unwrap(), VALUES, "{target:?}");
        assert_eq!(array.is_committed(), !matches!(target, Target::Default));
        assert_eq!(array.aval().to_string(), "float32[8]");
        array.block_until_ready().unwrap();
    }
}

#[test]
fn equal_parts_are_sent_once() {
    let world = World::new();
    let mesh = Mesh::new(world.devices(8), [("x", 4), ("y", 2)]).unwrap();
    let spec = PartitionSpec::new([jaxlib_core::PartitionDim::Whole, "x".into()]);
    let sharding = NamedSharding::new(&mesh, spec).unwrap();
    let shape = Shape::new([2, 4]).unwrap();
    let bytes = to_bytes(&VALUES);
    let buffer = HostBuffer::dense(HostData::Borrowed(&bytes), DType::F32, shape);
    let array = device_put(&world.client, &buffer, Sharding::from(sharding)).unwrap();
    assert_eq!(read(&array).unwrap(), VALUES);
    let shards = array.addressable_shards().unwrap();
    let replicas: Vec<usize> = shards.iter().map(|shard| shard.replica_id).collect();
    assert_eq!(replicas, [0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(read(&shards[2].data).unwrap(), [1.0, 5.0]);
    assert_eq!(&*shards[2].index, &[None, Some(1..2)]);
    assert_eq!(shards[2].device.id().0, 2);
    assert!(shards[2].data.is_committed());
}

#[test]
fn borrowed_memory_is_copied_before_the_call_returns() {
    let world = World::new();
    for target in [
        world.device(0),
        world.split(8).into(),
        world.copies(8).into(),
    ] {
        let gate = Gate::new();
        let fault = Fault::Slow(gate.clone());
        world.fake.faults().add(Op::MakeArray, When::Once, fault);
        let mut bytes = to_bytes(&VALUES);
        let shape = Shape::new([8]).unwrap();
        let buffer = HostBuffer::dense(HostData::Borrowed(&bytes), DType::F32, shape);
        let array = device_put(&world.client, &buffer, target).unwrap();
        bytes.fill(0xff);
        gate.open();
        assert_eq!(read(&array).unwrap(), VALUES);
    }
}

#[test]
fn other_element_types() {
    let world = World::new();
    for dtype in [
        DType::S4,
        DType::BF16,
        DType::F8E4M3FN,
        DType::C128,
        DType::Pred,
    ] {
        let item = dtype.host_byte_size().unwrap();
        let data: Vec<u8> = (0..8 * item).map(|n| u8::from(n % 3 == 0)).collect();
        let host = HostArray::new(dtype, Shape::new([8]).unwrap(), data).unwrap();
        for target in [world.device(1), world.split(8).into()] {
            let array = device_put(&world.client, &host.to_buffer(), target).unwrap();
            assert_eq!(array.to_host().unwrap(), host, "{dtype}");
        }
    }
    let strings: Arc<[_]> = ["a", "", "ccc", "d"].map(bytes::Bytes::from).into();
    let shape = Shape::new([4]).unwrap();
    let buffer = HostBuffer::dense(HostData::Strings(strings.clone()), DType::String, shape);
    for target in [world.device(1), world.split(4).into()] {
        let array = device_put(&world.client, &buffer, target).unwrap();
        let value = array.to_host().unwrap().value().clone();
        assert_eq!(value, ifrt::HostValue::Strings(strings.clone()));
    }
}

#[test]
fn scalars_and_empty_arrays() {
    let world = World::new();
    for dims in [&[][..], &[0], &[3, 0, 2]] {
        let shape = Shape::new(dims).unwrap();
        let size = usize::try_from(shape.num_elements()).unwrap() * 4;
        let host = HostArray::new(DType::F32, shape, vec![1; size]).unwrap();
        for target in [world.device(1), world.copies(4).into()] {
            let array = device_put(&world.client, &host.to_buffer(), target).unwrap();
            assert_eq!(array.to_host().unwrap(), host);
            array.delete();
            assert!(array.is_deleted());
        }
    }
}

#[test]
fn host_data_that_does_not_fit() {
    let world = World::new();
    let put = |len: usize, dims: &[i64], target: Sharding| {
        let data = vec![0; len];
        let shape = Shape::new(dims).unwrap();
        let buffer = HostBuffer::dense(HostData::Borrowed(&data), DType::F32, shape);
        device_put(&world.client, &buffer, target).unwrap_err()
    };
    let small = put(8, &[3], world.device(0));
    assert!(small.message().contains("too small"), "{small}");
    let huge = put(8, &[i64::MAX], world.split(8).into());
    assert!(
        huge.message().contains("do not describe a buffer"),
        "{huge}"
    );
    let uneven = put(48, &[12], world.split(8).into());
    assert_eq!(Kind::of(&uneven), Some(Kind::Indivisible));
    assert!(
        uneven.message().contains("implies that array axis 0 is partitioned 8 times, but the dimension size is 12 (full shape: (12,), per-dimension tiling factors: [8] should evenly divide the shape)"),
        "{uneven}"
    );
    let mesh_too_deep = put(4, &[], world.split(8).into());
    assert!(
        mesh_too_deep
            .message()
            .contains("only valid for values of rank at least 1")
    );
}

#[test]
fn only_devices_of_this_process() {
    let world = World::with(FakeOptions {
        num_devices: 4,
        num_addressable: 2,
        ..FakeOptions::default()
    });
    let shape = Shape::new([8]).unwrap();
    let bytes = to_bytes(&VALUES);
    let buffer = HostBuffer::dense(HostData::Borrowed(&bytes), DType::F32, shape);
    for target in [world.device(3), world.split(4).into()] {
        let error = device_put(&world.client, &buffer, target).unwrap_err();
        assert!(
            error
                .message()
                .starts_with("Cannot copy array to non-addressable device: ")
        );
    }
    let nowhere = World::with(FakeOptions {
        num_devices: 1,
        num_addressable: 0,
        ..FakeOptions::default()
    });
    let error = device_put(&nowhere.client, &buffer, Target::Default).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
}

#[test]
fn an_array_that_is_there_already_is_shared() {
    let world = World::new();
    let x = world.put(&VALUES, world.device(0));
    let buffers = world.fake.live_buffers();
    let same = device_put_array(&x, world.device(0), Source::MayAlias).unwrap();
    let default = device_put_array(&x, Target::Default, Source::MayAlias).unwrap();
    assert_eq!(world.fake.live_buffers(), buffers, "no copy");
    x.delete();
    for alias in [same, default] {
        assert!(alias.is_deleted());
    }
    let y = world.put(&VALUES, world.split(8));
    let other_words = Sharding::from(world.split(8));
    let alias = device_put_array(&y, other_words, Source::MayAlias).unwrap();
    alias.delete();
    assert!(y.is_deleted());
}

#[test]
fn an_uncommitted_array_becomes_committed_by_name() {
    let world = World::new();
    let x = world.put(&VALUES, Target::Default);
    let there = device_put_array(&x, world.device(0), Source::MayAlias).unwrap();
    assert!(there.is_committed() && !x.is_committed());
    x.delete();
    assert!(there.is_deleted(), "the same buffers");
}

#[test]
fn copies_are_independent() {
    let world = World::new();
    let x = world.put(&VALUES, world.device(0));
    let copies: Vec<Array> = [
        device_put_array(&x, world.device(0), Source::Copy),
        device_put_array(&x, Target::Default, Source::Copy),
        device_put_array(&x, world.device(1), Source::MayAlias),
        device_put_array(&x, Sharding::from(world.split(8)), Source::MayAlias),
        device_put_array(&x, Sharding::from(world.copies(2)), Source::MayAlias),
    ]
    .map(Result::unwrap)
    .to_vec();
    x.delete();
    world.drain();
    for copy in &copies {
        assert!(!copy.is_deleted(), "{copy:?}");
        assert_eq!(read(copy).unwrap(), VALUES);
    }
    copies[0].delete();
    assert!(!copies[1].is_deleted());
}

#[test]
fn from_any_sharding_to_any_other() {
    let world = World::new();
    let host = MemoryKind::new("pinned_host");
    let device = Arc::clone(&world.client.runtime().devices()[2]);
    let shardings: Vec<Sharding> = vec![
        world.device(0),
        SingleDeviceSharding::new(device)
            .with_memory_kind(host.clone())
            .into(),
        world.split(8).into(),
        world.split(4).with_memory_kind(host).into(),
        world.copies(4).into(),
    ];
    for from in &shardings {
        for to in &shardings {
            let x = world.put(&VALUES, from.clone());
            let y = device_put_array(&x, to.clone(), Source::MayAlias).unwrap();
            assert_eq!(read(&y).unwrap(), VALUES, "{from} {to}");
            assert!(y.sharding().is_equivalent_to(to, 1));
            assert_eq!(read(&x).unwrap(), VALUES);
        }
    }
}

#[test]
fn a_donated_array_is_gone_after_a_put() {
    let world = World::new();
    for to in [world.device(0), world.device(1), world.split(8).into()] {
        let x = world.put(&VALUES, world.device(0));
        let y = device_put_array(&x, to, Source::Donate).unwrap();
        assert!(x.is_deleted());
        assert_eq!(read(&y).unwrap(), VALUES);
        assert!(device_put_array(&x, world.device(0), Source::MayAlias).is_err());
    }
}

#[test]
fn putting_a_dead_array_says_so() {
    let world = World::new();
    let x = world.put(&VALUES, world.device(0));
    x.delete();
    for target in [
        Target::Default,
        world.device(0).into(),
        world.device(1).into(),
        Sharding::from(world.split(8)).into(),
    ] {
        for source in [Source::MayAlias, Source::Copy, Source::Donate] {
            let error = device_put_array(&x, target.clone(), source).unwrap_err();
            assert_eq!(
                error.message(),
                "Array has been deleted with shape=float32[8]."
            );
        }
    }
}

#[test]
fn shards_share_the_fate_of_their_array() {
    let world = World::new();
    let x = world.put(&VALUES, world.split(8));
    let shards = x.addressable_shards().unwrap();
    shards[3].data.delete();
    assert!(x.is_deleted(), "the array lost a part");
    let error = read(&x).unwrap_err();
    assert_eq!(
        error.message(),
        "Array has been deleted with shape=float32[8]."
    );
    assert!(x.addressable_shards().is_err());
    for (position, shard) in shards.iter().enumerate() {
        assert_eq!(shard.data.is_deleted(), position == 3);
        if position != 3 {
            assert_eq!(read(&shard.data).unwrap(), [VALUES[position]]);
        }
    }
    x.delete();
    assert!(shards.iter().all(|shard| shard.data.is_deleted()));
    world.drain();
    assert_eq!(world.fake.live_buffers(), 0);

    let y = world.put(&VALUES, world.device(2));
    let only = y.addressable_shards().unwrap().remove(0);
    assert_eq!(read(&only.data).unwrap(), VALUES);
    y.delete();
    assert!(only.data.is_deleted());
}

#[test]
fn arrays_made_of_shards_share_them() {
    let world = World::new();
    let x = world.put(&VALUES, world.split(8));
    let parts: Vec<Array> = x
        .addressable_shards()
        .unwrap()
        .into_iter()
        .map(|s| s.data)
        .collect();
    let make = |parts: &[Array], sharding: NamedSharding, dim: i64| {
        let shape = Shape::new([dim]).unwrap();
        Array::from_single_device_arrays(&world.client, shape, sharding, parts)
    };
    let y = make(&parts, world.split(8), 8).unwrap();
    let half = make(&parts[..4], world.split(4), 4).unwrap();
    assert_eq!(read(&y).unwrap(), VALUES);
    assert_eq!(read(&half).unwrap(), VALUES[..4]);

    parts[6].delete();
    assert!(x.is_deleted() && y.is_deleted() && !half.is_deleted());
    half.delete();
    let dead: Vec<bool> = parts.iter().map(Array::is_deleted).collect();
    assert_eq!(dead, [true, true, true, true, false, false, true, false]);

    let error = make(&parts, world.split(8), 8).unwrap_err();
    let deleted = Kind::ArrayDeleted {
        aval: parts[0].aval().clone(),
        reason: DeadReason::Deleted,
    };
    assert_eq!(Kind::of(&error), Some(deleted));
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let world = World::new();
    let parts: Vec<Array> = (0..4).map(|n| world.put(&[1.0], world.device(n))).collect();
    let make = |parts: &[Array], sharding: NamedSharding, dim: i64| {
        let shape = Shape::new([dim]).unwrap();
        Array::from_single_device_arrays(&world.client, shape, sharding, parts)
            .unwrap_err()
            .message()
            .to_owned()
    };
    assert!(make(&parts[..3], world.split(4), 4).contains("expected 4, found 3"));
    assert!(make(&[], world.split(4), 4).contains("expected 4, found 0"));
    assert!(make(&parts, world.split(4), 8).contains("must be of type float32[2]"));
    let swapped: Vec<Array> = [1, 0, 2, 3].map(|n: usize| parts[n].clone()).to_vec();
    assert!(make(&swapped, world.split(4), 4).contains("part 0 must be on device 0"));
    let wide = vec![world.put(&[1.0], world.copies(2)); 4];
    assert!(make(&wide, world.split(4), 4).contains("must have one shard each"));
}

#[test]
fn a_failed_array_says_why_and_can_be_deleted() {
    let world = World::new();
    let error = Status::data_loss("the cable");
    let fault = Fault::Fail(error.clone());
    world.fake.faults().add(Op::MakeArray, When::Once, fault);
    let x = world.put(&VALUES, world.device(0));
    assert_eq!(x.block_until_ready().unwrap_err(), error);
    assert_eq!(read(&x).unwrap_err(), error);
    assert!(!x.is_deleted());
    x.delete();
    assert!(x.is_deleted());
    assert_eq!(
        x.block_until_ready().unwrap_err().to_string(),
        "INVALID_ARGUMENT: BlockHostUntilReady() called on deleted or donated buffer"
    );
}

#[test]
fn an_array_from_the_runtime() {
    let world = World::new();
    let own = Client::new(Arc::clone(&world.fake) as Arc<dyn ifrt::Client>);
    let bytes = to_bytes(&VALUES);
    let shape = Shape::new([8]).unwrap();
    let buffer = HostBuffer::dense(HostData::Borrowed(&bytes), DType::F32, shape);
    let sharding = world.device(1).to_runtime(1).unwrap();
    let handle = own
        .runtime()
        .make_array_from_host_buffer(buffer, sharding, None)
        .unwrap();
    let x = Array::from_runtime(&own, Arc::clone(&handle), false).unwrap();
    assert_eq!(read(&x).unwrap(), VALUES);
    // Deleted behind our back:
    handle.delete().wait().unwrap();
    assert!(x.is_deleted());
    let error = read(&x).unwrap_err();
    assert!(
        error
            .message()
            .contains("Array has been deleted with shape=float32[8]"),
        "{error}"
    );
}

#[test]
fn an_array_deleted_behind_our_back_says_so_at_its_first_use() {
    let world = World::new();
    let own = Client::new(Arc::clone(&world.fake) as Arc<dyn ifrt::Client>);
    let make = || {
        let bytes = to_bytes(&VALUES);
        let shape = Shape::new([8]).unwrap();
        let buffer = HostBuffer::dense(HostData::Borrowed(&bytes), DType::F32, shape);
        let sharding = Sharding::from(world.split(8)).to_runtime(1).unwrap();
        let shards = ifrt::HostShards {
            spec: ifrt::ArraySpec {
                dtype: DType::F32,
                shape: buffer.shape,
                sharding,
                layout: None,
            },
            buffers: (0..8)
                .map(|n| {
                    let data = HostData::Borrowed(&bytes[4 * n..4 * n + 4]);
                    let shape = Shape::new([1]).unwrap();
                    (vec![n], HostBuffer::dense(data, DType::F32, shape))
                })
                .collect(),
        };
        let made = own
            .runtime()
            .make_arrays_from_host_buffer_shards(vec![shards]);
        let handle = made.unwrap().remove(0);
        let x = Array::from_runtime(&own, Arc::clone(&handle), true).unwrap();
        handle.delete().detach();
        x
    };
    let words = "Array has been deleted with shape=float32[8]";
    assert!(read(&make()).unwrap_err().message().contains(words));
    let shards = make().addressable_shards().map(drop).unwrap_err();
    assert!(shards.message().contains(words));
    let copy = device_put_array(&make(), world.device(0), Source::Copy).unwrap_err();
    assert!(copy.message().contains(words));
    let wait = make().block_until_ready().unwrap_err();
    assert!(
        wait.message()
            .contains("called on deleted or donated buffer")
    );
}
