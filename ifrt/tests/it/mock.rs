//! The mocks: exactly one call, no call, the right arguments.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use ifrt::mock::{
    MockArray, MockBundle, MockClient, MockCompiler, MockDevice, MockExecutable, MockHostCallback,
    MockLoadedExecutable, MockLoadedHostCallback, MockMemory, MockTopology, MockTuple,
    MockUserContext,
};
use ifrt::value::Lifecycle;
use ifrt::{
    ArrayCopySemantics, ArrayRef, Bundle, Client, Compiler, Completion, DeviceId, DeviceList,
    DeviceRef, Executable, ExecuteOptions, HostBuffer, HostCallback, HostData, HostValue,
    LoadedExecutable, MemoryId, MemoryKind, Sharding, Status, Topology, ValueRef,
};

use crate::support::*;

fn as_values(arrays: Vec<MockArray>) -> Vec<ValueRef> {
    arrays
        .into_iter()
        .map(|array| Arc::new(array) as ValueRef)
        .collect()
}

fn deleted_once(result: ifrt::Result<()>) -> MockArray {
    let mut array = MockArray::new();
    array
        .expect_delete()
        .times(1)
        .returning(move || Completion::ready(result.clone()));
    array
}

#[test]
fn delete_values_deletes_each_exactly_once() {
    let failure = Status::internal("cannot free");
    let client = client();
    let values = as_values(vec![
        deleted_once(Ok(())),
        deleted_once(Err(failure.clone())),
    ]);
    assert_eq!(wait(&client.delete_values(&values)), Err(failure));
    // Dropping the mocks checks the counts.
}

