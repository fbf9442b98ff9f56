//! Everything that needs no device of flesh and blood.

use std::sync::Arc;
use std::thread;

use half::{bf16, f16};
use ifrt::fake::fault::{Fault, Gate, Op, When};
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::{Code, Status};
use jax_api::prelude::*;
use jax_api::{Complex, DType, DeadReason, Error, HostArray};

fn client() -> (Client, Arc<FakeClient>) {
    let fake = FakeClient::new(FakeOptions {
        num_devices: 8,
        ..FakeOptions::default()
    });
    (Client::from_ifrt(Arc::clone(&fake) as _), fake)
}

#[test]
fn handles_may_go_to_other_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Array>();
    check::<Client>();
    check::<Device>();
    check::<Mesh>();
    check::<NamedSharding>();
    check::<jit::Compiled>();
    check::<HostArray>();
    check::<Error>();
}

#[test]
fn every_element_type_there_and_back() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(elements: &[T], name: &str) {
        let (client, _) = client();
        let device = &client.devices()[3];
        let x = device_put(elements, device).unwrap();
        assert_eq!(x.to_vec::<T>().unwrap(), elements);
        assert_eq!(x.dtype().numpy_name(), name);
        let owned = device_put(elements.to_vec(), device).unwrap();
        assert_eq!(owned.to_vec::<T>().unwrap(), elements);
        let scalar = device_put(elements[0], device).unwrap();
        assert_eq!(scalar.item::<T>().unwrap(), elements[0]);
        assert!(scalar.shape().is_empty());
    }
    check(&[1_u8, 255], "uint8");
    check(&[1_u16, 2], "uint16");
    check(&[1_u32, 2], "uint32");
    check(&[1_u64, u64::MAX], "uint64");
    check(&[-1_i8, 2], "int8");
    check(&[-1_i16, 2], "int16");
    check(&[-1_i32, 2], "int32");
    check(&[i64::MIN, 2], "int64");
    check(&[f16::from_f32(0.5), f16::ONE], "float16");
    check(&[bf16::from_f32(0.5), bf16::ONE], "bfloat16");
    check(&[0.5_f32, 1.0], "float32");
    check(&[0.5_f64, 1.0], "float64");
    check(&[true, false], "bool");
    check(
        &[Complex {
            re: 1.0_f32,
            im: -1.0,
        }],
        "complex64",
    );
    check(
        &[Complex {
            re: 1.0_f64,
            im: -1.0,
        }],
        "complex128",
    );
}

#[test]
fn data_comes_in_many_forms() {
    let (client, _) = client();
    let numbers = vec![1_i32, 2, 3, 4, 5, 6];
    let dims: &[usize] = &[6, 1];
    let slice: &[i32] = &numbers;
    for (array, shape) in [
        (device_put(slice, &client), vec![6]),
        (device_put(&numbers, &client), vec![6]),
        (device_put((slice, [2, 3]), &client), vec![2, 3]),
        (device_put((&numbers, [3, 2]), &client), vec![3, 2]),
        (device_put((slice, dims), &client), vec![6, 1]),
        (
            device_put((numbers.clone(), [1, 2, 3]), &client),
            vec![1, 2, 3],
        ),
        (
            device_put((&[1, 2, 3, 4, 5, 6], [2, 3]), &client),
            vec![2, 3],
        ),
    ] {
        let array = array.unwrap();
        assert_eq!(array.shape(), shape);
        assert_eq!(array.size(), 6);
        assert_eq!(array.to_vec::<i32>().unwrap(), numbers);
    }
    let error = device_put((slice, [4, 2]), &client).unwrap_err();
    assert_eq!(
        error.to_string(),
        "INVALID_ARGUMENT: cannot reshape array of size 6 into shape [4,2]"
    );
    for absurd in [usize::MAX, 1 << 40] {
        assert!(device_put((slice, [absurd, absurd]), &client).is_err());
    }
}

#[test]
fn bytes_of_any_type() {
    let (client, _) = client();
    let shape = ifrt::Shape::new([4]).unwrap();
    let host = HostArray::new(DType::S4, shape, vec![1, 2, 0xff, 7]).unwrap();
    let x = device_put(&host, &client.devices()[1]).unwrap();
    assert_eq!(x.to_host().unwrap(), host);
    assert_eq!(x.to_string(), "Array(int4[4])");
}

