//! From modules to executables.

use std::sync::Arc;

use bytes::Bytes;
use ifrt::compiler::DeserializeOptions;
use ifrt::fake::program::{FakeProgram, Output, Parameter};
use ifrt::fake::{FakeClient, FakeOptions};
use ifrt::program::PluginProgram;
use ifrt::proto::xla::device_assignment_proto::ComputationDevice;
use ifrt::proto::xla::{CompileOptionsProto, DeviceAssignmentProto, ExecutableBuildOptionsProto};
use ifrt::xla::HloSharding;
use ifrt::{
    Client, Code, CompileOptions, DType, ExecuteOptions, HloProgram, HostValue,
    LoadedExecutableRef, MemoryKind, Program, Result, XlaCompileOptions,
};
use prost::Message;

use crate::support::*;

fn compile_with(
    client: &FakeClient,
    module: &str,
    options: XlaCompileOptions,
) -> Result<LoadedExecutableRef> {
    let program = Program::Hlo(HloProgram {
        module: module.to_owned().into(),
    });
    let options = CompileOptions::Xla(options);
    wait(&client.default_compiler().compile_and_load(program, options))
}

fn options(proto: &CompileOptionsProto) -> XlaCompileOptions {
    XlaCompileOptions {
        compile_options: proto.encode_to_vec().into(),
        ..XlaCompileOptions::default()
    }
}

fn build(build: ExecutableBuildOptionsProto) -> CompileOptionsProto {
    CompileOptionsProto {
        executable_build_options: Some(build),
        ..CompileOptionsProto::default()
    }
}

fn assigned(rows: &[&[i64]]) -> CompileOptionsProto {
    let device = |row: &&[i64]| ComputationDevice {
        replica_device_ids: row.to_vec(),
    };
    build(ExecutableBuildOptionsProto {
        device_assignment: Some(DeviceAssignmentProto {
            replica_count: 1,
            computation_count: i32::try_from(rows.len()).unwrap(),
            computation_devices: rows.iter().map(device).collect(),
        }),
        ..ExecutableBuildOptionsProto::default()
    })
}

const MODULE: &str = "fake:add_one(f32[4] tiled[2]) -> (f32[4])";

#[test]
fn the_devices_of_an_executable() {
    let client = client();
    let on = |options| {
        let executable = compile_with(&client, MODULE, options).unwrap();
        let ids: Vec<i32> = executable.devices().unwrap().ids().map(|id| id.0).collect();
        assert_eq!(executable.num_devices(), ids.len());
        assert_eq!(executable.addressable_devices().len(), ids.len());
        ids
    };
    let given = XlaCompileOptions {
        devices: Some(devices(&client, &[3, 1])),
        ..options(&assigned(&[&[0], &[1]]))
    };
    assert_eq!(on(given), [3, 1], "the list wins");
    assert_eq!(on(options(&assigned(&[&[2], &[0]]))), [2, 0]);
    let partitions = build(ExecutableBuildOptionsProto {
        num_replicas: 1,
        num_partitions: 2,
        ..ExecutableBuildOptionsProto::default()
    });
    assert_eq!(on(options(&partitions)), [0, 1]);
    assert_eq!(
        on(XlaCompileOptions::default()),
        [0, 1],
        "as many as the shardings ask for"
    );
}

