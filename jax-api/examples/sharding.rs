//! Data over several devices: `device_put`, meshes, shards, and a program that runs on all of them.
//!
//! ```text
//! cargo run --release -p jax-api --example sharding -- --plugin PATH
//! ```
//!
//! Without `--plugin` the path is taken from `PJRT_PLUGIN_LIBRARY_PATH`. Each line that begins with
//! `ok:` or `FAILED:` is a check; the exit code says whether all of them held.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks to its user"
)]

use std::process::ExitCode;

use jax_api::prelude::*;

/// The product of a matrix that is split by rows and one that is split by columns.
const MATMUL: &str = r#"
module @matmul attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(
      %x: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
      %w: tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>})
      -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>}) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
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
    let client = Client::pjrt(plugin, ClientOptions::new().cpu_device_count(8))?;
    let devices = client.devices();
    let numbers: Vec<f32> = (0..48_u8).map(f32::from).collect();

    // Onto one device. Without a place of its own data follows the program that it is passed to.
    let anywhere = device_put((&numbers, [8, 6]), &client)?;
    let third = device_put((&numbers, [8, 6]), &devices[3])?;
    check(
        "data that was put onto a device is committed to it",
        third.is_committed() && !anywhere.is_committed(),
    );

    // Over a mesh: dimension 0 is split four ways along "data", dimension 1 is not split. Along
    // "model" there are two copies.
    let mesh = Mesh::new(devices, [("data", 4), ("model", 2)])?;
    let by_rows = NamedSharding::new(&mesh, P!["data", None])?;
    let x = device_put((&numbers, [8, 6]), &by_rows)?;
    println!("{x} with {}", x.sharding());
    for shard in x.addressable_shards()? {
        println!(
            "  device {}: [{:?}, {:?}], copy {}, {}",
            shard.device_id, shard.index[0], shard.index[1], shard.replica_id, shard.data
        );
    }
    check("eight shards are one array", x.to_vec::<f32>()? == numbers);

    // What cannot be split evenly is refused before anything is sent.
    let odd = device_put((&numbers[..42], [7, 6]), &by_rows);
    let message = odd.err().map(|error| error.to_string());
    println!("  {}", message.as_deref().unwrap_or("no error"));
    check(
        "seven rows do not go over four devices",
        message.is_some_and(|text| text.contains("partitioned 4 times")),
    );

    // From one sharding to another, and to another kind of memory.
    let by_columns = NamedSharding::new(&mesh, P![None, "model"])?;
    let moved = device_put(&x, &by_columns)?;
    let everywhere = device_put(&x, &NamedSharding::new(&mesh, P![])?)?;
    let on_host = device_put(&x, &by_rows.with_memory_kind("pinned_host"))?;
    check(
        "the same numbers everywhere",
        moved.to_vec::<f32>()? == numbers
            && everywhere.to_vec::<f32>()? == numbers
            && on_host.to_vec::<f32>()? == numbers,
    );
    check(
        "each device has all of a replicated array",
        everywhere.is_fully_replicated() && !x.is_fully_replicated(),
    );

    // Where nothing has to move, the result is an alias: both die together. A copy lives on.
    let alias = device_put(&x, &by_rows)?;
    let copy = device_put_with(&x, &by_rows, PutOptions::new().may_alias(false))?;
    let one_shard = x.addressable_shards()?.remove(5).data;
    one_shard.delete();
    check(
        "an array without one of its shards is dead, and so is its alias",
        x.is_deleted() && alias.is_deleted(),
    );
    check("the copy is not", copy.to_vec::<f32>()? == numbers);

    // A program over all eight devices.
    let matmul = jit::from_stablehlo(MATMUL)
        .in_shardings([Some(&by_rows), Some(&by_columns)])
        .out_shardings([Some(&NamedSharding::new(&mesh, P!["data", "model"])?)])
        .compile(&client)?;
    let w = device_put((&[1.0_f32; 24], [6, 4]), &by_columns)?;
    let y = matmul.call(args![&copy, &w])?.remove(0);
    println!("{y} with {}", y.sharding());
    let sums: Vec<f32> = numbers
        .chunks(6)
        .flat_map(|row| [row.iter().sum::<f32>(); 4])
        .collect();
    check("the product is right", y.to_vec::<f32>()? == sums);

    // Arguments without a place are put where the program wants them.
    let y = matmul.call(args![&anywhere, &w])?.remove(0);
    check(
        "an uncommitted argument follows the program",
        y.to_vec::<f32>()? == sums,
    );
    let refused = matmul.call(args![&third, &w]).err();
    let message = refused.map(|error| error.to_string());
    check(
        "a committed one does not",
        message.is_some_and(|text| text.contains("incompatible devices")),
    );
    Ok(())
}
