//! One of everything that this crate does with a plugin, for runs under a fault, a leak checker or a
//! sanitizer.
//!
//! `cargo run -p ifrt-pjrt --example scenario PLUGIN [CYCLES]`
//!
//! A step that fails says so and the next one follows: whatever the plugin does, the process ends,
//! and with 0. With a number of cycles it puts, runs and deletes so often instead, and prints how
//! much memory the process has gained since the first tenth.

#![allow(
    clippy::print_stdout,
    reason = "an example speaks to whoever started it"
)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ifrt::proto::xla::{CompileOptionsProto, ExecutableBuildOptionsProto};
use ifrt::xla::HloSharding;
use ifrt::{
    ArrayCopySemantics, ArrayRef, ArraySpec, Client as _, CompileOptions, Completion, DType,
    ExecuteOptions, HloProgram, HostBuffer, HostData, LoadedExecutableRef, MemoryKind, Program,
    Result, Shape, ShardSemantics, Sharding, ShardingRef, Status, XlaCompileOptions,
};
use ifrt_pjrt::{CreateOptions, PjrtClient};
use prost::Message as _;

/// Longer than any step takes. A leak checker needs more: `SCENARIO_PATIENCE`, in seconds.
fn patience() -> Duration {
    let text = std::env::var("SCENARIO_PATIENCE").ok();
    Duration::from_secs(text.and_then(|text| text.parse().ok()).unwrap_or(5))
}

/// Floats in an array: enough that freeing it is not done by the caller.
const ELEMENTS: i64 = 1 << 18;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let [_, plugin, rest @ ..] = &args[..] else {
        println!("usage: scenario PLUGIN [CYCLES]");
        return ExitCode::from(2);
    };
    let cycles = rest.first().map(|text| text.parse::<u32>());
    let client = match make_client(plugin) {
        Ok(client) => client,
        Err(status) => {
            println!("client: {status}");
            return ExitCode::SUCCESS;
        }
    };
    let gone = client.gone();
    match cycles {
        None => steps(client),
        Some(Ok(cycles)) => tell("cycles", run_cycles(&client, cycles)),
        Some(Err(error)) => {
            println!("the number of cycles: {error}");
            return ExitCode::from(2);
        }
    }
    if is_over(&gone) {
        println!("the client is gone");
    }
    ExitCode::SUCCESS
}

fn is_over(gone: &Completion) -> bool {
    gone.wait_timeout(patience()).is_some()
}

fn make_client(plugin: &str) -> Result<Arc<PjrtClient>> {
    let options = CreateOptions::parse(["cpu_device_count=2"])?;
    PjrtClient::create(Path::new(plugin), &options)
}

fn tell(step: &str, result: Result<()>) {
    match result {
        Ok(()) => println!("{step}: ok"),
        Err(status) => println!("{step}: {status}"),
    }
}

fn wait<T: Clone>(completion: &Completion<T>) -> Result<T> {
    let late = || Err(Status::deadline_exceeded("nothing came in time"));
    completion.wait_timeout(patience()).unwrap_or_else(late)
}

fn steps(client: Arc<PjrtClient>) {
    let client = &client;
    tell("topology", describe(client));
    tell("transfer", transfer(client));
    tell("zero copy", zero_copy(client));
    tell("small types", small_types(client));
    tell("rearranging", rearrange(client));
    tell("programs", programs(client));
    tell("deletion", deletion(client));
    tell("errors", errors(client));
}

fn describe(client: &PjrtClient) -> Result<()> {
    for device in client.devices() {
        println!(
            "  {} with {} memories",
            device.to_text(),
            device.memories().len()
        );
    }
    client.default_device_assignment(1, 2).map(drop)
}

fn on(client: &PjrtClient, position: usize) -> Result<ShardingRef> {
    let device = client.devices().get(position);
    let device = device.ok_or_else(|| Status::internal("a device is missing"))?;
    Ok(Sharding::single_device(
        Arc::clone(device),
        MemoryKind::default(),
    ))
}

fn put(client: &PjrtClient, elements: i64) -> Result<ArrayRef> {
    let data = vec![0_u8; usize::try_from(elements * 4).unwrap_or(0)];
    let shape = Shape::new([elements])?;
    let host = HostBuffer::dense(HostData::Borrowed(&data), DType::F32, shape);
    client.make_array_from_host_buffer(host, on(client, 0)?, None)
}

fn transfer(client: &PjrtClient) -> Result<()> {
    for elements in [0, 1, ELEMENTS] {
        let x = put(client, elements)?;
        wait(&x.ready())?;
        wait(&x.copy_to_host(None))?;
        wait(&x.copy_to_host(Some(&[4])))?;
        x.byte_size()?;
    }
    Ok(())
}

fn zero_copy(client: &PjrtClient) -> Result<()> {
    let data = HostData::Shared(vec![0_u8; 1 << 20].into());
    let host = HostBuffer::dense(data, DType::U8, Shape::new([1 << 20])?);
    let x = client.make_array_from_host_buffer(host, on(client, 1)?, None)?;
    wait(&x.ready())
}

fn small_types(client: &PjrtClient) -> Result<()> {
    let host = HostBuffer::dense(HostData::Borrowed(&[1; 17]), DType::S4, Shape::new([17])?);
    let x = client.make_array_from_host_buffer(host, on(client, 0)?, None)?;
    wait(&x.copy_to_host(None)).map(drop)
}