#[test]
fn options_that_make_no_sense() {
    let client = client();
    let replicas = build(ExecutableBuildOptionsProto {
        num_replicas: 2,
        ..ExecutableBuildOptionsProto::default()
    });
    let garbage = XlaCompileOptions {
        compile_options: Bytes::from_static(b"\xff\xff"),
        ..XlaCompileOptions::default()
    };
    let nowhere = XlaCompileOptions {
        devices: Some(devices(&client, &[])),
        ..XlaCompileOptions::default()
    };
    let three = XlaCompileOptions {
        devices: Some(devices(&client, &[0, 1, 2])),
        ..XlaCompileOptions::default()
    };
    let bundles = XlaCompileOptions {
        outputs_bundle_slice_sizes: Some(vec![1, usize::MAX]),
        ..XlaCompileOptions::default()
    };
    for (what, options, code) in [
        ("garbage", garbage, Code::InvalidArgument),
        ("no devices", nowhere, Code::InvalidArgument),
        ("devices for other tiles", three, Code::InvalidArgument),
        (
            "unknown device",
            options(&assigned(&[&[0], &[99]])),
            Code::InvalidArgument,
        ),
        (
            "two replicas",
            options(&assigned(&[&[0, 1], &[2, 3]])),
            Code::InvalidArgument,
        ),
        (
            "huge id",
            options(&assigned(&[&[0], &[i64::MAX]])),
            Code::InvalidArgument,
        ),
        ("replicas", options(&replicas), Code::Unimplemented),
        ("bundles", bundles, Code::InvalidArgument),
    ] {
        let refused = compile_with(&client, MODULE, options).unwrap_err();
        assert_eq!(refused.code(), code, "{what}: {refused}");
    }
    let away = FakeClient::new(FakeOptions::fixture(2, 1));
    let unreachable = compile_with(&away, MODULE, XlaCompileOptions::default());
    assert_eq!(unreachable.unwrap_err().code(), Code::Unimplemented);
    let manual = FakeProgram {
        name: "manual".to_owned(),
        parameters: vec![],
        outputs: vec![Output {
            dtype: DType::F32,
            shape: shape(&[]),
            sharding: HloSharding::Manual,
            memory_kind: MemoryKind::default(),
        }],
        kernel: Arc::new(|_| Ok(vec![])),
    };
    client.register_program("manual", manual);
    let unknown = compile_with(&client, "fake:manual", XlaCompileOptions::default());
    assert_eq!(unknown.unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn other_programs_and_modules_are_refused() {
    let client = client();
    let stablehlo = compile_with(&client, "module @jit_f {}", XlaCompileOptions::default());
    let status = stablehlo.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(
        status
            .message()
            .starts_with("Failed to deserialize StableHLO module; "),
        "{status}"
    );
    let plugin = Program::Plugin(PluginProgram { data: Bytes::new() });
    let refused = client
        .default_compiler()
        .compile_and_load(plugin, CompileOptions::Plugin);
    assert_eq!(wait(&refused).unwrap_err().code(), Code::Unimplemented);
}

#[test]
fn a_compiler_without_its_client_says_so() {
    let compiler = client().default_compiler();
    let program = Program::Hlo(HloProgram {
        module: MODULE.into(),
    });
    let options = CompileOptions::Xla(XlaCompileOptions::default());
    let refused = wait(&compiler.compile_and_load(program, options));
    assert_eq!(refused.unwrap_err().code(), Code::FailedPrecondition);
}

#[test]
fn exe_09_portable_executables() {
    let client = client();
    let portable = CompileOptionsProto {
        compile_portable_executable: true,
        ..CompileOptionsProto::default()
    };
    let module = "fake:add_one(f32[4]) -> (f32[4])";
    let executable = compile_with(&client, module, options(&portable)).unwrap();
    assert!(executable.devices().is_none());
    let input = array(&client, &[4], &single(&client, 2));
    let run = |positions: Option<&[usize]>| {
        let list = positions.map(|positions| devices(&client, positions));
        executable.execute(
            &[Arc::clone(&input)],
            &ExecuteOptions::default(),
            list.as_ref(),
        )
    };
    let result = run(Some(&[2])).unwrap();
    assert_eq!(read(&result.outputs[0]).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(
        result.outputs[0].sharding().devices(),
        &devices(&client, &[2])
    );
    let two = run(Some(&[2, 3])).unwrap_err();
    assert_eq!(
        two.message(),
        "Only single-shard portable execution is supported"
    );
    assert_eq!(run(None).unwrap_err().code(), Code::InvalidArgument);

    let bound = compile_with(&client, module, XlaCompileOptions::default()).unwrap();
    let list = devices(&client, &[0]);
    let here = array(&client, &[4], &single(&client, 0));
    let told = bound.execute(&[here], &ExecuteOptions::default(), Some(&list));
    assert_eq!(told.unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn exe_13_nothing_in_nothing_out() {
    let client = client();
    let executable = wait(&compile(&client, "fake:identity() -> ()", None)).unwrap();
    let options = ExecuteOptions {
        fill_status: true,
        ..ExecuteOptions::default()
    };
    let result = executable.execute(&[], &options, None).unwrap();
    assert!(result.outputs.is_empty());
    assert_eq!(wait(&result.status.unwrap()), Ok(()));
    let quiet = executable
        .execute(&[], &ExecuteOptions::default(), None)
        .unwrap();
    assert!(quiet.status.is_none(), "EXE-12");
}

#[test]
fn exe_16_serialized_executables() {
    let client = client();
    let given = XlaCompileOptions {
        devices: Some(devices(&client, &[2, 1])),
        outputs_bundle_slice_sizes: Some(vec![1]),
        ..XlaCompileOptions::default()
    };
    let executable = compile_with(&client, MODULE, given).unwrap();
    let serialized = executable.serialize().unwrap();
    let load = |bytes: Bytes, devices| {
        wait(
            &client
                .default_compiler()
                .deserialize_loaded_executable(bytes, devices),
        )
    };
    let again = load(serialized.clone(), None).unwrap();
    assert_eq!(again.name(), executable.name());
    assert_eq!(again.devices(), executable.devices());
    assert_eq!(
        again.parameter_shardings(),
        executable.parameter_shardings()
    );
    assert_eq!(again.output_layouts(), executable.output_layouts());
    assert_eq!(again.fingerprint(), executable.fingerprint());
    assert_eq!(
        again.compiled_memory_stats(),
        executable.compiled_memory_stats()
    );
    assert_eq!(again.outputs_bundle_slice_sizes(), Some(&[1][..]));
    let elsewhere = load(serialized.clone(), Some(devices(&client, &[0, 3]))).unwrap();
    let input = array(&client, &[4], &tiled(&client, &[0, 3], &[2]));
    let result = elsewhere
        .execute(&[input], &ExecuteOptions::default(), None)
        .unwrap();
    assert_eq!(read(&result.outputs[0]).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let with = client
        .default_compiler()
        .deserialize_loaded_executable_with(serialized.clone(), DeserializeOptions::default());
    assert!(wait(&with).is_ok());

    for end in 0..serialized.len() {
        // Cut inside the module, the text is another one or none; it must not panic.
        drop(load(serialized.slice(..end), None));
    }
    for bytes in [
        "",
        "\n\n\n",
        "ifrt fake executable\n1,x\n-\nfake:x",
        "ifrt fake executable\n-\n",
    ] {
        let refused = load(Bytes::from_static(bytes.as_bytes()), None).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{bytes:?}");
    }
    let portable = CompileOptionsProto {
        compile_portable_executable: true,
        ..CompileOptionsProto::default()
    };
    let module = "fake:zeros() -> (f32[])";
    let portable = compile_with(&client, module, options(&portable)).unwrap();
    assert!(
        load(portable.serialize().unwrap(), None)
            .unwrap()
            .devices()
            .is_none()
    );
}

#[test]
fn exe_03_04_what_is_known_of_a_program() {
    let client = client();
    let executable = wait(&compile(&client, MODULE, None)).unwrap();
    assert_eq!(executable.human_readable_program_text().unwrap(), MODULE);
    let stats = executable.compiled_memory_stats().unwrap();
    assert_eq!(
        (stats.argument_size_bytes, stats.output_size_bytes),
        (8, 16),
        "per device"
    );
    assert_eq!(
        executable
            .cost_analysis()
            .unwrap()
            .get_i64("bytes accessed"),
        Ok(24)
    );
    assert_eq!(
        executable.parameter_layouts().unwrap()[0].to_string(),
        "{0}"
    );
}

#[test]
fn registered_programs_and_kernels() {
    let client = client();
    let value = |dtype, dims: &[i64]| Parameter {
        dtype,
        shape: shape(dims),
        sharding: HloSharding::Replicated,
        donated: false,
    };
    // Joins two arrays of strings; no kernel that every client has does anything with strings.
    let program = FakeProgram {
        name: "concatenate".to_owned(),
        parameters: vec![value(DType::String, &[1]), value(DType::String, &[2])],
        outputs: vec![Output {
            dtype: DType::String,
            shape: shape(&[3]),
            sharding: HloSharding::tile([3]).unwrap(),
            memory_kind: MemoryKind::default(),
        }],
        kernel: Arc::new(|call| {
            let strings = call.inputs.iter().filter_map(|input| match &input.value {
                HostValue::Strings(strings) => Some(strings.iter().cloned()),
                HostValue::Bytes(_) => None,
            });
            Ok(vec![HostValue::Strings(strings.flatten().collect())])
        }),
    };
    client.register_program("joined", program);
    let executable = wait(&compile(&client, "fake:joined", None)).unwrap();
    assert_eq!(
        (executable.name(), executable.num_devices()),
        ("concatenate", 3)
    );
    let on = replicated(&client, &[0, 1, 2]);
    let args = [&["a"][..], &["b", "c"]].map(|texts| {
        let strings = texts
            .iter()
            .map(|text| Bytes::from_static(text.as_bytes()))
            .collect();
        let data = ifrt::HostData::Strings(strings);
        let count = i64::try_from(texts.len()).unwrap();
        let buffer = ifrt::HostBuffer::dense(data, DType::String, shape(&[count]));
        client
            .make_array_from_host_buffer(buffer, Arc::clone(&on), None)
            .unwrap()
    });
    let result = executable
        .execute(&args, &ExecuteOptions::default(), None)
        .unwrap();
    let pieces = result.outputs[0]
        .disassemble(
            ifrt::ArrayCopySemantics::ReuseInput,
            ifrt::ShardSemantics::All,
        )
        .unwrap();
    for (piece, text) in pieces.iter().zip(["a", "b", "c"]) {
        let expected = HostValue::Strings([Bytes::from_static(text.as_bytes())].into());
        assert_eq!(wait(&piece.copy_to_host(None)), Ok(expected));
    }

    client.register_kernel(
        "token",
        Arc::new(|call| {
            Ok(call
                .outputs
                .iter()
                .map(|_| HostValue::Bytes(Bytes::new()))
                .collect())
        }),
    );
    let executable = wait(&compile(&client, "fake:token() -> (token[])", None)).unwrap();
    let result = executable
        .execute(&[], &ExecuteOptions::default(), None)
        .unwrap();
    assert_eq!(wait(&result.outputs[0].ready()), Ok(()));
}
