//! Layers: what a layered client shows, and that it shows nothing else.

mod collector;

use std::sync::Arc;

use ifrt::ArrayCopySemantics::{DonateInput, ReuseInput};
use ifrt::fake::FakeClient;
use ifrt::fake::fault::{Fault, Gate, Op as FakeOp, When};
use ifrt::layer::{LayeredClient, Op, Recorded, Recording, Traced};
use ifrt::value::{to_arrays, to_values};
use ifrt::{
    ArrayRef, Client, Code, CompileOptions, DType, DeviceList, ExecuteOptions, HloProgram,
    HostBuffer, HostData, LoadedExecutableRef, Program, Status, XlaCompileOptions, user_context,
};

use crate::support::*;
use collector::Collector;

fn recorded() -> (Arc<FakeClient>, Arc<dyn Client>, Recording) {
    let fake = client();
    let (layered, recording) = Recorded::wrap(Arc::clone(&fake) as Arc<dyn Client>);
    (fake, layered, recording)
}

fn make(client: &dyn Client, fake: &FakeClient) -> ArrayRef {
    let data = bytes_of(&[0.0, 1.0, 2.0, 3.0]);
    let buffer = HostBuffer::dense(HostData::Shared(data), DType::F32, shape(&[4]));
    client
        .make_array_from_host_buffer(buffer, single(fake, 0), None)
        .unwrap()
}

fn load(client: &dyn Client, module: &'static str) -> LoadedExecutableRef {
    let program = Program::Hlo(HloProgram {
        module: module.into(),
    });
    let options = CompileOptions::Xla(XlaCompileOptions {
        devices: Some(DeviceList::new([Arc::clone(&client.devices()[0])])),
        ..XlaCompileOptions::default()
    });
    wait(&client.default_compiler().compile_and_load(program, options)).unwrap()
}

#[derive(Debug)]
struct Context(u64);

impl user_context::UserContext for Context {
    fn id(&self) -> u64 {
        self.0
    }

    fn debug_string(&self) -> String {
        "a test".to_owned()
    }
}

