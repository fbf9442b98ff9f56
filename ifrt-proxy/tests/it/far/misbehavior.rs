//! A server that misbehaves: errors, never panics, hangs or aborts.

use std::sync::Arc;

use ifrt::conformance::ProgramKind;
use ifrt::{ArrayRef, Code, ExecuteOptions, Result};
use ifrt_proxy::client::{ClientOptions, ProxyClient};
use ifrt_proxy::proto::xla::ifrt::proxy::ifrt_response::Response as Answer;
use ifrt_proxy::proto::xla::ifrt::proxy::*;

use super::middle::{Fate, Middle};
use super::{compile, connect, put, read, result};

/// Changes the response if it is of the kind that `change` looks for.
type Change = fn(&mut IfrtResponse);

/// Everything that a program does.
fn work(client: &Arc<ProxyClient>) -> Result<()> {
    let executable = compile(client, ProgramKind::AddOne)?;
    let options = ExecuteOptions {
        fill_status: true,
        ..ExecuteOptions::default()
    };
    let argument: ArrayRef = put(client);
    result(&argument.ready())?;
    for _ in 0..2 {
        let run = executable.execute(&[Arc::clone(&argument)], &options, None)?;
        if let Some(status) = &run.status {
            result(status)?;
        }
        for output in &run.outputs {
            read(output)?;
        }
    }
    Ok(())
}

fn misbehaves(name: &str, change: Change, code: Code) {
    let middle = Middle::start();
    let client = connect(&middle.address);
    middle.respond(move |_, mut response| {
        change(&mut response);
        Fate::Send(vec![response])
    });
    let error = work(&client).expect_err(name);
    assert_eq!(error.code(), code, "{name}: {error}");
}

fn compiled(response: &mut IfrtResponse) -> Option<&mut CompileResponse> {
    match &mut response.response {
        Some(Answer::CompileResponse(compiled)) => Some(compiled),
        _ => None,
    }
}

fn executed(
    response: &mut IfrtResponse,
) -> Option<&mut loaded_executable_execute_response::Output> {
    match &mut response.response {
        Some(Answer::LoadedExecutableExecuteResponse(run)) => run.outputs.first_mut(),
        _ => None,
    }
}

#[test]
fn responses_that_make_no_sense() {
    let cases: [(&str, Change, Code); 17] = [
        (
            "no metadata",
            |r| r.response_metadata = None,
            Code::Unavailable,
        ),
        ("no body", |r| r.response = None, Code::Internal),
        (
            "a body of another kind",
            |r| r.response = Some(Answer::CheckFutureResponse(CheckFutureResponse {})),
            Code::Internal,
        ),
        (
            "no handle of the executable",
            |r| {
                compiled(r)
                    .into_iter()
                    .for_each(|c| c.loaded_executable_handle = 0)
            },
            Code::Internal,
        ),
        (
            "another handle of the executable",
            |r| {
                compiled(r)
                    .into_iter()
                    .for_each(|c| c.loaded_executable_handle = 77)
            },
            Code::NotFound,
        ),
        (
            "an unknown device",
            |r| {
                compiled(r)
                    .into_iter()
                    .for_each(|c| c.device_ids = vec![99])
            },
            Code::InvalidArgument,
        ),
        (
            "an unknown addressable device",
            |r| {
                compiled(r)
                    .into_iter()
                    .for_each(|c| c.addressable_device_ids = vec![-1])
            },
            Code::InvalidArgument,
        ),
        (
            "a negative number of devices",
            |r| compiled(r).into_iter().for_each(|c| c.num_devices = -1),
            Code::Internal,
        ),
        (
            "an output without a handle",
            |r| executed(r).into_iter().for_each(|o| o.array_handle = 0),
            Code::Internal,
        ),
        (
            "an output with another handle",
            |r| {
                executed(r)
                    .into_iter()
                    .for_each(|o| o.array_handle = 1 << 60)
            },
            Code::NotFound,
        ),
        (
            "an output without a dtype",
            |r| executed(r).into_iter().for_each(|o| o.dtype = None),
            Code::Internal,
        ),
        (
            "an output of an unknown dtype",
            |r| {
                for dtype in executed(r).into_iter().filter_map(|o| o.dtype.as_mut()) {
                    dtype.kind = 12345;
                }
            },
            Code::Internal,
        ),
        (
            "an output of a monstrous shape",
            |r| {
                for shape in executed(r).into_iter().filter_map(|o| o.shape.as_mut()) {
                    shape.dims = vec![1 << 40, 1 << 40];
                }
            },
            Code::Internal,
        ),
        (
            "an output of another shape",
            |r| {
                for shape in executed(r).into_iter().filter_map(|o| o.shape.as_mut()) {
                    shape.dims = vec![1 << 20, 1 << 20];
                }
            },
            Code::Internal,
        ),
        (
            "an output without a sharding",
            |r| executed(r).into_iter().for_each(|o| o.sharding = None),
            Code::Internal,
        ),
        (
            "no outputs",
            |r| {
                if let Some(Answer::LoadedExecutableExecuteResponse(run)) = &mut r.response {
                    run.outputs.clear();
                }
            },
            Code::Internal,
        ),
        (
            "no status",
            |r| {
                if let Some(Answer::LoadedExecutableExecuteResponse(run)) = &mut r.response {
                    run.status_handle = 0;
                }
            },
            Code::Internal,
        ),
    ];
    for (name, change, code) in cases {
        misbehaves(name, change, code);
    }
}

