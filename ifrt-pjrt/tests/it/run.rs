//! Compiling and running programs on one device.

use std::sync::Arc;

use ifrt::{
    ArrayRef, Client, Code, DType, DeviceList, ExecuteOptions, HostBuffer, HostData, MemoryKind,
    Sharding, Status,
};

use crate::support::*;

#[test]
fn a_program_runs_on_one_device() {
    let client = client(1);
    let f = compile(&client, &add_one("4"));
    assert_eq!(f.name(), "add_one");
    assert_eq!(f.num_devices(), 1);
    let x = put(&client, &[4], &[1.0, 2.0, 3.0, 4.0]);
    let y = run(&f, &[&x]).unwrap();
    assert_eq!(fetch(&y[0]), [2.0, 3.0, 4.0, 5.0]);
    // The input is as it was, and the output is as good an input.
    let z = run(&f, &[&y[0]]).unwrap();
    assert_eq!(fetch(&x), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(fetch(&z[0]), [3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn a_program_runs_on_the_device_that_its_options_name() {
    let client = client(4);
    let mut options = options(1);
    options
        .executable_build_options
        .as_mut()
        .unwrap()
        .device_ordinal = 2;
    let f = try_compile(&client, add_one("1"), &options).unwrap();
    let ids: Vec<i32> = f.devices().unwrap().ids().map(|id| id.0).collect();
    assert_eq!(ids, [2]);
    let host = HostBuffer::dense(HostData::Borrowed(&[0; 4]), DType::F32, shape(&[1]));
    let x = client
        .make_array_from_host_buffer(host, on(&client, 2), None)
        .unwrap();
    let y = run(&f, &[&x]).unwrap().remove(0);
    assert_eq!(fetch(&y), [1.0]);
    assert_eq!(y.sharding().devices().devices()[0].id().0, 2);
    let elsewhere = put(&client, &[1], &[0.0]);
    let error = run(&f, &[&elsewhere]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("is on device 0"), "{error}");
}

#[test]
fn an_executable_tells_about_itself() {
    let client = client(1);
    let f = compile(&client, &add_one("2x3"));
    let g = compile(&client, &add_one("2x3"));
    let other = compile(&client, &add_one("3x2"));
    assert_eq!(f.fingerprint().unwrap(), g.fingerprint().unwrap());
    assert_ne!(f.fingerprint().unwrap(), other.fingerprint().unwrap());
    assert_eq!(f.output_memory_kinds().unwrap(), [["device"]]);
    let text =
        |layouts: Vec<ifrt::Layout>| layouts.iter().map(ToString::to_string).collect::<String>();
    assert_eq!(text(f.parameter_layouts().unwrap()), "{1,0}");
    assert_eq!(text(f.output_layouts().unwrap()), "{1,0}");
    assert_eq!(f.donatable_input_indices().unwrap(), []);
    let stats = f.compiled_memory_stats().unwrap();
    assert_eq!(
        (stats.argument_size_bytes, stats.output_size_bytes),
        (24, 24)
    );
    let ids: Vec<i32> = f.devices().unwrap().ids().map(|id| id.0).collect();
    assert_eq!(ids, [0]);
    assert_eq!(f.addressable_devices().len(), 1);
    // Not every plugin analyzes costs; what must not happen is a crash or another error.
    if let Err(error) = f.cost_analysis() {
        assert_eq!(error.code(), Code::Unimplemented, "{error}");
    }
}

#[test]
fn several_outputs_of_several_dtypes() {
    let client = client(1);
    let f = compile(
        &client,
        "module @many {
          func.func @main(%x: tensor<3xf32>, %n: tensor<5xi4>)
              -> (tensor<3xbf16>, tensor<f32>, tensor<0xf32>, tensor<5xi4>, tensor<3xi1>) {
            %half = stablehlo.convert %x : (tensor<3xf32>) -> tensor<3xbf16>
            %zero = stablehlo.constant dense<0.0> : tensor<f32>
            %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
                : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
            %none = stablehlo.constant dense<> : tensor<0xf32>
            %m = stablehlo.negate %n : tensor<5xi4>
            %two = stablehlo.constant dense<2.0> : tensor<3xf32>
            %big = stablehlo.compare GE, %x, %two : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
            return %half, %sum, %none, %m, %big
              : tensor<3xbf16>, tensor<f32>, tensor<0xf32>, tensor<5xi4>, tensor<3xi1>
          }
        }",
    );
    let x = put(&client, &[3], &[1.0, 2.0, 3.0]);
    let n = put_bytes(&client, DType::S4, &[5], &[1, 0xfe, 3, 0xff, 7]).unwrap();
    let outputs = run(&f, &[&x, &n]).unwrap();
    let dtypes: Vec<DType> = outputs.iter().map(|array| array.dtype()).collect();
    assert_eq!(
        dtypes,
        [DType::BF16, DType::F32, DType::F32, DType::S4, DType::Pred]
    );
    assert_eq!(
        fetch_bytes(&outputs[0]).unwrap(),
        [0x80, 0x3f, 0x00, 0x40, 0x40, 0x40]
    );
    assert_eq!(fetch(&outputs[1]), [6.0]);
    assert_eq!(fetch(&outputs[2]), []);
    assert_eq!(fetch_bytes(&outputs[3]).unwrap(), [0xff, 2, 0xfd, 1, 0xf9]);
    assert_eq!(fetch_bytes(&outputs[4]).unwrap(), [0, 1, 1]);
}

#[test]
fn a_program_without_arguments_and_one_without_results() {
    let client = client(1);
    let f = compile(
        &client,
        "module { func.func @main() -> tensor<2xf32> {
          %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
          return %c : tensor<2xf32>
        } }",
    );
    assert_eq!(fetch(&run(&f, &[]).unwrap()[0]), [1.0, 2.0]);
    let g = compile(
        &client,
        "module { func.func @main(%x: tensor<2xf32>) { return } }",
    );
    let options = ExecuteOptions {
        fill_status: true,
        ..ExecuteOptions::default()
    };
    let x = put(&client, &[2], &[1.0, 2.0]);
    let result = g.execute(&[x], &options, None).unwrap();
    assert_eq!(result.outputs.len(), 0);
    assert_eq!(wait(result.status.unwrap()), Ok(()));
}

#[test]
fn wrong_arguments_are_refused_before_they_reach_the_plugin() {
    let client = client(1);
    let other = crate::support::client(1);
    let f = compile(&client, &add_one("4"));
    let good = put(&client, &[4], &[0.0; 4]);
    let as_ints = put_bytes(&client, DType::S32, &[4], &[0; 16]).unwrap();
    let bytes = put_bytes(&client, DType::U8, &[16], &[0; 16]).unwrap();
    let other_shape = put(&client, &[2, 2], &[0.0; 4]);
    let short = put(&client, &[3], &[0.0; 3]);
    let foreign = put(&other, &[4], &[0.0; 4]);
    for (args, part) in [
        (&[][..], "takes 1 arguments, but got 0"),
        (&[&good, &good], "takes 1 arguments, but got 2"),
        (&[&as_ints], "dtype s32"),
        (&[&bytes], "dtype u8"),
        (&[&other_shape], "shape [2,2]"),
        (&[&short], "shape [3]"),
        (&[&foreign], "does not belong to this client"),
    ] {
        let error = run(&f, args).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(part), "{error}");
    }
    assert_eq!(fetch(&run(&f, &[&good]).unwrap()[0]), [1.0; 4]);
}

