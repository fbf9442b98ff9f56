//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

/// Runs a model that jax.export has written, without Python.
///
/// Prints what the model takes and gives, how long it took, and, with --expect, the largest error.
#[derive(Debug, clap::Parser)]
#[command(name = "exported", max_term_width = 100)]
pub(crate) struct Options {
    /// What `jax.export.export(f)(...).serialize()` has written
    #[arg(value_name = "MODEL.jaxexport")]
    pub(crate) model: PathBuf,

    /// The arguments as an archive of numpy.savez: in0, in1, … (or arr_0, arr_1, …) in the order of
    /// the leaves of their tree. Without it, only says what the model is
    #[arg(value_name = "IN.npz")]
    pub(crate) inputs: Option<PathBuf>,

    /// The expected results: out0, out1, … (or arr_0, arr_1, …); may be the same file
    #[arg(long, value_name = "OUT.npz", requires = "inputs")]
    pub(crate) expect: Option<PathBuf>,

    /// Writes the results as out0, out1, …
    #[arg(long, value_name = "FILE.npz", requires = "inputs")]
    pub(crate) out: Option<PathBuf>,

    /// Where to run: a plugin in this process, or a server
    #[arg(long, value_name = "pjrt|grpc://HOST:PORT", default_value = "pjrt")]
    pub(crate) client: ClientKind,

    /// The plugin; `cargo xtask setup` fetches one for the CPU
    #[arg(long, value_name = "PATH", env = "PJRT_PLUGIN_LIBRARY_PATH")]
    plugin: Option<PathBuf>,

    /// An option of the plugin; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) plugin_option: Vec<String>,

    /// How often to run it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,

    /// The largest error that is fine, as a part of the expected value (of 1, if that is more).
    /// Otherwise 1e-5, and 1e-2 for types of 16 bits
    #[arg(long, value_name = "X")]
    pub(crate) tolerance: Option<f64>,
}

/// Where to run.
#[derive(Clone, Debug)]
pub(crate) enum ClientKind {
    Pjrt,
    Grpc(String),
}

impl FromStr for ClientKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "pjrt" => Ok(Self::Pjrt),
            _ if text.starts_with("grpc://") || text.starts_with("grpcs://") => {
                Ok(Self::Grpc(text.to_owned()))
            }
            _ => Err(
                "expected pjrt, or the address of a server such as grpc://127.0.0.1:8470".into(),
            ),
        }
    }
}

/// Where `cargo xtask setup` leaves its plugin.
const FETCHED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../target/xtask/plugins/pjrt_cpu.so"
);

impl Options {
    /// The plugin that was named, else the one that was fetched.
    pub(crate) fn plugin(&self) -> Result<PathBuf, String> {
        let fetched = PathBuf::from(FETCHED);
        match &self.plugin {
            Some(plugin) => Ok(plugin.clone()),
            None if fetched.exists() => Ok(fetched),
            None => Err(
                "which plugin? Pass --plugin PATH, set PJRT_PLUGIN_LIBRARY_PATH, or fetch one for \
                 the CPU with `cargo xtask setup`."
                    .into(),
            ),
        }
    }
}
