//! The life and death of arrays, on a PJRT plugin in this process.
//!
//! ```text
//! cargo run --release -p jax-api --example delete -- --plugin PATH
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
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ifrt_pjrt::{CreateOptions, PLUGIN_PATH_VARIABLE, PjrtClient};
use jax_api::prelude::*;

/// Adds an array to itself.
const DOUBLE: &str = r#"
module @double {
  func.func public @main(%x: tensor<16xf32>) -> tensor<16xf32> {
    %y = stablehlo.add %x, %x : tensor<16xf32>
    return %y : tensor<16xf32>
  }
}"#;

/// One step of training, as far as memory is concerned: the new state has the type of the old one.
const STEP: &str = r#"
module @step {
  func.func public @main(%state: tensor<16xf32>, %batch: tensor<16xf32>) -> tensor<16xf32> {
    %next = stablehlo.add %state, %batch : tensor<16xf32>
    return %next : tensor<16xf32>
  }
}"#;

/// Takes a while: a matrix to the power of four.
const SLOW: &str = r#"
module @slow {
  func.func public @main(%a: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %b = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
      : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %c = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0]
      : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %c : tensor<1024x1024xf32>
  }
}"#;

/// Doubles an array that is spread over eight devices.
const DOUBLE_SHARDED: &str = r#"
module @double_sharded attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%x: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %y = stablehlo.add %x, %x : tensor<16xf32>
    return %y : tensor<16xf32>
  }
}"#;