#[test]
fn an_argument_in_another_layout_is_refused() {
    let client = client(1);
    let f = compile(&client, &add_one("2x2"));
    let bytes = bytes_of(&[1.0, 2.0, 3.0, 4.0]);
    let host = HostBuffer::dense(HostData::Borrowed(&bytes), DType::F32, shape(&[2, 2]));
    let layout = ifrt::Layout::parse("{0,1}").unwrap();
    let x = client.make_array_from_host_buffer(host, on(&client, 0), Some(layout));
    if client.plugin().api_minor() < 115 {
        assert_eq!(x.unwrap_err().code(), Code::Unimplemented);
        return;
    }
    let x = x.unwrap();
    let error = run(&f, &[&x]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("{0,1}"), "{error}");
}

#[test]
fn errors_travel_through_programs() {
    let client = client(1);
    let f = compile(&client, &add_one("4"));
    let spec = ifrt::ArraySpec {
        dtype: DType::F32,
        shape: shape(&[4]),
        sharding: on(&client, 0),
        layout: None,
    };
    let error = Status::unavailable("the disk is gone").with_payload("url", "value");
    let x = client.make_error_arrays(error, &[spec]).unwrap().remove(0);
    assert_eq!((x.dtype(), x.shape()), (DType::F32, &shape(&[4])));
    let ready = wait(x.ready()).unwrap_err();
    assert_eq!(ready.code(), Code::Unavailable);
    // Some plugins put words before it.
    assert!(ready.message().ends_with("the disk is gone"), "{ready}");
    if client.plugin().api_minor() >= 103 {
        assert_eq!(
            ready.payload("url").map(|value| &value[..]),
            Some(&b"value"[..])
        );
    }
    assert!(
        fetch_bytes(&x)
            .unwrap_err()
            .message()
            .contains("the disk is gone")
    );
    let good = put(&client, &[4], &[0.0; 4]);
    let y = run(&f, &[&x]).unwrap().remove(0);
    let z = run(&f, &[&good]).unwrap().remove(0);
    assert!(
        wait(y.ready())
            .unwrap_err()
            .message()
            .contains("the disk is gone")
    );
    assert!(
        fetch_bytes(&y)
            .unwrap_err()
            .message()
            .contains("the disk is gone")
    );
    assert_eq!(fetch(&z), [1.0; 4]);
    wait(y.delete()).unwrap();
    assert!(y.is_deleted());
}