/// Something of everything, as a program would do it.
fn script(client: &dyn Client, fake: &FakeClient) {
    let _scope = user_context::scope(Some(Arc::new(Context(100))));
    let array = make(client, fake);
    assert_eq!(read(&array).unwrap(), [0.0, 1.0, 2.0, 3.0]);
    let executable = load(client, "fake:add_one(f32[4] donated) -> (f32[4])");
    let ran = executable
        .execute(&[Arc::clone(&array)], &ExecuteOptions::default(), None)
        .unwrap();
    assert_eq!(read(&ran.outputs[0]).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let again = executable.execute(&[array], &ExecuteOptions::default(), None);
    assert_eq!(again.unwrap_err().code(), Code::InvalidArgument);
    let bundle = client
        .bundle(&to_values(&ran.outputs), DonateInput)
        .unwrap();
    assert_eq!(wait(&bundle.delete()), Ok(()));
}

#[test]
fn a_script_leaves_a_span_per_operation() {
    let fake = client();
    let traced = Traced::wrap(Arc::clone(&fake) as Arc<dyn Client>);
    let collector = Collector::default();
    tracing::subscriber::with_default(collector.clone(), || script(&*traced, &fake));
    let expected = "\
ifrt.make_array_from_host_buffer bytes=16 client_id=ID devices=0 dtype=f32 elapsed_us=N \
op=make_array_from_host_buffer outputs=0x1 shape=4 user_context=100
ifrt.copy_to_host array=0x1 client_id=ID devices=0 dtype=f32 elapsed_us=N op=copy_to_host shape=4 \
user_context=100
ifrt.compile_and_load client_id=ID elapsed_us=N op=compile_and_load user_context=100
ifrt.execute array=0x1 client_id=ID devices=0 elapsed_us=N executable=0x2 op=execute outputs=0x3 \
user_context=100
ifrt.copy_to_host array=0x3 client_id=ID devices=0 dtype=f32 elapsed_us=N op=copy_to_host shape=4 \
user_context=100
ifrt.execute array=0x1 client_id=ID code=INVALID_ARGUMENT devices=0 elapsed_us=N executable=0x2 \
op=execute user_context=100
ifrt.bundle array=0x3 client_id=ID elapsed_us=N op=bundle outputs=0x4 user_context=100
ifrt.delete array=0x4 client_id=ID elapsed_us=N op=delete user_context=100
";
    assert_eq!(collector.text(), expected);
    assert_eq!(collector.open(), 0, "every span is closed");
}

#[test]
fn a_layer_below_is_inside_the_span_above() {
    let fake = client();
    let below = Traced::wrap(Arc::clone(&fake) as Arc<dyn Client>);
    let above = Traced::wrap(below);
    let collector = Collector::default();
    tracing::subscriber::with_default(collector.clone(), || drop(make(&*above, &fake)));
    let names: Vec<String> = collector.tree();
    assert_eq!(
        names,
        [
            "ifrt.make_array_from_host_buffer",
            "  ifrt.make_array_from_host_buffer"
        ]
    );
}

#[test]
fn the_span_of_a_slow_operation_stays_open_until_its_result() {
    let fake = client();
    let traced = Traced::wrap(Arc::clone(&fake) as Arc<dyn Client>);
    let collector = Collector::default();
    let gate = Gate::new();
    let slow = Fault::Slow(gate.clone());
    fake.faults().add(FakeOp::Delete, When::Once, slow);
    tracing::subscriber::with_default(collector.clone(), || {
        let array = make(&*traced, &fake);
        let deletion = array.delete();
        assert_eq!(deletion.peek(), None);
        assert_eq!(collector.open(), 1);
        gate.open();
        assert_eq!(wait(&deletion), Ok(()));
        assert_eq!(collector.open(), 0);
    });
}

#[test]
fn a_script_is_recorded() {
    let (fake, layered, recording) = recorded();
    script(&*layered, &fake);
    let message = recording.operations()[5].outcome.clone().unwrap();
    let expected = format!(
        "\
1 = make_array_from_host_buffer()
copy_to_host(1)
compile_and_load()
3 = execute(1)
copy_to_host(3)
execute(1) failed: {}
4 = bundle(3)
delete(4)
",
        message.unwrap_err()
    );
    assert_eq!(recording.to_string(), expected);
    let first = &recording.operations()[0];
    assert_eq!(first.op, Op::MakeArrayFromHostBuffer);
    assert_eq!(first.bytes, Some(16));
    assert_eq!(first.user_context, Some(100));
    assert_eq!(first.devices.as_ref().unwrap().len(), 1);
    assert_eq!(recording.count(Op::Execute), 2);
}

#[test]
fn an_operation_is_under_way_until_its_completion_is_ready() {
    let (fake, layered, recording) = recorded();
    let array = make(&*layered, &fake);
    let gate = Gate::new();
    let slow = Fault::Slow(gate.clone());
    fake.faults().add(FakeOp::CopyToHost, When::Once, slow);
    let read = array.copy_to_host(None);
    assert_eq!(recording.operations()[1].outcome, None);
    assert!(recording.to_string().contains("copy_to_host(1) under way"));
    gate.open();
    assert!(wait(&read).is_ok());
    assert_eq!(recording.operations()[1].outcome, Some(Ok(vec![])));
    let lost = Fault::DropPromise;
    fake.faults().add(FakeOp::CopyToHost, When::Once, lost);
    assert!(wait(&array.copy_to_host(None)).is_err());
    let outcome = recording.operations()[2].outcome.clone().unwrap();
    assert_eq!(outcome.unwrap_err().code(), Code::Internal);
}

#[test]
fn values_of_a_layer_belong_to_it() {
    let (fake, layered, _) = recorded();
    let array = make(&*layered, &fake);
    assert!(Arc::ptr_eq(&array.client(), &layered));
    let compiled = load(&*layered, "fake:identity(f32[4]) -> (f32[4])");
    assert!(Arc::ptr_eq(&compiled.client(), &layered));
    let ran = compiled.execute(&[Arc::clone(&array)], &ExecuteOptions::default(), None);
    assert!(Arc::ptr_eq(&ran.unwrap().outputs[0].client(), &layered));
    let tuple = layered
        .make_tuple(&to_values(&[Arc::clone(&array)]))
        .unwrap();
    assert!(Arc::ptr_eq(&tuple.client(), &layered));
    let unpacked = to_arrays(&tuple.unpack().unwrap()).unwrap();
    assert!(Arc::ptr_eq(&unpacked[0], &array), "the very object");
    let bundle = layered.bundle(&to_values(&unpacked), ReuseInput).unwrap();
    assert!(Arc::ptr_eq(&bundle.client(), &layered));
    let taken = to_arrays(&bundle.values(ReuseInput).unwrap()).unwrap();
    assert!(Arc::ptr_eq(&taken[0].client(), &layered));
    assert!(Arc::ptr_eq(taken[0].sharding(), array.sharding()));
    let inner: Arc<dyn std::any::Any + Send + Sync> = Arc::clone(&layered) as _;
    let inner = inner.downcast::<LayeredClient<Recorded>>().unwrap();
    let expected = fake as Arc<dyn Client>;
    assert!(Arc::ptr_eq(inner.inner(), &expected));
}

#[test]
fn tuples_inside_bundles_stay_tuples() {
    let (fake, layered, _) = recorded();
    let array = make(&*layered, &fake);
    let tuple = layered.make_tuple(&to_values(&[array])).unwrap();
    let bundle = layered.bundle(&[tuple], ReuseInput).unwrap();
    let value = bundle.values(ReuseInput).unwrap().remove(0);
    let tuple = value.into_tuple().unwrap();
    let array = to_arrays(&tuple.unpack().unwrap()).unwrap().remove(0);
    assert!(Arc::ptr_eq(&array.client(), &layered));
    assert_eq!(read(&array).unwrap(), [0.0, 1.0, 2.0, 3.0]);
}

#[test]
fn arrays_of_other_layers_are_for_the_runtime_to_refuse() {
    let (fake, layered, recording) = recorded();
    let (_, other, _) = recorded();
    let own = make(&*layered, &fake);
    let bare = make(&*fake, &fake);
    let foreign = {
        let data = HostData::Borrowed(&[0; 16]);
        let buffer = HostBuffer::dense(data, DType::F32, shape(&[4]));
        let device = Arc::clone(&other.devices()[0]);
        let sharding = ifrt::Sharding::single_device(device, ifrt::MemoryKind::default());
        other
            .make_array_from_host_buffer(buffer, sharding, None)
            .unwrap()
    };
    let refused = layered.copy_arrays(&[own, foreign], None, None, ReuseInput);
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(recording.operations().last().unwrap().inputs, [1, 0]);
    // An array of the client below is no stranger to it.
    assert!(layered.copy_arrays(&[bare], None, None, ReuseInput).is_ok());
}

#[test]
fn errors_pass_unchanged() {
    let (fake, layered, _) = recorded();
    let array = make(&*layered, &fake);
    let broken = Status::data_loss("the very words").with_payload("key", "value");
    let fail = Fault::Fail(broken.clone());
    fake.faults().add(FakeOp::CopyToHost, When::Once, fail);
    assert_eq!(wait(&array.copy_to_host(None)), Err(broken));
    assert_eq!(format!("{array:?}"), {
        let bare = make(&*fake, &fake);
        format!("{bare:?}")
    });
    assert_eq!(array.dtype(), DType::F32);
}