#[test]
fn a_lifecycle_deletes_exactly_once_whoever_asks() {
    let life = Lifecycle::new(Arc::new(deleted_once(Ok(()))));
    let results: Vec<_> = std::thread::scope(|scope| {
        let delete = || wait(&life.delete(|array| array.delete()));
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(delete)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(results, vec![Ok(()); 8]);
}

#[test]
fn a_second_call_fails_the_test() {
    let array = deleted_once(Ok(()));
    array.delete().detach();
    let again = catch_unwind(AssertUnwindSafe(|| array.delete().detach()));
    assert!(again.is_err());
    // The mock fails on drop as well, where it would be the end of this test.
    assert!(catch_unwind(AssertUnwindSafe(|| drop(array))).is_err());
}

#[test]
fn a_missing_call_fails_the_test() {
    let array = deleted_once(Ok(()));
    let missing = catch_unwind(AssertUnwindSafe(|| drop(array)));
    assert!(missing.is_err());
}

#[test]
fn arguments_are_checked() {
    let mut array = MockArray::new();
    array
        .expect_copy_to_host()
        .withf(|strides| *strides == Some(&[4, 8][..]))
        .times(1)
        .returning(|_| Completion::ready(Ok(HostValue::Bytes("x".into()))));
    let array: ArrayRef = Arc::new(array);
    let value = wait(&array.copy_to_host(Some(&[4, 8]))).unwrap();
    assert_eq!(value.into_bytes().unwrap(), "x");
    let as_value: ValueRef = array;
    assert!(as_value.into_array().is_some(), "a mock array is an array");
}

#[test]
fn host_buffers_reach_a_mock_client() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut mock = MockClient::new();
    let log = Arc::clone(&seen);
    mock.expect_make_array_from_host_buffer()
        .times(1)
        .returning(move |buffer, _, layout| {
            if let HostData::Borrowed(data) = buffer.data {
                log.lock().unwrap().extend_from_slice(data);
            }
            assert!(layout.is_none());
            Err(Status::unavailable("gone"))
        });
    let real = client();
    let data = [1, 2, 3];
    let buffer = HostBuffer::dense(HostData::Borrowed(&data), ifrt::DType::U8, shape(&[3]));
    let made = mock.make_array_from_host_buffer(buffer, single(&real, 0), None);
    assert_eq!(made.unwrap_err(), Status::unavailable("gone"));
    assert_eq!(*seen.lock().unwrap(), data);
}

#[test]
fn shardings_can_be_made_of_mock_devices() {
    let memory = || {
        let mut memory = MockMemory::new();
        memory.expect_id().return_const(MemoryId(10));
        memory.expect_kind().return_const(MemoryKind::default());
        memory.expect_devices().returning(Vec::new);
        memory
    };
    let mut device = MockDevice::new();
    device.expect_id().return_const(DeviceId(7));
    device.expect_is_addressable().return_const(true);
    device
        .expect_memories()
        .return_const(vec![Arc::new(memory()) as ifrt::MemoryRef]);
    let device: DeviceRef = Arc::new(device);
    let found = ifrt::device::find_memory(&*device, &MemoryKind::default()).unwrap();
    assert_eq!(found.id(), MemoryId(10));
    let sharding = Sharding::single_device(Arc::clone(&device), MemoryKind::default());
    assert_eq!(sharding.devices(), &DeviceList::new([device]));
    assert!(found.devices().is_empty());

    let mut client = MockClient::new();
    client
        .expect_devices()
        .return_const(sharding.devices().devices().to_vec());
    let found = client.lookup_device(DeviceId(7)).unwrap();
    assert_eq!(found.id(), DeviceId(7), "derived methods are not mocked");
    assert!(client.lookup_device(DeviceId(8)).is_err());
}

#[test]
fn executables_and_the_rest() {
    let real = client();
    let list: &'static DeviceList = Box::leak(Box::new(devices(&real, &[0])));
    let mut executable = MockLoadedExecutable::new();
    executable.expect_devices().return_const(Some(list));
    executable.expect_name().return_const("step".to_owned());
    executable
        .expect_execute()
        .withf(|args, options, devices| {
            args.is_empty() && options.launch_id == 3 && devices.is_none()
        })
        .times(1)
        .returning(|_, _, _| Err(Status::resource_exhausted("full")));
    let options = ExecuteOptions {
        launch_id: 3,
        ..ExecuteOptions::default()
    };
    assert_eq!(executable.name(), "step");
    assert_eq!(executable.devices(), Some(list));
    let run = executable.execute(&[], &options, None);
    assert_eq!(run.unwrap_err(), Status::resource_exhausted("full"));

    let mut compiler = MockCompiler::new();
    compiler
        .expect_deserialize_loaded_executable()
        .times(1)
        .returning(|_, _| Completion::ready(Err(Status::data_loss("cut off"))));
    let loaded = compiler.deserialize_loaded_executable("x".into(), None);
    assert_eq!(wait(&loaded).unwrap_err(), Status::data_loss("cut off"));

    let mut unloaded = MockExecutable::new();
    unloaded.expect_num_devices().return_const(2_usize);
    assert_eq!(unloaded.num_devices(), 2);

    let mut callback = MockHostCallback::new();
    callback.expect_serialize().return_const("callback");
    assert_eq!(HostCallback::serialize(&callback), "callback");

    let mut topology = MockTopology::new();
    topology
        .expect_platform_name()
        .return_const("tpu".to_owned());
    assert_eq!(topology.platform_name(), "tpu");

    let mut context = MockUserContext::new();
    context.expect_id().return_const(5_u64);
    let scope = ifrt::user_context::scope(Some(Arc::new(context)));
    assert_eq!(
        ifrt::user_context::current().map(|context| context.id()),
        Some(5)
    );
    drop(scope);

    let mut bundle = MockBundle::new();
    bundle
        .expect_values()
        .withf(|copy| *copy == ArrayCopySemantics::ReuseInput)
        .times(1)
        .returning(|_| Ok(Vec::new()));
    assert!(
        bundle
            .values(ArrayCopySemantics::ReuseInput)
            .unwrap()
            .is_empty()
    );

    let mut tuple = MockTuple::new();
    tuple.expect_arity().return_const(0_usize);
    assert_eq!(tuple.arity(), 0);
    let tuple: ValueRef = Arc::new(tuple);
    assert!(tuple.into_tuple().is_some(), "a mock tuple is a tuple");
}

#[test]
fn mocks_print_their_name() {
    assert_eq!(format!("{:?}", MockArray::new()), "MockArray");
    assert_eq!(
        format!("{:?}", MockLoadedHostCallback::new()),
        "MockLoadedHostCallback"
    );
}