/// Strings and tokens have no buffers, so their errors are kept here.
#[test]
fn arrays_without_buffers_can_hold_errors_too() {
    let client = client(2);
    let token = ifrt::ArraySpec {
        dtype: DType::Token,
        shape: shape(&[]),
        sharding: on(&client, 0),
        layout: None,
    };
    let text = ifrt::ArraySpec {
        dtype: DType::String,
        ..token.clone()
    };
    let error = Status::aborted("stop");
    let arrays = client
        .make_error_arrays(error.clone(), &[token, text])
        .unwrap();
    for array in &arrays {
        assert_eq!(wait(array.ready()), Err(error.clone()));
        assert_eq!(fetch_bytes(array), Err(error.clone()));
    }
    let f = compile(&client, PASS_TOKEN);
    let options = ExecuteOptions {
        fill_status: true,
        ..ExecuteOptions::default()
    };
    let x = put(&client, &[1], &[1.0]);
    let result = f
        .execute(&[Arc::clone(&arrays[0]), x], &options, None)
        .unwrap();
    assert_eq!(wait(result.status.unwrap()), Err(error.clone()));
    assert_eq!(wait(result.outputs[1].ready()), Err(error));
    wait(result.outputs[1].delete()).unwrap();
    assert!(result.outputs[1].is_deleted());
}

const PASS_TOKEN: &str = "module {
  func.func @main(%t: !stablehlo.token, %x: tensor<1xf32>) -> (!stablehlo.token, tensor<1xf32>) {
    %u = stablehlo.after_all %t : !stablehlo.token
    return %u, %x : !stablehlo.token, tensor<1xf32>
  }
}";