#[test]
fn reading_as_another_type() {
    let (client, _) = client();
    let x = device_put(&[1.0_f32, 2.0], &client).unwrap();
    let error = x.to_vec::<f64>().unwrap_err();
    assert_eq!(
        error,
        Error::DtypeMismatch {
            asked: DType::F64,
            found: DType::F32
        }
    );
    assert_eq!(
        error.to_string(),
        "an array of dtype float32 cannot be read as float64"
    );
    assert!(x.item::<f32>().is_err(), "two elements");
    x.delete();
    assert!(matches!(x.to_vec::<f64>(), Err(Error::ArrayDeleted { .. })));
}

#[test]
fn the_words_for_a_dead_array() {
    let (client, _) = client();
    let step = jit::from_stablehlo("fake:add(f32[16] donated, f32[16]) -> (f32[16])");
    let step = step.compile(&client).unwrap();
    let x = device_put(&[0.0_f32; 16], &client).unwrap();
    let y = device_put(&[0.0_f32; 16], &client).unwrap();
    drop(step.call(args![donate(&x), &y]).unwrap());
    y.delete();
    for (array, reason, message) in [
        (
            &x,
            DeadReason::Donated,
            "Array has been deleted with shape=float32[16]. It was donated to a call.",
        ),
        (
            &y,
            DeadReason::Deleted,
            "Array has been deleted with shape=float32[16].",
        ),
    ] {
        let expected = |message: &str| Error::ArrayDeleted {
            shape: vec![16],
            dtype: DType::F32,
            reason,
            message: message.to_owned(),
        };
        let z = device_put(&[0.0_f32; 16], &client).unwrap();
        let sharding =
            NamedSharding::new(&Mesh::new(client.devices(), [("x", 8)]).unwrap(), P!["x"]);
        for error in [
            array.to_vec::<f32>().unwrap_err(),
            array.to_host().map(drop).unwrap_err(),
            array.read().map(drop).unwrap_err(),
            array.item::<f32>().unwrap_err(),
            array.addressable_shards().map(drop).unwrap_err(),
            device_put(array, &client).unwrap_err(),
            device_put(array, &client.devices()[1]).unwrap_err(),
            device_put(array, &sharding.unwrap()).unwrap_err(),
            device_put_with(array, &client, PutOptions::new().may_alias(false)).unwrap_err(),
            step.call(args![array, &z]).map(drop).unwrap_err(),
            step.call(args![donate(array), &z]).map(drop).unwrap_err(),
            step.call(args![donate(&z), array]).map(drop).unwrap_err(),
        ] {
            assert_eq!(error, expected(message));
            assert_eq!(error.to_string(), message);
            assert_eq!(error.code(), Code::InvalidArgument);
        }
        assert!(!z.is_deleted());
        let words = "BlockHostUntilReady() called on deleted or donated buffer";
        assert_eq!(array.block_until_ready().unwrap_err(), expected(words));
        assert_eq!(array.shape(), [16]);
        assert_eq!(array.dtype(), DType::F32);
        assert!(!array.weak_type() && array.is_fully_replicated());
        assert!(format!("{array:?}").contains("float32[16]"));
    }
}

#[test]
fn errors_by_kind() {
    let (client, _) = client();
    let x = device_put(&[1.0_f32; 4], &client.devices()[2]).unwrap();
    let f = jit::from_stablehlo("fake:add(f32[4], f32[4]) -> (f32[4])");
    let f = f
        .in_avals([(DType::F32, [4]), (DType::F32, [4])])
        .compile(&client)
        .unwrap();
    assert!(matches!(
        f.call(args![&x, &x]),
        Err(Error::IncompatibleDevices(_))
    ));
    let short = device_put(&[1.0_f32; 3], &client).unwrap();
    assert!(matches!(
        f.call(args![&short, &short]),
        Err(Error::ArgumentMismatch(_))
    ));
    assert!(matches!(f.call(args![]), Err(Error::ArgumentMismatch(_))));
    let mesh = Mesh::new(client.devices(), [("x", 8)]).unwrap();
    let split = NamedSharding::new(&mesh, P!["x"]).unwrap();
    assert!(matches!(
        device_put(&[1.0_f32; 9], &split),
        Err(Error::Indivisible(_))
    ));
    let broken = jit::from_stablehlo("nonsense").compile(&client);
    assert!(
        matches!(broken, Err(Error::Runtime(status)) if status.code() == Code::InvalidArgument)
    );
}