fn main() -> ExitCode {
    let Some(plugin) = plugin_path() else {
        eprintln!(
            "which plugin? pass --plugin PATH or set {PLUGIN_PATH_VARIABLE}; \
             `cargo xtask setup` fetches one for the CPU"
        );
        return ExitCode::from(2);
    };
    let mut report = Report { failed: 0 };
    if let Err(error) = story(&plugin, &mut report) {
        report.check("the story was told to its end", false, &error.to_string());
    }
    if report.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn story(plugin: &str, report: &mut Report) -> jax_api::Result<()> {
    // `Client::pjrt(plugin, ClientOptions::new().cpu_device_count(8))` would do. The runtime is made
    // by hand here because the end of the story asks it when it has freed something.
    let options = CreateOptions::parse(["cpu_device_count=8"])?;
    let runtime = PjrtClient::create(plugin.as_ref(), &options)?;
    let client = Client::from_ifrt(Arc::clone(&runtime) as _);
    let device = &client.devices()[0];
    println!(
        "{} with {} devices",
        client.platform_version().trim(),
        client.devices().len()
    );

    // Data onto a device, through a program, and back.
    let double = jit::from_stablehlo(DOUBLE).compile(&client)?;
    let x = device_put(&[1.5_f32; 16], device)?;
    let y = double.call(args![&x])?.remove(0);
    report.check(
        "a program doubles an array",
        y.to_vec::<f32>()? == [3.0; 16],
        "",
    );

    // Deletion is a word and not a request: it cannot fail, and saying it twice is fine.
    let alias = x.clone();
    report.delete("a small array", &x);
    report.delete("the same again", &x);
    report.check(
        "is_deleted() is true, also for a clone",
        x.is_deleted() && alias.is_deleted(),
        "",
    );
    report.check(
        "the result of the program lives on",
        y.to_vec::<f32>()? == [3.0; 16],
        "",
    );

    // What needs no data still works on a dead array; everything else says what happened to it.
    report.check(
        "its shape is still known",
        x.shape() == [16],
        &x.to_string(),
    );
    let words = "Array has been deleted with shape=float32[16].";
    for (what, error) in [
        ("reading it", x.to_vec::<f32>().err()),
        ("calling with it", double.call(args![&x]).err()),
        (
            "putting it elsewhere",
            device_put(&x, &client.devices()[1]).err(),
        ),
    ] {
        let found = error.map(|error| error.to_string()).unwrap_or_default();
        report.check(&format!("{what} is an error"), found == words, &found);
    }

    // Deleting an input does not disturb the program that is running on it.
    let slow = jit::from_stablehlo(SLOW).compile(&client)?;
    let row = 1.0 / 1024.0_f32;
    let a = device_put((vec![row; 1024 * 1024], [1024, 1024]), device)?;
    a.block_until_ready()?;
    let power = slow.call(args![&a])?.remove(0);
    report.delete("the input of a running program", &a);
    let right = power.to_vec::<f32>()?.iter().all(|value| *value == row);
    report.check("the program finished with the right result", right, "");

    // A donated array lends its memory to the result and is dead afterwards. The batch is passed by
    // reference, so nothing can happen to it.
    let step = jit::from_stablehlo(STEP)
        .donate_argnums([0])
        .compile(&client)?;
    let batch = device_put(&[1.0_f32; 16], device)?;
    let state = device_put(&[0.0_f32; 16], device)?;
    let next = step.call(args![donate(&state), &batch])?.remove(0);
    report.check(
        "a donated array is dead",
        state.is_deleted(),
        &state.to_string(),
    );
    report.check("the batch is not", !batch.is_deleted(), &batch.to_string());
    report.check("the state went on", next.to_vec::<f32>()? == [1.0; 16], "");
    let clash = step.call(args![donate(&next), &next]).err();
    let clash = clash.map(|error| error.to_string()).unwrap_or_default();
    report.check(
        "donating and using one array is refused",
        clash.contains("f(donate(a), a)"),
        "",
    );
    report.check("which leaves it alive", !next.is_deleted(), "");

    // An array over eight devices is eight buffers and one fate.
    let mesh = Mesh::new(client.devices(), [("x", 8)])?;
    let over_eight = NamedSharding::new(&mesh, P!["x"])?;
    let sharded = jit::from_stablehlo(DOUBLE_SHARDED)
        .in_shardings([Some(&over_eight)])
        .out_shardings([Some(&over_eight)])
        .compile(&client)?;
    let values: Vec<f32> = (0..16_u8).map(f32::from).collect();
    let wide = device_put(&values, &over_eight)?;
    let shards = wide.addressable_shards()?;
    let doubled = sharded.call(args![&wide])?.remove(0);
    report.delete("an array over eight devices", &wide);
    let all_dead = shards.iter().all(|shard| shard.data.is_deleted());
    report.check(
        "all of its shards are dead",
        shards.len() == 8 && all_dead,
        "",
    );
    let twice: Vec<f32> = values.iter().map(|value| 2.0 * value).collect();
    report.check(
        "the sharded program was right",
        doubled.to_vec::<f32>()? == twice,
        "",
    );

    // Freeing 64 MiB takes the plugin milliseconds. Not us: that happens on another thread. On a busy
    // machine that thread may get the core of this one, so the fastest of some deletions counts.
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let large = device_put(vec![1.0_f32; 16 << 20], device)?;
        large.block_until_ready()?;
        let freed_before = runtime.buffer_counts().freed_by_reaper;
        let asked = Instant::now();
        let took = report.delete("64 MiB", &large);
        while runtime.buffer_counts().freed_by_reaper == freed_before {
            if asked.elapsed() > Duration::from_secs(10) {
                report.check("the memory is freed", false, "not after ten seconds");
                break;
            }
            thread::yield_now();
        }
        println!("    the plugin had freed it after {:?}", asked.elapsed());
        fastest = fastest.min(took);
    }
    report.check(
        "delete() of 64 MiB does not wait for that",
        fastest < Duration::from_millis(1),
        &format!("{fastest:?}"),
    );

    // Several at once, and what has become of all this.
    let many: Vec<Array> = (0..100_u8)
        .map(|n| device_put(f32::from(n), device))
        .collect::<Result<_, _>>()?;
    let began = Instant::now();
    delete_all(&many);
    println!("    delete_all() of 100 arrays took {:?}", began.elapsed());
    report.check("they are dead", many.iter().all(Array::is_deleted), "");
    let all_told = client.drain_deletions(Duration::from_secs(10));
    let stats = client.deletion_stats();
    report.check(
        "the plugin was told of every deletion, and none failed",
        all_told && stats.requested == stats.told && stats.failed == 0,
        &format!("{} of {}", stats.told, stats.requested),
    );
    Ok(())
}

/// Counts and prints what went wrong.
struct Report {
    failed: u32,
}

impl Report {
    fn check(&mut self, what: &str, holds: bool, detail: &str) {
        let detail = match detail {
            "" => String::new(),
            detail => format!(" ({detail})"),
        };
        if holds {
            println!("ok: {what}{detail}");
        } else {
            self.failed += 1;
            println!("FAILED: {what}{detail}");
        }
    }

    /// Deletes an array and tells how long that took.
    fn delete(&mut self, what: &str, array: &Array) -> Duration {
        let began = Instant::now();
        array.delete();
        let took = began.elapsed();
        println!("    delete() of {what} took {took:?}");
        self.check(&format!("{what} is deleted"), array.is_deleted(), "");
        took
    }
}

fn plugin_path() -> Option<String> {
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--plugin" {
            return args.next();
        }
        if let Some(path) = arg.strip_prefix("--plugin=") {
            return Some(path.to_owned());
        }
    }
    std::env::var(PLUGIN_PATH_VARIABLE).ok()
}