fn rearrange(client: &PjrtClient) -> Result<()> {
    let x = put(client, 8)?;
    let devices = client.devices().to_vec();
    let tiled = Sharding::hlo(
        HloSharding::tile([2])?,
        devices.iter().cloned().collect(),
        MemoryKind::default(),
    )?;
    let spec = ArraySpec {
        dtype: DType::F32,
        shape: x.shape().clone(),
        sharding: tiled,
        layout: None,
    };
    let reuse = ArrayCopySemantics::ReuseInput;
    let tiled = client.reshard_arrays(&[Arc::clone(&x)], &[spec], reuse)?;
    for array in &tiled {
        for shard in array.disassemble(reuse, ShardSemantics::All)? {
            wait(&shard.copy_to_host(None))?;
        }
    }
    let there = devices.get(1).cloned().into_iter().collect();
    let copies = client.copy_arrays(&[x], Some(there), None, ArrayCopySemantics::AlwaysCopy)?;
    copies.iter().try_for_each(|copy| wait(&copy.ready()))
}

fn module(elements: i64) -> String {
    format!(
        "module @add {{ func.func @main(%x: tensor<{elements}xf32>) -> tensor<{elements}xf32> {{
           %y = stablehlo.add %x, %x : tensor<{elements}xf32>
           return %y : tensor<{elements}xf32> }} }}"
    )
}

fn options() -> XlaCompileOptions {
    let options = CompileOptionsProto {
        executable_build_options: Some(ExecutableBuildOptionsProto {
            device_ordinal: -1,
            num_replicas: 1,
            num_partitions: 1,
            ..ExecutableBuildOptionsProto::default()
        }),
        ..CompileOptionsProto::default()
    };
    XlaCompileOptions {
        compile_options: options.encode_to_vec().into(),
        devices: None,
        outputs_bundle_slice_sizes: None,
    }
}

fn compile(client: &PjrtClient, elements: i64) -> Result<LoadedExecutableRef> {
    let program = Program::Hlo(HloProgram {
        module: module(elements).into(),
    });
    let options = CompileOptions::Xla(options());
    wait(&client.default_compiler().compile_and_load(program, options))
}

fn programs(client: &PjrtClient) -> Result<()> {
    let f = compile(client, ELEMENTS)?;
    let x = put(client, ELEMENTS)?;
    let options = ExecuteOptions {
        fill_status: true,
        ..ExecuteOptions::default()
    };
    let run = f.execute(&[Arc::clone(&x)], &options, None)?;
    if let Some(status) = &run.status {
        wait(status)?;
    }
    for output in &run.outputs {
        wait(&output.copy_to_host(None))?;
    }
    // What a plugin does not tell is an error, and no reason to stop.
    tell("  memory", f.compiled_memory_stats().map(drop));
    tell("  costs", f.cost_analysis().map(drop));
    tell("  modules", f.hlo_modules().map(drop));
    tell("  fingerprint", f.fingerprint().map(drop));
    tell("  serialization", f.serialize().map(drop));
    Ok(())
}

/// Deletion takes the caller no time, whatever the plugin does with the memory.
fn deletion(client: &PjrtClient) -> Result<()> {
    for _ in 0..3 {
        let x = put(client, ELEMENTS)?;
        let start = Instant::now();
        let first = x.delete();
        let took = start.elapsed();
        let second = x.delete();
        if took > Duration::from_secs(1) {
            println!("SLOW: a deletion took {took:?}");
        }
        if !x.is_deleted() {
            println!("WRONG: a deleted array says that it is alive");
        }
        wait(&first)?;
        wait(&second)?;
    }
    Ok(())
}

fn errors(client: &PjrtClient) -> Result<()> {
    let spec = ArraySpec {
        dtype: DType::F32,
        shape: Shape::new([2])?,
        sharding: on(client, 0)?,
        layout: None,
    };
    for array in client.make_error_arrays(Status::internal("on purpose"), &[spec])? {
        match wait(&array.ready()) {
            Err(status) => println!("  an error array: {status}"),
            Ok(()) => println!("WRONG: an array of an error is ready"),
        }
    }
    Ok(())
}

fn run_cycles(client: &PjrtClient, cycles: u32) -> Result<()> {
    let f = compile(client, 1)?;
    let mut warm = resident_kib()?;
    for cycle in 0..cycles {
        let x = put(client, 1)?;
        let run = f.execute(&[Arc::clone(&x)], &ExecuteOptions::default(), None)?;
        for output in run.outputs {
            wait(&output.ready())?;
            output.delete().detach();
        }
        x.delete().detach();
        if cycle == cycles / 10 {
            warm = resident_kib()?;
        }
    }
    let (now, live) = (resident_kib()?, client.buffer_counts().live());
    println!(
        "{cycles} cycles: {} KiB more than after the first tenth, {live} buffers live",
        now - warm
    );
    Ok(())
}

/// The memory of this process.
///
/// # Errors
/// INTERNAL if the system does not tell; without it a leak could not be seen.
fn resident_kib() -> Result<i64> {
    let unknown = |why: String| Status::internal(format!("/proc/self/status: {why}"));
    let status =
        std::fs::read_to_string("/proc/self/status").map_err(|error| unknown(error.to_string()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| unknown("it names no VmRSS".to_owned()))
}
