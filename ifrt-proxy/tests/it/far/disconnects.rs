//! The end of a connection in the middle of each operation.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use ifrt::conformance::ProgramKind;
use ifrt::{ArrayRef, Client, Code, Completion, DType, MemoryKind, Shape, Value};
use ifrt_proxy::client::{ClientOptions, ProxyClient};
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request as Body;

use super::middle::{Fate, Middle};
use super::{compile, connect, put, read, run};

/// Within this time everything has to have failed.
const SOON: Duration = Duration::from_secs(1);

#[track_caller]
fn lost<T: Clone + std::fmt::Debug>(result: ifrt::Result<T>) {
    let error = result.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
}

#[track_caller]
fn soon<T: Clone + std::fmt::Debug>(completion: &Completion<T>) {
    lost(completion.wait_timeout(SOON).expect("it hangs"));
}

/// Ends the stream in place of the answer to requests of this kind.
fn end_at(middle: &Middle, is_it: fn(&Body) -> bool) {
    middle.respond(move |body, response| {
        if is_it(body) {
            return Fate::End(Err(tonic::Status::aborted("the end")));
        }
        Fate::Send(vec![response])
    });
}

#[test]
fn in_the_middle_of_each_operation() {
    type Case = (
        &'static str,
        fn(&Body) -> bool,
        fn(&std::sync::Arc<ProxyClient>, &ArrayRef),
    );
    let cases: [Case; 6] = [
        (
            "ready",
            |body| matches!(body, Body::CheckValueReadyRequest(_)),
            |_, array| soon(&array.ready()),
        ),
        (
            "reading",
            |body| matches!(body, Body::CopyToHostBufferRequest(_)),
            |_, array| soon(&array.copy_to_host(None)),
        ),
        (
            "compiling",
            |body| matches!(body, Body::CompileRequest(_)),
            |client, _| lost(compile(client, ProgramKind::AddOne).map(drop)),
        ),
        (
            "the first execution",
            |body| matches!(body, Body::LoadedExecutableExecuteRequest(_)),
            |client, array| {
                let executable = compile(client, ProgramKind::AddOne).unwrap();
                lost(run(&executable, &[ArrayRef::clone(array)]).map(drop));
                assert!(!Value::is_deleted(&**array));
            },
        ),
        (
            "a layout",
            |body| matches!(body, Body::GetDefaultLayoutRequest(_)),
            |client, _| {
                let shape = Shape::new([7]).unwrap();
                let device = &client.devices()[0];
                let kind = MemoryKind::default();
                lost(client.default_layout(DType::F32, &shape, device, &kind));
            },
        ),
        (
            "an assignment",
            |body| matches!(body, Body::GetDefaultDeviceAssignmentRequest(_)),
            |client, _| lost(client.default_device_assignment(1, 1)),
        ),
    ];
    let middle = Middle::start();
    for (what, is_it, operation) in cases {
        middle.faults.lock().unwrap().respond = None;
        let (sender, heard) = mpsc::channel();
        let options = ClientOptions::new().on_disconnect(move |status| {
            sender.send(status).unwrap();
        });
        let client = ProxyClient::connect(&middle.address, options).unwrap();
        let array = put(&client);
        super::result(&array.ready()).unwrap();
        let fresh = put(&client);
        super::result(&fresh.copy_to_host(None)).unwrap();
        // Nothing but the operation is under way.
        let pending = if what == "ready" { &fresh } else { &array };
        end_at(&middle, is_it);
        let began = Instant::now();
        operation(&client, pending);
        assert!(began.elapsed() < SOON, "{what} took {:?}", began.elapsed());
        let cause = heard.recv_timeout(SOON).unwrap();
        assert_eq!(cause.code(), Code::Unavailable, "{what}");
        assert!(cause.message().contains("the end"), "{what}: {cause}");
        afterwards(&client, &array, &cause);
    }
    middle.faults.lock().unwrap().respond = None;
    let again = connect(&middle.address);
    assert_eq!(read(&put(&again)).unwrap(), [0, 1, 2, 3, 4, 5]);
}

/// Everything that needs the server fails, and everything else goes on.
fn afterwards(client: &std::sync::Arc<ProxyClient>, array: &ArrayRef, cause: &ifrt::Status) {
    assert_eq!(client.disconnected().as_ref(), Some(cause));
    soon(&array.copy_to_host(None));
    lost(compile(client, ProgramKind::AddOne).map(drop));
    let made = put(client);
    soon(&made.ready());
    assert!(!Value::is_deleted(&*made));
    made.delete().detach();
    array.delete().detach();
    assert!(Value::is_deleted(&*made) && Value::is_deleted(&**array));
    assert_eq!(client.platform_name(), "fake");
}

/// A client that is dropped is not lost.
#[test]
fn no_hook_for_a_client_that_is_dropped() {
    let middle = Middle::start();
    let (sender, heard) = mpsc::channel::<ifrt::Status>();
    let options = ClientOptions::new().on_disconnect(move |status| sender.send(status).unwrap());
    let client = ProxyClient::connect(&middle.address, options).unwrap();
    let read = put(&client).copy_to_host(None);
    drop(client);
    // What was asked for before still comes.
    super::result(&read).unwrap();
    drop(read);
    // The hook is gone without having been called.
    assert!(
        heard
            .recv_timeout(super::PATIENCE)
            .is_err_and(|e| e == mpsc::RecvTimeoutError::Disconnected)
    );
}

/// A completion whose callback would have to wait for itself is an error and no hang.
#[test]
fn waiting_in_a_callback_is_refused() {
    let middle = Middle::start();
    let client = connect(&middle.address);
    let (sender, heard) = mpsc::channel();
    let array = put(&client);
    let inside = std::sync::Arc::clone(&client);
    let (hold, held) = mpsc::channel();
    middle.respond(move |body, response| {
        if matches!(body, Body::CheckValueReadyRequest(_)) {
            hold.send(response).unwrap();
            return Fate::Send(vec![]);
        }
        Fate::Send(vec![response])
    });
    array.ready().on_ready(move |_| {
        sender.send(inside.default_device_assignment(1, 1)).unwrap();
    });
    middle.send(Ok(held.recv_timeout(super::PATIENCE).unwrap()));
    let error = heard.recv_timeout(super::PATIENCE).unwrap().unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(error.message().contains("another thread"), "{error}");
}

#[test]
fn an_upload_that_fails_ends_the_session() {
    let middle = Middle::start();
    let client = connect(&middle.address);
    middle.faults.lock().unwrap().store = Some(tonic::Status::data_loss("no room"));
    let array = put(&client);
    let error = super::result(&array.ready()).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.message().contains("no room"), "{error}");
}

#[test]
fn nobody_answers() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("grpc://{}", listener.local_addr().unwrap());
    let options = ClientOptions::new().connect_timeout(Duration::from_millis(200));
    let began = Instant::now();
    let error = ProxyClient::connect(&address, options).unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
    assert!(error.message().contains(&address), "{error}");
    assert!(began.elapsed() < SOON * 5);
}