#[test]
fn meshes_and_placements() {
    let (client, _) = client();
    let mesh = Mesh::new(client.devices(), [("data", 4), ("model", 2)]).unwrap();
    assert_eq!(mesh.axes().collect::<Vec<_>>(), [("data", 4), ("model", 2)]);
    let sharding = NamedSharding::new(&mesh, P!["model", ("data",)]).unwrap();
    let numbers: Vec<i32> = (0..16).collect();
    let x = device_put((&numbers, [4, 4]), &sharding).unwrap();
    assert_eq!(x.to_vec::<i32>().unwrap(), numbers);
    let shards = x.addressable_shards().unwrap();
    assert_eq!(shards[3].device_id, 3);
    assert_eq!(shards[3].index, [2..4, 1..2]);
    assert_eq!(shards[3].data.to_vec::<i32>().unwrap(), [9, 13]);
    assert_eq!(shards[3].replica_id, 0);
    let pinned = device_put(&x, &sharding.with_memory_kind("pinned_host")).unwrap();
    assert_eq!(pinned.to_vec::<i32>().unwrap(), numbers);
    assert!(!pinned.sharding().memory_kind().is_default());

    let (other, _) = self::client();
    let mixed = [client.devices()[0].clone(), other.devices()[1].clone()];
    assert!(Mesh::new(&mixed, [("x", 2)]).is_err());
    assert!(Mesh::new(&[], [("x", 0)]).is_err());
    assert_ne!(client.devices()[0], other.devices()[0]);
    assert_eq!(client.devices()[0], client.clone().devices()[0]);

    // To another client through the host.
    let moved = device_put(&x, &other).unwrap();
    assert_eq!(moved.to_vec::<i32>().unwrap(), numbers);
    x.delete();
    assert!(!moved.is_deleted());
}

#[test]
fn put_options() {
    let (client, _) = client();
    let device = &client.devices()[0];
    let x = device_put(&[1_u8, 2], device).unwrap();
    let both = PutOptions::new().donate(true).may_alias(true);
    assert_eq!(
        device_put_with(&x, device, both).unwrap_err().to_string(),
        "INVALID_ARGUMENT: may_alias and donate cannot be True at the same time."
    );
    let alias = device_put_with(&x, device, PutOptions::new().may_alias(true)).unwrap();
    let copy = device_put_with(&x, device, PutOptions::new().may_alias(false)).unwrap();
    let moved = device_put_with(&x, device, PutOptions::new().donate(true)).unwrap();
    assert!(x.is_deleted() && alias.is_deleted());
    assert_eq!(copy.to_vec::<u8>().unwrap(), [1, 2]);
    assert_eq!(moved.to_vec::<u8>().unwrap(), [1, 2]);
}

#[test]
fn owned_memory_is_given_back_when_the_array_is_gone() {
    let (client, fake) = client();
    let x = device_put(vec![1_u64; 1000], &client).unwrap();
    assert_eq!(fake.live_bytes(), 8000);
    x.delete();
    assert!(client.drain_deletions(std::time::Duration::from_secs(20)));
    assert_eq!(fake.live_bytes(), 0);
}

