//! Programs and options that plugins do not survive, or that make no sense.

use ifrt::program::{CompileOptions, HloProgram, Program, XlaCompileOptions};
use ifrt::proto::xla::DeviceAssignmentProto;
use ifrt::proto::xla::device_assignment_proto::ComputationDevice;
use ifrt::{Client, Code, DeviceList, Status};
use ifrt_pjrt::PjrtClient;
use prost::Message;

use crate::support::*;

#[track_caller]
fn check(error: &Status, part: &str) {
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.message().contains(part), "{error}");
}

fn compile_bytes(client: &PjrtClient, module: &[u8]) -> Status {
    try_compile(client, module.to_vec(), &options(1)).unwrap_err()
}

#[test]
fn modules_that_cannot_be_read() {
    let client = client(1);
    check(&compile_bytes(&client, b""), "the module is empty");
    check(
        &compile_bytes(&client, b"\x7fELF\xff\xfe"),
        "neither MLIR bytecode nor MLIR text",
    );
    check(
        &compile_bytes(&client, b"ML\xefR\x0dMLIR21\0rest"),
        "without a version",
    );
    // From here on the plugin reads. What matters is that it gives an error.
    for text in [
        "no module",
        "module {",
        "module {}",
        "module { func.func @f() { return } }",
    ] {
        let error = compile_bytes(&client, text.as_bytes());
        assert!(!error.message().is_empty(), "{text}: {error}");
    }
    let unknown = add_one("4").replace("stablehlo.add", "stablehlo.plus");
    compile_bytes(&client, unknown.as_bytes());
    let custom = add_one("4").replace(
        "stablehlo.add %x, %one : tensor<4xf32>",
        "stablehlo.custom_call @no_such_target(%x) : (tensor<4xf32>) -> tensor<4xf32>",
    );
    assert!(
        compile_bytes(&client, custom.as_bytes())
            .message()
            .contains("no_such_target")
    );
    // The client is as good as before.
    compile(&client, &add_one("4"));
}

#[test]
fn truncated_modules() {
    let client = client(1);
    let artifact = include_bytes!("data/add_one.mlirbc");
    let f = try_compile(&client, artifact.to_vec(), &options(1)).unwrap();
    let y = run(&f, &[&put(&client, &[4], &[1.0; 4])]).unwrap();
    assert_eq!(fetch(&y[0]), [2.0; 4]);
    for len in 0..artifact.len() {
        compile_bytes(&client, &artifact[..len]);
    }
    // The reader of text used to run past the end.
    let text = add_one("4");
    let end = text.rfind('}').unwrap();
    for len in 0..end {
        compile_bytes(&client, &text.as_bytes()[..len]);
    }
}

#[test]
fn options_that_abort_plugins() {
    let client = client(4);
    let compile = |options: &[u8]| {
        let program = Program::Hlo(HloProgram {
            module: add_one("4").into(),
        });
        let options = XlaCompileOptions {
            compile_options: options.to_vec().into(),
            devices: None,
            outputs_bundle_slice_sizes: None,
        };
        let compiler = client.default_compiler();
        wait(compiler.compile_and_load(program, CompileOptions::Xla(options))).map(drop)
    };
    check(&compile(b"").unwrap_err(), "no build options");
    check(&compile(b"\x1a\x00").unwrap_err(), "num_replicas = 0");
    check(&compile(b"\xff").unwrap_err(), "cannot be read");
    check(&compile(b"\x1a\x7f\x20\x01").unwrap_err(), "cannot be read");
    // The smallest options that work.
    compile(b"\x1a\x04\x20\x01\x28\x01").unwrap();
    for (replicas, partitions, part) in [
        (0, 1, "num_replicas = 0"),
        (1, 0, "num_partitions = 0"),
        (-1, 1, "num_replicas = -1"),
        (1, i64::MIN, "num_partitions = -9"),
        (5, 1, "num_replicas = 5"),
        (1, i64::MAX, "num_partitions = 9"),
        (
            3,
            2,
            "ask for 3 replicas of 2 partitions, but there are 4 devices",
        ),
    ] {
        let mut options = options(1);
        let build = options.executable_build_options.as_mut().unwrap();
        (build.num_replicas, build.num_partitions) = (replicas, partitions);
        check(&compile(&options.encode_to_vec()).unwrap_err(), part);
    }
}

