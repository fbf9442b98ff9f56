//! Executables as bytes.

use ifrt::{Client, Code, LoadedExecutableRef};
use ifrt_pjrt::PjrtClient;

use crate::support::*;

fn load(client: &PjrtClient, bytes: impl Into<bytes::Bytes>) -> ifrt::Result<LoadedExecutableRef> {
    wait(
        client
            .default_compiler()
            .deserialize_loaded_executable(bytes.into(), None),
    )
}

#[test]
fn an_executable_survives_the_round_trip_to_another_client() {
    let bytes = {
        let client = client(1);
        compile(
            &client,
            &add_one("4").replace(
                "%x: tensor<4xf32>)",
                "%x: tensor<4xf32> {tf.aliasing_output = 0 : i32})",
            ),
        )
        .serialize()
        .unwrap()
    };
    let client = client(1);
    let f = load(&client, bytes).unwrap();
    assert_eq!(f.name(), "add_one");
    assert_eq!(f.num_devices(), 1);
    assert_eq!(f.donatable_input_indices().unwrap(), [0]);
    let x = put(&client, &[4], &[1.0; 4]);
    let y = run(&f, &[&x]).unwrap();
    assert_eq!(fetch(&y[0]), [2.0; 4]);
    assert!(x.is_deleted());
    let wrong = put(&client, &[5], &[1.0; 5]);
    assert_eq!(
        run(&f, &[&wrong]).unwrap_err().code(),
        Code::InvalidArgument
    );
    // And once more.
    load(&client, f.serialize().unwrap()).unwrap();
}

#[test]
fn bytes_of_other_origin_are_refused() {
    let client = client(1);
    let bytes = compile(&client, &add_one("4")).serialize().unwrap();
    let refuse = |bytes: Vec<u8>, part: &str| {
        let error = load(&client, bytes).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.message().contains(part), "{error}");
    };
    refuse(Vec::new(), "no serialized executable");
    refuse(
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
        "no serialized executable",
    );
    refuse(b"\x00".to_vec(), "by the runtime \"\"");
    let replace = |from: &[u8], to: &[u8]| {
        let at = bytes
            .windows(from.len())
            .position(|part| part == from)
            .unwrap();
        [&bytes[..at], to, &bytes[at + from.len()..]].concat()
    };
    refuse(
        replace(b"pjrt_ifrt", b"other_run"),
        "by the runtime \"other_run\"",
    );
    refuse(
        replace(b"PJRT C API 0.", b"PJRT C API 9."),
        "another build of the plugin",
    );
    // Nothing but the description.
    let description = usize::from(bytes[0] & 0x7f) | usize::from(bytes[1]) << 7;
    refuse(
        bytes[..2 + description].to_vec(),
        "ends after its description",
    );
}

#[test]
fn a_program_over_several_devices_keeps_its_shardings() {
    let client = client(2);
    let module = r#"module attributes {mhlo.num_partitions = 2 : i32} {
      sdy.mesh @mesh = <["x"=2]>
      func.func public @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
          -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
        %y = stablehlo.add %x, %x : tensor<4xf32>
        return %y : tensor<4xf32>
      }
    }"#;
    let f = try_compile(&client, module, &options(2)).unwrap();
    let g = load(&client, f.serialize().unwrap()).unwrap();
    assert_eq!(g.devices(), f.devices());
    assert_eq!(g.output_shardings(), f.output_shardings());
    assert!(f.output_shardings().is_some());
}