#[test]
fn programs_over_devices() {
    let (client, _) = client();
    let module = "fake:add(f32[8] tiled[8], f32[8]) -> (f32[8] tiled[8])";
    let mesh = Mesh::new(client.devices(), [("x", 8)]).unwrap();
    let split = NamedSharding::new(&mesh, P!["x"]).unwrap();
    let f = jit::from_stablehlo(module)
        .num_partitions(8)
        .in_shardings([Some(&split), None])
        .out_shardings([Some(&split)])
        .compiler_option("xla_some_flag", true)
        .compile(&client)
        .unwrap();
    assert_eq!(f.name(), "add");
    assert_eq!(f.donatable_argnums(), Some(vec![]));
    let x = device_put(&[1.0_f32; 8], &split).unwrap();
    let y = f
        .call(args![&x, &device_put(&[2.0_f32; 8], &client).unwrap()])
        .unwrap()
        .remove(0);
    assert_eq!(y.to_vec::<f32>().unwrap(), [3.0; 8]);
    assert_eq!(format!("{}", y.sharding()), format!("{split:?}"));

    let too_many = jit::from_stablehlo(module)
        .num_partitions(9)
        .compile(&client)
        .unwrap_err();
    assert!(too_many.to_string().contains("9 partitions"), "{too_many}");
    let odd = jit::from_stablehlo(module)
        .devices(client.devices())
        .num_partitions(4);
    assert!(
        odd.compile(&client)
            .unwrap_err()
            .to_string()
            .contains("8 devices were given for 4")
    );
    let (other, _) = self::client();
    let foreign = jit::from_stablehlo(module)
        .devices(other.devices())
        .compile(&client);
    assert!(foreign.unwrap_err().to_string().contains("another client"));
}

/// Stock JAX hung, see `jax-ml/jax` 9635.
#[test]
fn known_bug_a2_one_array_donated_and_used() {
    let (client, _) = client();
    let step = jit::from_stablehlo("fake:add(f32[4] donated, f32[4]) -> (f32[4])");
    let step = step.compile(&client).unwrap();
    let x = device_put(&[1.0_f32; 4], &client).unwrap();
    let error = step.call(args![donate(&x), &x]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "INVALID_ARGUMENT: Attempt to use a buffer that was previously donated in the same call to \
         Execute() (flattened argument 1, replica 0, partition 0, first use: 0). Toy example for \
         this bug: `f(donate(a), a)`."
    );
    assert!(!x.is_deleted());
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0; 4]);
}

/// Deletion that sleeps, fails or never completes, see XLA 77896f6e99.
#[test]
fn known_bug_a7_deletion_is_idempotent_whatever_the_runtime_does() {
    let gate = Gate::new();
    for fault in [
        Fault::Block(gate.clone()),
        Fault::Fail(Status::internal("broken")),
        Fault::Never,
        Fault::Panic,
    ] {
        let (client, fake) = client();
        fake.faults().add(Op::Delete, When::Always, fault.clone());
        let x = device_put(&[1.0_f32; 4], &client).unwrap();
        for _ in 0..3 {
            x.delete();
            assert!(x.is_deleted());
        }
        let failures = matches!(fault, Fault::Fail(_) | Fault::Panic);
        if !matches!(fault, Fault::Block(_)) {
            assert!(client.drain_deletions(std::time::Duration::from_secs(20)));
            let stats = client.deletion_stats();
            assert_eq!((stats.requested, stats.failed), (1, u64::from(failures)));
        }
        gate.wait_until_held(usize::from(matches!(fault, Fault::Block(_))), GATE_DEADLINE)
            .unwrap();
    }
    gate.open();
}

const GATE_DEADLINE: std::time::Duration = std::time::Duration::from_secs(20);

/// Running on a freed buffer did not raise, see `elixir-nx/nx` 212: here the argument dies while
/// the call is looking at its other arguments.
#[test]
fn known_bug_a11_an_argument_that_dies_in_between() {
    let (client, _) = client();
    let f = jit::from_stablehlo("fake:add(f32[4], f32[4]) -> (f32[4])")
        .compile(&client)
        .unwrap();
    for n in 0..2_000_u16 {
        let value = f32::from(n);
        let x = device_put(&[value; 4], &client).unwrap();
        let y = device_put(&[1.0_f32; 4], &client).unwrap();
        let result = thread::scope(|scope| {
            scope.spawn(|| y.delete());
            f.call(args![&x, &y])
        });
        match result {
            Ok(sums) => assert_eq!(sums[0].to_vec::<f32>().unwrap(), [value + 1.0; 4]),
            Err(error) => assert!(matches!(error, Error::ArrayDeleted { .. }), "{error}"),
        }
    }
}
