//! Devices that a server has, on this machine or on another one.
//!
//! ```text
//! cargo xtask serve                 # or any other server of the IFRT proxy; prints its address
//! cargo run --release -p jax-api --example far_device -- grpc://127.0.0.1:PORT
//! ```
//!
//! Without an address it is taken from `JAX_BACKEND_TARGET`, as in Python. Each line that begins with
//! `ok:` or `FAILED:` is a check; the exit code says whether all of them held.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks to its user"
)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use jax_api::prelude::*;

/// Adds an array to itself.
const DOUBLE: &str = r#"
module @double {
  func.func public @main(%x: tensor<16xf32>) -> tensor<16xf32> {
    %y = stablehlo.add %x, %x : tensor<16xf32>
    return %y : tensor<16xf32>
  }
}"#;

fn main() -> ExitCode {
    let named = std::env::args().nth(1);
    let Some(address) = named.or_else(|| std::env::var("JAX_BACKEND_TARGET").ok()) else {
        eprintln!(
            "which server? pass its address, such as grpc://127.0.0.1:8470, or set \
             JAX_BACKEND_TARGET; `cargo xtask serve` starts one"
        );
        return ExitCode::from(2);
    };
    let mut failed = 0_u32;
    let told = story(&address, &mut |what, holds| {
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

fn story(address: &str, check: &mut dyn FnMut(&str, bool)) -> jax_api::Result<()> {
    // The one line that is different. A program need not know where its devices are.
    let client = Client::proxy(address)?;
    println!(
        "{} with {} devices, far away",
        client.platform_version().trim(),
        client.devices().len()
    );
    let double = jit::from_stablehlo(DOUBLE).compile(&client)?;
    let x = device_put(&[1.5_f32; 16], &client)?;
    let y = double.call(args![&x])?.remove(0);
    check(
        "a program doubles an array",
        y.to_vec::<f32>()? == [3.0; 16],
    );

    // From the second call on nothing waits for the server, however far it is: a hundred calls in a
    // row, each with the result of the one before, cost one way there and back.
    let mut chained = device_put(&[1.0_f32; 16], &client)?;
    let began = Instant::now();
    for _ in 0..100 {
        chained = double.call(args![&chained])?.remove(0);
    }
    println!("    100 chained calls were sent in {:?}", began.elapsed());
    let result = chained.to_vec::<f32>()?;
    println!("    and their result was here after {:?}", began.elapsed());
    check("a hundred times double", result == [100_f32.exp2(); 16]);

    // Deletion is a word here too: nobody waits until the server has heard it.
    let began = Instant::now();
    x.delete();
    x.delete();
    println!(
        "    delete() of an array, twice, took {:?}",
        began.elapsed()
    );
    check("it is deleted at once", x.is_deleted());
    let words = "Array has been deleted with shape=float32[16].";
    let error = x.to_vec::<f32>().err().map(|error| error.to_string());
    check("reading it says so", error.as_deref() == Some(words));
    check("its result lives on", y.to_vec::<f32>()? == [3.0; 16]);
    check(
        "the server has been told of all deletions",
        client.drain_deletions(Duration::from_secs(10)),
    );
    Ok(())
}