#[test]
fn tokens() {
    let client = client(1);
    let f = compile(&client, PASS_TOKEN);
    let first = put_bytes(&client, DType::Pred, &[0], &[]).unwrap();
    let x = put(&client, &[1], &[5.0]);
    let outputs = run(&f, &[&first, &x]).unwrap();
    assert_eq!(outputs[0].dtype(), DType::Token);
    assert_eq!(outputs[0].byte_size(), Ok(None));
    assert_eq!(wait(outputs[0].ready()), Ok(()));
    let again = run(&f, &[&outputs[0], &outputs[1]]).unwrap();
    assert_eq!(fetch(&again[1]), [5.0]);
    assert_eq!(
        fetch_bytes(&outputs[0]).unwrap_err().code(),
        Code::InvalidArgument
    );
    let error = run(&f, &[&x, &x]).unwrap_err();
    assert!(error.message().contains("must be a token"), "{error}");
    wait(outputs[0].delete()).unwrap();
    assert!(outputs[0].is_deleted());
}

#[test]
fn a_portable_program_runs_where_it_is_told() {
    let client = client(4);
    let mut options = options(1);
    options.compile_portable_executable = true;
    let f = try_compile(&client, add_one("1"), &options).unwrap();
    assert_eq!(f.devices(), None);
    for (number, device) in client.devices().iter().enumerate() {
        let sharding = Sharding::single_device(Arc::clone(device), MemoryKind::default());
        let host = HostBuffer::dense(HostData::Borrowed(&[0; 4]), DType::F32, shape(&[1]));
        let x = client
            .make_array_from_host_buffer(host, sharding, None)
            .unwrap();
        let devices = DeviceList::new([Arc::clone(device)]);
        let y = f
            .execute(&[x], &ExecuteOptions::default(), Some(&devices))
            .unwrap()
            .outputs;
        assert_eq!(fetch(&y[0]), [1.0]);
        assert_eq!(y[0].sharding().devices(), &devices, "{number}");
    }
    let x = put(&client, &[1], &[0.0]);
    let error = run(&f, &[&x]).unwrap_err();
    assert_eq!(
        error.message(),
        "No devices provided for portable executable"
    );
    let all: DeviceList = client.devices().iter().cloned().collect();
    let error = f
        .execute(&[x], &ExecuteOptions::default(), Some(&all))
        .unwrap_err();
    assert_eq!(
        error.message(),
        "Only single-shard portable execution is supported"
    );
}

#[test]
fn many_threads_compile_put_run_and_fetch() {
    let client = client(2);
    std::thread::scope(|scope| {
        for number in 0..8_u8 {
            let client = &client;
            scope.spawn(move || {
                let f = compile(client, &add_one("16"));
                for round in 0..20_u8 {
                    let value = f32::from(number) * 100.0 + f32::from(round);
                    let x = put(client, &[16], &[value; 16]);
                    let y = run(&f, &[&x]).unwrap();
                    assert_eq!(fetch(&y[0]), [value + 1.0; 16]);
                }
            });
        }
    });
}

#[test]
fn runs_outlive_their_executable_and_inputs() {
    let client = client(1);
    let f = compile(&client, &slow(1000));
    let x = put(&client, &[64, 64], &vec![1.0; 4096]);
    let y = run(&f, &[&x]).unwrap();
    drop(f);
    drop(x);
    assert_eq!(fetch(&y[0]).len(), 4096);
}

#[test]
fn the_client_goes_when_everything_is_gone_and_not_before() {
    let client = client(1);
    let gone = client.gone();
    let f = compile(&client, &add_one("4"));
    let x = put(&client, &[4], &[1.0; 4]);
    let y: ArrayRef = run(&f, &[&x]).unwrap().remove(0);
    drop((client, f, x));
    assert!(!gone.is_ready());
    assert_eq!(fetch(&y), [2.0; 4]);
    drop(y);
    assert_eq!(wait(gone), Ok(()));
}

#[test]
fn the_last_reference_may_go_in_a_callback() {
    let client = client(1);
    let gone = client.gone();
    let f = compile(&client, &slow(200));
    let x = put(&client, &[64, 64], &vec![1.0; 4096]);
    let y = run(&f, &[&x]).unwrap().remove(0);
    let read = y.copy_to_host(None);
    drop((client, f, x));
    // On a thread of the plugin, where destroying the client would deadlock.
    read.on_ready(move |_| drop(y));
    assert_eq!(wait(read).map(drop), Ok(()));
    assert_eq!(wait(gone), Ok(()));
}