#[test]
fn contents_that_are_not_as_long_as_they_should_be() {
    let middle = Middle::start();
    let client = connect(&middle.address);
    let array = put(&client);
    let changes: [fn(&mut Vec<GrpcHostBufferLookupResponse>); 3] = [
        |chunks| chunks.clear(),
        |chunks| chunks.extend(chunks.clone()),
        |chunks| chunks[0].data = chunks[0].data.slice(1..),
    ];
    for change in changes {
        middle.faults.lock().unwrap().chunks = Some(Box::new(move |mut chunks| {
            change(&mut chunks);
            chunks.into_iter().map(Ok).collect()
        }));
        let error = read(&array).unwrap_err();
        assert_eq!(error.code(), Code::Internal, "{error}");
        assert!(error.message().contains("size mismatch"), "{error}");
    }
    middle.faults.lock().unwrap().chunks = Some(Box::new(|_| {
        vec![Err(tonic::Status::not_found("it is gone"))]
    }));
    assert_eq!(read(&array).unwrap_err().code(), Code::NotFound);
    // One read that fails is no harm to the others.
    middle.faults.lock().unwrap().chunks = None;
    assert_eq!(read(&array).unwrap(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn answers_that_nobody_asked_for() {
    let middle = Middle::start();
    let client = connect(&middle.address);
    for op_id in [0, 1, 1 << 40, u64::MAX] {
        middle.send(Ok(IfrtResponse {
            response_metadata: Some(ResponseMetadata {
                op_id,
                seq_num: -7,
                destroyed_user_context_ids: vec![0, 5, 5, u64::MAX],
                ..ResponseMetadata::default()
            }),
            response: None,
        }));
    }
    assert_eq!(work(&client), Ok(()));
}

#[test]
fn a_message_that_is_too_large() {
    let middle = Middle::start();
    let options = ClientOptions::new().max_message_bytes(1 << 16);
    let client = ProxyClient::connect(&middle.address, options).unwrap();
    middle.respond(|_, mut response| {
        let metadata = response.response_metadata.as_mut().unwrap();
        metadata.destroyed_user_context_ids = vec![1; 1 << 14];
        Fate::Send(vec![response])
    });
    let error = work(&client).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
}

#[test]
fn a_server_that_contradicts_itself_at_the_start() {
    type Change = fn(&mut InitResponse);
    let changes: [(&str, Change); 6] = [
        ("an unknown memory", |init| {
            init.all_devices[0].memory_ids = vec![4711]
        }),
        ("an unknown default memory", |init| {
            init.all_devices[0].default_memory_id = Some(4711)
        }),
        ("an unknown device", |init| {
            init.primary_device_ids.push(4711)
        }),
        ("an unknown device of a memory", |init| {
            init.memories[0].device_ids.push(4711)
        }),
        ("one device twice", |init| {
            init.all_devices.push(init.all_devices[0].clone())
        }),
        ("one memory twice", |init| {
            init.memories.push(init.memories[0].clone())
        }),
    ];
    for (name, change) in changes {
        let middle = Middle::start();
        middle.respond(move |_, mut response| {
            if let Some(Answer::InitResponse(init)) = &mut response.response {
                change(init);
            }
            Fate::Send(vec![response])
        });
        let error = ProxyClient::connect(&middle.address, ClientOptions::new()).expect_err(name);
        let codes = [Code::NotFound, Code::FailedPrecondition];
        assert!(codes.contains(&error.code()), "{name}: {error}");
    }
}
