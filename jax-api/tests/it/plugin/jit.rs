//! Programs: text and portable artifacts, on one and on eight devices.

use jax_api::prelude::*;
use jax_api::{DType, Error};

use super::{arrays, client};

macro_rules! fixture {
    ($name:literal) => {
        (
            include_bytes!(concat!("../../fixtures/", $name, ".mlirbc")).as_slice(),
            include_str!(concat!("../../fixtures/", $name, ".json")),
        )
    };
}

fn assert_close(found: &Array, expected: &(Vec<f32>, Vec<usize>)) {
    assert_eq!(found.shape(), expected.1);
    let values = found.to_vec::<f32>().unwrap();
    for (found, expected) in values.iter().zip(&expected.0) {
        let tolerance = 1e-5 * expected.abs().max(1.0);
        assert!((found - expected).abs() <= tolerance, "{found} {expected}");
    }
}

#[test]
fn models_that_jax_has_exported() {
    let client = client(1);
    for (module, data) in [fixture!("mlp"), fixture!("mlp-jax0.4.30")] {
        let f = jit::from_stablehlo(module).compile(&client).unwrap();
        let inputs: Vec<Array> = arrays(data, "inputs")
            .into_iter()
            .map(|(values, dims)| device_put((&values[..], &dims[..]), &client).unwrap())
            .collect();
        let args: Vec<jit::Arg<'_>> = inputs.iter().map(jit::Arg::from).collect();
        let outputs = f.call(&args).unwrap();
        let expected = arrays(data, "outputs");
        assert_eq!(outputs.len(), expected.len());
        for (found, expected) in outputs.iter().zip(&expected) {
            assert_close(found, expected);
        }
    }
}

#[test]
fn a_model_that_donates() {
    let client = client(1);
    let (module, data) = fixture!("donated");
    let f = jit::from_stablehlo(module).compile(&client).unwrap();
    assert_eq!(f.donatable_argnums(), Some(vec![0]));
    let inputs = arrays(data, "inputs");
    let put = |n: usize| device_put(&inputs[n].0, &client).unwrap();
    let (state, gradient) = (put(0), put(1));
    let expected = arrays(data, "outputs");

    // By reference nothing is consumed, although the module says so.
    let outputs = f.call(args![&state, &gradient]).unwrap();
    assert!(!state.is_deleted());
    assert_eq!(state.to_vec::<f32>().unwrap(), inputs[0].0);
    assert_close(&outputs[0], &expected[0]);

    let outputs = f.call(args![donate(&state), &gradient]).unwrap();
    assert!(state.is_deleted() && !gradient.is_deleted());
    for (found, expected) in outputs.iter().zip(&expected) {
        assert_close(found, expected);
    }
}

#[test]
fn a_model_over_eight_devices() {
    let client = client(8);
    let (module, data) = fixture!("sharded8");
    let mesh = Mesh::new(client.devices(), [("data", 4), ("model", 2)]).unwrap();
    let rows = NamedSharding::new(&mesh, P!["data", None]).unwrap();
    let columns = NamedSharding::new(&mesh, P![None, "model"]).unwrap();
    let both = NamedSharding::new(&mesh, P!["data", "model"]).unwrap();
    let f = jit::from_stablehlo(module)
        .devices(client.devices())
        .in_shardings([Some(&rows), Some(&columns)])
        .out_shardings([Some(&both)])
        .in_avals([(DType::F32, [8, 6]), (DType::F32, [6, 4])])
        .compile(&client)
        .unwrap();
    let inputs = arrays(data, "inputs");
    let put = |n: usize, sharding: &NamedSharding| {
        let (values, dims) = &inputs[n];
        device_put((&values[..], &dims[..]), sharding).unwrap()
    };
    let (x, w) = (put(0, &rows), put(1, &columns));
    let y = f.call(args![&x, &w]).unwrap().remove(0);
    assert_close(&y, &arrays(data, "outputs")[0]);
    let shards = y.addressable_shards().unwrap();
    assert_eq!(shards.len(), 8);
    assert_eq!(shards[5].data.shape(), [2, 2]);

    // An uncommitted argument goes where it is wanted; a committed one has to be there.
    let (values, dims) = &inputs[0];
    let free = device_put((&values[..], &dims[..]), &client).unwrap();
    let again = f.call(args![&free, &w]).unwrap().remove(0);
    assert_close(&again, &arrays(data, "outputs")[0]);
    let bound = device_put(&free, &client.devices()[0]).unwrap();
    assert!(matches!(
        f.call(args![&bound, &w]),
        Err(Error::IncompatibleDevices(_))
    ));
    let wrong = put(0, &both);
    assert!(matches!(
        f.call(args![&wrong, &w]),
        Err(Error::ArgumentMismatch(_))
    ));
}

/// Least squares over eight devices: each has its part of the batch, all have the parameters; the
/// gradient needs a sum over the devices.
const TRAIN_STEP: &str = r#"
module @train attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["batch"=8]>
  func.func public @main(
      %w: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>, tf.aliasing_output = 0 : i32},
      %x: tensor<64x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"batch"}, {}]>},
      %y: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"batch"}]>})
      -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
          tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %rate = stablehlo.constant dense<0.00390625> : tensor<4xf32>
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x4xf32>, tensor<4xf32>) -> tensor<64xf32>
    %e = stablehlo.subtract %p, %y : tensor<64xf32>
    %g = stablehlo.dot_general %e, %x, contracting_dims = [0] x [0]
      : (tensor<64xf32>, tensor<64x4xf32>) -> tensor<4xf32>
    %s = stablehlo.multiply %g, %rate : tensor<4xf32>
    %next = stablehlo.subtract %w, %s : tensor<4xf32>
    %sq = stablehlo.multiply %e, %e : tensor<64xf32>
    %loss = stablehlo.reduce(%sq init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    return %next, %loss : tensor<4xf32>, tensor<f32>
  }
}"#;

