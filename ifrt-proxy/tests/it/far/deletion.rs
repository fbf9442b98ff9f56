//! Deletion, whatever the server makes of it.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use ifrt::conformance::ProgramKind;
use ifrt::proto::tensorflow::StatusProto;
use ifrt::value::to_values;
use ifrt::{ArrayRef, Client};
use ifrt_proxy::client::ProxyClient;
use ifrt_proxy::proto::xla::ifrt::proxy::IfrtResponse;
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_request::Request as Body;

use super::middle::{Fate, Middle};
use super::{compile, connect, put, read, run};

const fn is_about_deletion(body: &Body) -> bool {
    matches!(
        body,
        Body::DeleteArrayRequest(_) | Body::DestructArrayRequest(_) | Body::CheckFutureRequest(_)
    )
}

/// Deletes many arrays and works on. Nothing of it may be felt.
fn work(client: &Arc<ProxyClient>) {
    let executable = compile(client, ProgramKind::AddOne).unwrap();
    for _ in 0..3 {
        let arrays: Vec<ArrayRef> = (0..50).map(|_| put(client)).collect();
        let kept = run(&executable, &arrays[..1]).unwrap();
        for array in &arrays {
            let deletion = array.delete();
            assert_eq!(deletion.peek(), Some(Ok(())));
            assert!(array.is_deleted());
            array.delete().detach();
        }
        assert!(read(&arrays[0]).is_err());
        drop(arrays);
        assert_eq!(read(&kept).unwrap(), [1, 2, 3, 4, 5, 6]);
    }
    assert_eq!(client.disconnected(), None);
}

#[test]
fn answered_with_errors() {
    let middle = Middle::start();
    let client = connect(&middle.address);
    middle.respond(|body, mut response| {
        if is_about_deletion(body) {
            response.response = None;
            let metadata = response.response_metadata.as_mut().unwrap();
            metadata.status = Some(StatusProto {
                code: 13,
                message: "no".into(),
                ..StatusProto::default()
            });
        }
        Fate::Send(vec![response])
    });
    work(&client);
}

#[test]
fn never_answered() {
    let middle = Middle::start();
    let client = connect(&middle.address);
    middle.respond(|body, response| {
        Fate::Send(if is_about_deletion(body) {
            vec![]
        } else {
            vec![response]
        })
    });
    work(&client);
}

#[test]
fn answered_twice() {
    let middle = Middle::start();
    let client = connect(&middle.address);
    middle.respond(|body, response| {
        let count = if is_about_deletion(body) { 2 } else { 1 };
        Fate::Send(vec![response; count])
    });
    work(&client);
}

#[test]
fn answered_late_and_out_of_order() {
    let middle = Middle::start();
    let client = connect(&middle.address);
    let held: Arc<Mutex<Vec<IfrtResponse>>> = Arc::default();
    let holding = Arc::clone(&held);
    middle.respond(move |body, response| {
        if is_about_deletion(body) {
            holding.lock().unwrap().push(response);
            return Fate::Send(vec![]);
        }
        Fate::Send(vec![response])
    });
    work(&client);
    let mut late = std::mem::take(&mut *held.lock().unwrap());
    assert!(late.len() >= 2, "{} answers were held", late.len());
    late.reverse();
    for response in late {
        middle.send(Ok(response));
    }
    work(&client);
}

/// Waits until the server in the middle has seen something.
fn until(what: &str, mut seen: impl FnMut() -> bool) {
    let began = Instant::now();
    while !seen() {
        assert!(
            began.elapsed() < super::PATIENCE,
            "waited in vain for {what}"
        );
        std::thread::yield_now();
    }
}

/// A thousand deletions are few messages, and an array that nobody else has needs one kind of them.
#[test]
fn a_thousand_deletions_are_few_messages() {
    let middle = Middle::start();
    let client = connect(&middle.address);
    let arrays: Vec<ArrayRef> = (0..1000).map(|_| put(&client)).collect();
    super::result(&client.ready(&to_values(&arrays))).unwrap();
    let began = Instant::now();
    for array in arrays {
        array.delete().detach();
    }
    let took = began.elapsed();
    until("a destruction", || {
        middle.requests("DestructArrayRequest") > 0
    });
    // Whatever is sent later takes all that is left along.
    read(&put(&client)).unwrap();
    let deletions = middle.requests("DeleteArrayRequest");
    let destructions = middle.requests("DestructArrayRequest");
    // The linger of a millisecond decides how many batches there are.
    let batches = usize::try_from(took.as_millis()).unwrap() + 3;
    assert!(destructions <= batches, "{destructions} in {took:?}");
    assert!(deletions <= batches, "{deletions} in {took:?}");
    assert_eq!(middle.requests("CheckFutureRequest"), 0);
    assert_eq!(middle.requests("IsArrayDeletedRequest"), 0);
}

/// What shares buffers dies together, and that is known here.
#[test]
fn aliases_die_together_without_asking() {
    use ifrt::{ArrayCopySemantics, ShardSemantics, Value};
    let middle = Middle::start();
    let client = connect(&middle.address);
    let array = put(&client);
    let reuse = ArrayCopySemantics::ReuseInput;
    let shard = array
        .disassemble(reuse, ShardSemantics::All)
        .unwrap()
        .remove(0);
    let same = client
        .copy_arrays(&[Arc::clone(&array)], None, None, reuse)
        .unwrap()
        .remove(0);
    let copy = ArrayCopySemantics::AlwaysCopy;
    let other = client
        .copy_arrays(&[Arc::clone(&array)], None, None, copy)
        .unwrap()
        .remove(0);
    shard.delete().detach();
    let dead = |array: &ArrayRef| Value::is_deleted(&**array);
    assert!(dead(&array) && dead(&same) && dead(&shard) && !dead(&other));
    assert_eq!(read(&other).unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(middle.requests("IsArrayDeletedRequest"), 0);
}

/// The server hears of deletions also if nothing else is sent.
#[test]
fn an_idle_client_sends_its_deletions() {
    let middle = Middle::start();
    let client = connect(&middle.address);
    let array = put(&client);
    super::result(&array.ready()).unwrap();
    array.delete().detach();
    until("the deletion", || {
        middle.requests("DeleteArrayRequest") == 1
    });
    drop(array);
    until("the destruction", || {
        middle.requests("DestructArrayRequest") == 1
    });
    assert!(client.disconnected().is_none());
}