#[test]
fn device_assignments_that_do_not_fit() {
    let client = client(4);
    let compile = |replica_count, computation_count, ids: &[&[i64]]| {
        let mut options = options(2);
        let build = options.executable_build_options.as_mut().unwrap();
        build.device_assignment = Some(DeviceAssignmentProto {
            replica_count,
            computation_count,
            computation_devices: ids
                .iter()
                .map(|ids| ComputationDevice {
                    replica_device_ids: ids.to_vec(),
                })
                .collect(),
        });
        try_compile(&client, add_one("4"), &options)
    };
    compile(1, 2, &[&[3], &[1]]).unwrap();
    for (replicas, computations, ids, part) in [
        (
            1,
            2,
            &[&[0][..]][..],
            "is not for 1 replicas of 2 partitions",
        ),
        (1, 2, &[&[0, 1], &[2, 3]], "is not for"),
        (1, 2, &[&[0], &[]], "is not for"),
        (2, 1, &[&[0, 1]], "is not for"),
        (-1, i32::MAX, &[], "is not for"),
        (1, 2, &[&[0], &[4]], "device_id 4"),
        (1, 2, &[&[0], &[-1]], "device_id -1"),
        (1, 2, &[&[0], &[i64::MAX]], "names device 9"),
        (1, 2, &[&[1], &[1]], "names device 1 twice"),
    ] {
        check(&compile(replicas, computations, ids).unwrap_err(), part);
    }
    let mut options = options(1);
    for ordinal in [4, i64::MAX] {
        options
            .executable_build_options
            .as_mut()
            .unwrap()
            .device_ordinal = ordinal;
        check(
            &try_compile(&client, add_one("4"), &options).unwrap_err(),
            "device",
        );
    }
}

#[test]
fn devices_beside_the_options() {
    let client = client(4);
    let other = crate::support::client(4);
    let list = |client: &PjrtClient, ids: &[usize]| -> DeviceList {
        ids.iter().map(|id| client.devices()[*id].clone()).collect()
    };
    let compile = |partitions, devices| {
        let program = Program::Hlo(HloProgram {
            module: add_one("4").into(),
        });
        let compile_options = options(partitions).encode_to_vec().into();
        let options = XlaCompileOptions {
            compile_options,
            devices: Some(devices),
            outputs_bundle_slice_sizes: None,
        };
        let compiler = client.default_compiler();
        wait(compiler.compile_and_load(program, CompileOptions::Xla(options)))
    };
    let f = compile(1, list(&client, &[2])).unwrap();
    assert_eq!(f.devices(), Some(&list(&client, &[2])));
    let f = compile(2, list(&client, &[3, 1])).unwrap();
    assert_eq!(f.devices(), Some(&list(&client, &[3, 1])));
    check(
        &compile(1, list(&client, &[0, 1])).unwrap_err(),
        "2 devices were given",
    );
    check(
        &compile(1, list(&other, &[0])).unwrap_err(),
        "does not belong",
    );
}

#[test]
fn programs_of_other_kinds() {
    let client = client(1);
    let other = Program::Other {
        type_name: "xla::ifrt::PluginProgram".to_owned(),
        data: b"x"[..].into(),
    };
    let options = || {
        let compile_options = options(1).encode_to_vec().into();
        CompileOptions::Xla(XlaCompileOptions {
            compile_options,
            devices: None,
            outputs_bundle_slice_sizes: None,
        })
    };
    let compiler = client.default_compiler();
    let error = wait(compiler.compile_and_load(other, options())).unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    let hlo = Program::Hlo(HloProgram {
        module: add_one("4").into(),
    });
    let options = CompileOptions::Other {
        type_name: "x".to_owned(),
        data: b""[..].into(),
    };
    let error = wait(compiler.compile_and_load(hlo, options)).unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
}

#[test]
fn a_call_location_must_be_a_text_that_c_can_read() {
    let client = client(1);
    let f = compile(&client, &add_one("4"));
    let x = put(&client, &[4], &[1.0; 4]);
    let run = |location: &'static str| {
        let options = ifrt::ExecuteOptions {
            custom_options: Some([("call_location", location)].into_iter().collect()),
            launch_id: 7,
            ..ifrt::ExecuteOptions::default()
        };
        f.execute(std::slice::from_ref(&x), &options, None)
    };
    assert_eq!(fetch(&run("file.py:3").unwrap().outputs[0]), [2.0; 4]);
    check(&run("a\0b").unwrap_err(), "call_location");
    assert_eq!(fetch(&x), [1.0; 4]);
}

/// The reader of text recurses, and a stack that overflows ends the process.
#[test]
fn text_that_is_nested_too_deeply() {
    let client = client(1);
    for (open, close) in [("(", ")"), ("tuple<", ">"), ("[", "]"), ("{a = ", "}")] {
        for depth in [200, 100_000] {
            let (open, close) = (open.repeat(depth), close.repeat(depth));
            let text = format!("module attributes {{x = {open}f32{close}}} {{}}");
            let error = compile_bytes(&client, text.as_bytes());
            let is_refused = error.message().contains("nested more than");
            assert_eq!(is_refused, depth > 200, "{error}");
        }
    }
}
