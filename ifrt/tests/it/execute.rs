//! EXE: executables.

mod compile;
mod faults;

use std::collections::BTreeSet;
use std::sync::Arc;

use ifrt::xla::HloSharding;
use ifrt::{Code, ExecuteOptions, MemoryKind, Status};

use crate::support::*;

#[test]
fn exe_06_runs_and_tells_its_status() {
    let client = client();
    let module = "fake:add_one(f32[2,3]) -> (f32[2,3])";
    let executable = wait(&compile(&client, module, None)).unwrap();
    assert_eq!(executable.name(), "add_one");
    assert_eq!(executable.num_devices(), 1);
    let input = array(&client, &[2, 3], &single(&client, 0));
    let options = ExecuteOptions {
        fill_status: true,
        ..ExecuteOptions::default()
    };
    let result = executable
        .execute(&[Arc::clone(&input)], &options, None)
        .unwrap();
    assert_eq!(wait(&result.status.unwrap()), Ok(()));
    assert_eq!(
        read(&result.outputs[0]).unwrap(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
    assert_eq!(
        read(&input).unwrap(),
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
        "not donated"
    );
}

#[test]
fn exe_14_donation() {
    let client = client();
    let module = "fake:add(f32[6] donated, f32[6] donated) -> (f32[6])";
    let executable = wait(&compile(&client, module, None)).unwrap();
    assert_eq!(executable.donatable_input_indices(), Ok(vec![0, 1]));
    let on = single(&client, 0);
    let (donated, kept) = (array(&client, &[6], &on), array(&client, &[6], &on));
    let earlier = donated.copy_to_host(None);
    let options = ExecuteOptions {
        non_donatable_input_indices: BTreeSet::from([1]),
        fill_status: true,
        ..ExecuteOptions::default()
    };
    let args = [Arc::clone(&donated), Arc::clone(&kept)];
    let result = executable.execute(&args, &options, None).unwrap();
    assert!(donated.is_deleted());
    assert_eq!(
        wait(&donated.ready()),
        Err(Status::invalid_argument(ifrt::value::READY_ON_DELETED))
    );
    assert!(!kept.is_deleted());
    assert_eq!(wait(&kept.ready()), Ok(()));
    let before = wait(&earlier).unwrap().into_bytes().unwrap();
    assert_eq!(floats_of(&before), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(wait(&result.status.unwrap()), Ok(()));
    assert_eq!(
        read(&result.outputs[0]).unwrap(),
        [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    );
    assert_eq!(client.live_bytes(), 48, "the kept input and the output");
}

#[test]
fn exe_01_sharded_programs() {
    let client = client();
    let module = "fake:identity(f32[4,2] tiled[2,1]) -> (f32[4,2] in pinned_host)";
    let executable = wait(&compile(&client, module, Some(devices(&client, &[2, 0])))).unwrap();
    assert_eq!(executable.num_devices(), 2);
    assert_eq!(
        executable.parameter_shardings(),
        Some(vec![HloSharding::tile([2, 1]).unwrap()])
    );
    assert_eq!(
        executable.output_shardings(),
        Some(vec![HloSharding::Replicated])
    );
    assert_eq!(
        executable.output_memory_kinds(),
        Ok(vec![vec!["pinned_host".to_owned()]])
    );
    let input = array(&client, &[4, 2], &tiled(&client, &[2, 0], &[2, 1]));
    let result = executable
        .execute(&[input], &ExecuteOptions::default(), None)
        .unwrap();
    assert!(result.status.is_none());
    let output = &result.outputs[0];
    assert_eq!(
        output.sharding().memory_kind(),
        &MemoryKind::new("pinned_host")
    );
    let whole: Vec<f32> = (0..8_u8).map(f32::from).collect();
    assert_eq!(read_shards(output).unwrap(), [whole.clone(), whole]);
}

#[test]
fn exe_10_arguments_that_do_not_fit() {
    let client = client();
    let module = "fake:add(f32[4] donated, f32[4]) -> (f32[4])";
    let executable = wait(&compile(&client, module, None)).unwrap();
    let here = single(&client, 0);
    let good = array(&client, &[4], &here);
    let stranger = self::client();
    let foreign = array(&stranger, &[4], &single(&stranger, 0));
    let deleted = array(&client, &[4], &here);
    assert_eq!(wait(&deleted.delete()), Ok(()));
    for (other, text) in [
        (
            array(&client, &[5], &here),
            "argument 1 must be f32[4], but is f32[5]",
        ),
        (
            array(&client, &[4], &single(&client, 1)),
            "argument 1 must be on devices [0]",
        ),
        (foreign, "belongs to another client"),
        (
            deleted,
            "Execute() called on deleted or donated buffer (array 1)",
        ),
        (Arc::clone(&good), "asked to donate a buffer that another"),
    ] {
        let args = [Arc::clone(&good), other];
        let status = executable
            .execute(&args, &ExecuteOptions::default(), None)
            .unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(text), "{status}");
        assert!(
            !good.is_deleted(),
            "a refused run donates nothing: {status}"
        );
    }
    let count = executable
        .execute(&[], &ExecuteOptions::default(), None)
        .unwrap_err();
    assert!(count.message().contains("supplied 0 arguments"), "{count}");
}
