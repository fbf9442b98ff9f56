//! A training loop whose state never exists twice: each step takes over the memory of the last one.
//!
//! ```text
//! cargo run --release -p jax-api --example training -- --plugin PATH
//! ```
//!
//! Without `--plugin` the path is taken from `PJRT_PLUGIN_LIBRARY_PATH`. The state is the weights of
//! a linear model and their momentum; the batches lie over four devices, so the gradient is a sum
//! over all of them. Each line that begins with `ok:` or `FAILED:` is a check; the exit code says
//! whether all of them held.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks to its user"
)]

use std::process::ExitCode;
use std::sync::Arc;

use ifrt_pjrt::{CreateOptions, PjrtClient};
use jax_api::prelude::*;

const FEATURES: usize = 16;
const EXAMPLES: usize = 64;
const STEPS: usize = 200;

/// One step of gradient descent with momentum on the mean squared error. JAX would write the same:
/// `w, m, loss = step(w, m, x, y)`.
const STEP: &str = r#"
module @step attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["batch"=4]>
  func.func public @main(
      %w: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
      %m: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
      %x: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"batch"}, {}]>},
      %y: tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"batch"}]>})
      -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
          tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
          tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
    %prediction = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x16xf32>, tensor<16xf32>) -> tensor<64xf32>
    %error = stablehlo.subtract %prediction, %y : tensor<64xf32>
    %count = stablehlo.constant dense<64.0> : tensor<f32>
    %square = stablehlo.dot_general %error, %error, contracting_dims = [0] x [0]
      : (tensor<64xf32>, tensor<64xf32>) -> tensor<f32>
    %loss = stablehlo.divide %square, %count : tensor<f32>
    %sum = stablehlo.dot_general %error, %x, contracting_dims = [0] x [0]
      : (tensor<64xf32>, tensor<64x16xf32>) -> tensor<16xf32>
    %scale = stablehlo.constant dense<0.03125> : tensor<16xf32>
    %gradient = stablehlo.multiply %sum, %scale : tensor<16xf32>
    %keep = stablehlo.constant dense<0.9> : tensor<16xf32>
    %kept = stablehlo.multiply %m, %keep : tensor<16xf32>
    %m_next = stablehlo.add %kept, %gradient : tensor<16xf32>
    %rate = stablehlo.constant dense<0.05> : tensor<16xf32>
    %change = stablehlo.multiply %m_next, %rate : tensor<16xf32>
    %w_next = stablehlo.subtract %w, %change : tensor<16xf32>
    return %w_next, %m_next, %loss : tensor<16xf32>, tensor<16xf32>, tensor<f32>
  }
}"#;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let named = match (args.next().as_deref(), args.next()) {
        (Some("--plugin"), path) => path,
        _ => std::env::var("PJRT_PLUGIN_LIBRARY_PATH").ok(),
    };
    let Some(plugin) = named else {
        eprintln!(
            "which plugin? pass --plugin PATH or set PJRT_PLUGIN_LIBRARY_PATH; `cargo xtask setup` \
             fetches one for the CPU"
        );
        return ExitCode::from(2);
    };
    let mut failed = 0_u32;
    let told = story(&plugin, &mut |what, holds| {
        failed += u32::from(!holds);
        println!("{}: {what}", if holds { "ok" } else { "FAILED" });
    });
    if let Err(error) = told {
        println!("FAILED: the story was told to its end: {error}");
        failed += 1;
    }
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn story(plugin: &str, check: &mut dyn FnMut(&str, bool)) -> jax_api::Result<()> {
    // `Client::pjrt` would do. The runtime is made by hand because the end of the story asks it how
    // many buffers there are.
    let options = CreateOptions::parse(["cpu_device_count=4"])?;
    let runtime = PjrtClient::create(plugin.as_ref(), &options)?;
    let client = Client::from_ifrt(Arc::clone(&runtime) as _);
    let mesh = Mesh::new(client.devices(), [("batch", 4)])?;
    let everywhere = NamedSharding::new(&mesh, P![])?;
    let by_example = NamedSharding::new(&mesh, P!["batch"])?;

    let step = jit::from_stablehlo(STEP)
        .donate_argnums([0, 1])
        .compile(&client)?;

    // What the model is to find, and examples of it.
    let truth: Vec<f32> = (0..16_u8).map(|n| f32::from(n) / 8.0 - 1.0).collect();
    let mut noise = Noise(1);
    let x: Vec<f32> = (0..EXAMPLES * FEATURES).map(|_| noise.next()).collect();
    let y: Vec<f32> = x
        .chunks(FEATURES)
        .map(|example| example.iter().zip(&truth).map(|(x, w)| x * w).sum())
        .collect();
    let x = device_put((x, [EXAMPLES, FEATURES]), &by_example)?;
    let y = device_put(y, &by_example)?;

    let first = device_put(&[0.0_f32; FEATURES], &everywhere)?;
    let mut weights = first.clone();
    let mut momentum = device_put(&[0.0_f32; FEATURES], &everywhere)?;
    let mut losses = Vec::new();
    for n in 0..STEPS {
        // The batch is passed by reference: nothing can happen to it. The state is given away.
        let results = step.call(args![donate(weights), donate(momentum), &x, &y])?;
        let [next_weights, next_momentum, loss] =
            <[Array; 3]>::try_from(results).map_err(|found| {
                jax_api::Error::from(jax_api::Status::internal(format!(
                    "the step gave {} results",
                    found.len()
                )))
            })?;
        (weights, momentum) = (next_weights, next_momentum);
        if n % 50 == 0 || n + 1 == STEPS {
            // Reading waits for the device; a loop that only enqueues is faster.
            losses.push(loss.item::<f32>()?);
            println!("step {n:3}: loss {:.6}", losses[losses.len() - 1]);
        }
        // A result that nobody needs goes now, not when the loop comes round.
        loss.delete();
    }

    check(
        "the weights of the beginning were consumed by the first step",
        first.is_deleted(),
    );
    check("the batch was not", !x.is_deleted() && !y.is_deleted());
    let is_falling = losses.windows(2).all(|pair| pair[1] < pair[0]);
    check("the loss falls", is_falling);
    let found = weights.to_vec::<f32>()?;
    let error = found.iter().zip(&truth).map(|(w, t)| (w - t).abs());
    let largest = error.fold(0.0, f32::max);
    println!("largest error of a weight: {largest:.6}");
    check("the weights are found", largest < 1e-2);

    // Two states and a batch, each over four devices; the state of 200 steps is not among them.
    client.drain_deletions(std::time::Duration::from_secs(10));
    let live = runtime.buffer_counts().live();
    println!("{live} buffers are left");
    check("nothing has piled up", live == 4 * 4);
    Ok(())
}

/// Numbers between -1 and 1 that look random and are the same each time.
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, _, low, high] = self.0.to_le_bytes();
        f32::from(u16::from_le_bytes([low, high])) / 32_768.0 - 1.0
    }
}
