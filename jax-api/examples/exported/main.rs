//! Runs a model that `jax.export` has written: no Python, no code to write.
//!
//! ```text
//! cargo run --release -p jax-api --example exported -- MODEL.jaxexport IN.npz --expect OUT.npz
//! ```
//!
//! The arguments stand in an archive of `numpy.savez` as `in0`, `in1`, … in the order of the leaves of
//! their tree; `arr_0`, `arr_1`, …, which is what `numpy.savez(file, x, y)` gives, does as well.
//! The exit code is 0 if all went well, 1 if something did not, 2 if the command line is wrong.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks to its user"
)]

mod compare;
mod options;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser as _;
use jax_api::prelude::*;
use jax_api::{ExportedAval, HostArray, npz};

use options::{ClientKind, Options};

/// What a person is told. The errors of the library are complete sentences already.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            if failure.to_string().contains("No FFI handler registered") {
                eprintln!(
                    "This model calls linear algebra that CPU plugins leave to their users; build \
                     this example with --features lapack."
                );
            }
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let model = Exported::load(&options.model)?;
    describe(&model);
    let Some(inputs) = &options.inputs else {
        return Ok(());
    };
    let inputs = arrays(inputs, "in", model.in_avals(), "argument")?;
    let expected = match &options.expect {
        Some(path) => Some(arrays(path, "out", model.out_avals(), "result")?),
        None => None,
    };

    let client = client(options, model.nr_devices())?;
    println!(
        "client: {}, {} device(s)",
        client.platform_name(),
        client.devices().len()
    );
    let began = Instant::now();
    let f = model.compile(&client)?;
    println!("compiled in {:.1?}", began.elapsed());

    let inputs: Vec<Array> = inputs
        .iter()
        .map(|input| device_put(input, &client))
        .collect::<Result<_, _>>()?;
    let args: Vec<jit::Arg<'_>> = inputs.iter().map(jit::Arg::from).collect();
    let mut times = Vec::new();
    let mut results = Vec::new();
    for _ in 0..options.runs {
        let began = Instant::now();
        results = f.call(&args)?;
        for result in &results {
            result.block_until_ready()?;
        }
        times.push(began.elapsed());
    }
    print_times(&mut times);

    let results: Vec<HostArray> = results
        .iter()
        .map(Array::to_host)
        .collect::<Result<_, _>>()?;
    for (n, result) in results.iter().enumerate() {
        println!("out{n}: {}", result.aval());
    }
    if let Some(path) = &options.out {
        let named = results.iter().enumerate();
        let archive = npz::write(named.map(|(n, result)| (format!("out{n}"), result.clone())))?;
        std::fs::write(path, archive).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    match expected {
        Some(expected) => compare(&results, &expected, options.tolerance),
        None => Ok(()),
    }
}

fn describe(model: &Exported) {
    println!(
        "{}: for {} on {} device(s)",
        model.function_name(),
        model.platforms().join(", "),
        model.nr_devices()
    );
    println!("  arguments {}", model.in_tree());
    for (n, aval) in model.in_avals().iter().enumerate() {
        println!("    in{n}: {aval}");
    }
    println!("  results {}", model.out_tree());
    for (n, aval) in model.out_avals().iter().enumerate() {
        println!("    out{n}: {aval}");
    }
}

/// The arrays of these types from an archive.
fn arrays(
    path: &Path,
    prefix: &str,
    avals: &[ExportedAval],
    what: &str,
) -> Result<Vec<HostArray>, Failure> {
    let archive = npz::load(path)?;
    avals
        .iter()
        .enumerate()
        .map(|(n, aval)| {
            let name = format!("{prefix}{n}");
            let array = archive
                .get(&name)
                .or_else(|| archive.get(&format!("arr_{n}")))
                .ok_or_else(|| missing(path, &name, &archive, what, n, aval))?;
            typed(array, aval).map_err(|found| {
                format!(
                    "{}: {what} {n} must be {aval}, but the array '{name}' is {found}",
                    path.display()
                )
                .into()
            })
        })
        .collect()
}

fn missing(
    path: &Path,
    name: &str,
    archive: &BTreeMap<String, HostArray>,
    what: &str,
    n: usize,
    aval: &ExportedAval,
) -> String {
    let names: Vec<&str> = archive.keys().map(String::as_str).collect();
    format!(
        "{}: {what} {n} ({aval}) must be an array with the name '{name}' or 'arr_{n}'; the archive \
         has {}",
        path.display(),
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    )
}

/// The array as the model wants it; the description of the array if it is another one.
fn typed(array: &HostArray, aval: &ExportedAval) -> Result<HostArray, String> {
    let found = || array.aval().to_string();
    if !aval.is_static() {
        // The model says by itself what it thinks of that, when it is compiled.
        return Ok(array.clone());
    }
    let wanted = aval.to_runtime().map_err(|status| status.to_string())?;
    if array.shape() != &wanted.shape {
        return Err(found());
    }
    if array.dtype() == wanted.dtype {
        return Ok(array.clone());
    }
    // NumPy's files have only the bits of types that are not NumPy's own.
    let is_bits = matches!(
        array.dtype(),
        jax_api::DType::U8 | jax_api::DType::U16 | jax_api::DType::U32
    );
    let is_numpy = npz::is_numpy_type(wanted.dtype);
    match array.with_dtype(wanted.dtype) {
        Ok(array) if is_bits && !is_numpy => Ok(array),
        _ => Err(found()),
    }
}

fn client(options: &Options, devices: usize) -> Result<Client, Failure> {
    match &options.client {
        ClientKind::Pjrt => {
            let plugin = options.plugin()?;
            let mut own = ClientOptions::new();
            for option in &options.plugin_option {
                own = own.option(option);
            }
            let client = Client::pjrt(&plugin, own.clone())?;
            // A CPU has as many devices as one asks for.
            if client.platform_name() == "cpu" && client.devices().len() < devices {
                return Ok(Client::pjrt(&plugin, own.cpu_device_count(devices))?);
            }
            Ok(client)
        }
        #[cfg(feature = "proxy")]
        ClientKind::Grpc(address) => Ok(Client::proxy(address)?),
        #[cfg(not(feature = "proxy"))]
        ClientKind::Grpc(address) => Err(format!(
            "{address}: this build has no client for the network; build it with the feature proxy, \
             or run without --client to use a plugin in this process"
        )
        .into()),
    }
}

fn print_times(times: &mut [Duration]) {
    if let [first, rest @ ..] = times {
        println!("first run {first:.1?}");
        rest.sort_unstable();
        if let (Some(fastest), Some(median)) = (rest.first(), rest.get(rest.len() / 2)) {
            println!(
                "{} more runs: fastest {fastest:.1?}, median {median:.1?}",
                rest.len()
            );
        }
    }
}

fn compare(
    results: &[HostArray],
    expected: &[HostArray],
    tolerance: Option<f64>,
) -> Result<(), Failure> {
    let mut wrong = 0;
    for (n, (found, expected)) in results.iter().zip(expected).enumerate() {
        let difference = compare::difference(found, expected)?;
        let allowed = tolerance.unwrap_or_else(|| compare::default_tolerance(found.dtype()));
        let fits = difference.fits(allowed);
        wrong += usize::from(!fits);
        let verdict = if fits { "ok" } else { "FAILED" };
        println!("{verdict}: out{n}: {difference}");
    }
    if wrong == 0 {
        println!("ok: all {} results are as expected", results.len());
        return Ok(());
    }
    Err(format!("{wrong} of {} results are not as expected", results.len()).into())
}