/// The same step in double precision.
fn train_on_the_host(w: &mut [f64; 4], x: &[f32], y: &[f32]) -> f64 {
    let mut gradient = [0.0; 4];
    let mut loss = 0.0;
    for (row, y) in x.chunks(4).zip(y) {
        let p: f64 = row.iter().zip(&*w).map(|(x, w)| f64::from(*x) * w).sum();
        let error = p - f64::from(*y);
        loss += error * error;
        for (g, x) in gradient.iter_mut().zip(row) {
            *g += error * f64::from(*x);
        }
    }
    for (w, g) in w.iter_mut().zip(gradient) {
        *w -= 0.003_906_25 * g;
    }
    loss
}

#[test]
fn training_over_eight_devices_with_a_donated_state() {
    let client = client(8);
    let mesh = Mesh::new(client.devices(), [("batch", 8)]).unwrap();
    let everywhere = NamedSharding::new(&mesh, P![]).unwrap();
    let rows = NamedSharding::new(&mesh, P!["batch"]).unwrap();
    let step = jit::from_stablehlo(TRAIN_STEP)
        .in_shardings([Some(&everywhere), Some(&rows), Some(&rows)])
        .compile(&client)
        .unwrap();
    let x: Vec<f32> = (0..256_u16)
        .map(|n| f32::from(n * 37 % 101) / 101.0 - 0.5)
        .collect();
    let truth = [1.0, -2.0, 0.5, 3.0];
    let y: Vec<f32> = x
        .chunks(4)
        .map(|row| row.iter().zip(truth).map(|(x, w)| x * w).sum())
        .collect();
    let xs = device_put((&x, [64, 4]), &rows).unwrap();
    let ys = device_put(&y, &rows).unwrap();
    let mut w = device_put(&[0.0_f32; 4], &everywhere).unwrap();
    let mut on_host = [0.0; 4];
    let mut losses = Vec::new();
    for _ in 0..50 {
        let before = w.clone();
        let mut results = step.call(args![donate(w), &xs, &ys]).unwrap();
        losses.push(results.remove(1));
        w = results.remove(0);
        assert!(
            before.is_deleted(),
            "all eight copies of the state were consumed"
        );
        let expected = train_on_the_host(&mut on_host, &x, &y);
        let loss = f64::from(losses[losses.len() - 1].item::<f32>().unwrap());
        assert!(
            (loss - expected).abs() <= 1e-4 * expected.max(1e-3),
            "{loss} {expected}"
        );
    }
    let found = w.to_vec::<f32>().unwrap();
    for (found, expected) in found.iter().zip(on_host) {
        assert!(
            (f64::from(*found) - expected).abs() < 1e-4,
            "{found} {expected}"
        );
    }
    let (first, last) = (
        losses[0].item::<f32>().unwrap(),
        losses[49].item::<f32>().unwrap(),
    );
    assert!(last < first / 10.0, "it learns: {first} {last}");
    assert!(!xs.is_deleted() && !ys.is_deleted());
}

#[test]
fn donation_added_to_a_module_in_text() {
    let client = client(1);
    let module = "module @m {
      func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
        %c = stablehlo.add %a, %b : tensor<4xf32>
        return %c : tensor<4xf32>
      }
    }";
    let f = jit::from_stablehlo(module)
        .donate_argnums([0])
        .compile(&client)
        .unwrap();
    assert_eq!(f.donatable_argnums(), Some(vec![0]));
    let (a, b) = (
        device_put(&[1.0_f32; 4], &client).unwrap(),
        device_put(&[2.0_f32; 4], &client).unwrap(),
    );
    let c = f.call(args![donate(&a), donate(&b)]).unwrap().remove(0);
    assert!(a.is_deleted());
    assert!(!b.is_deleted(), "nothing to gain from it");
    assert_eq!(c.to_vec::<f32>().unwrap(), [3.0; 4]);
    assert_eq!(b.to_vec::<f32>().unwrap(), [2.0; 4]);
}

#[test]
fn modules_and_calls_that_cannot_be() {
    let client = client(2);
    for module in ["", "module {", "not a module", "ML\u{fffd}R"] {
        let error = jit::from_stablehlo(module).compile(&client).unwrap_err();
        assert!(matches!(error, Error::Runtime(_)), "{error}");
    }
    let (module, _) = fixture!("mlp");
    for cut in [3, 40, module.len() / 2, module.len() - 1] {
        assert!(
            jit::from_stablehlo(&module[..cut])
                .compile(&client)
                .is_err(),
            "{cut}"
        );
    }
    let f = jit::from_stablehlo(module).compile(&client).unwrap();
    // Number and types of the arguments are not known here, but the runtime looks.
    let none = f.call(args![]).unwrap_err();
    assert!(none.to_string().contains('5'), "{none}");
    let x = device_put(&[1_i32; 16], &client).unwrap();
    assert!(f.call(args![&x, &x, &x, &x, &x]).is_err());
    assert_eq!(x.to_vec::<i32>().unwrap(), [1; 16]);
}
