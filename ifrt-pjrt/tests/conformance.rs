//! The conformance suite of the contract on the CPU plugin, with eight devices.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ifrt::conformance::program::stablehlo;
use ifrt::conformance::{self, Backend, Caps, Listed, ProgramKind};
use ifrt::{Client, CompileOptions, DeviceList, Program, Result, Status};
use ifrt_pjrt::{CreateOptions, PLUGIN_PATH_VARIABLE, PjrtClient};

const NO_TOKENS: &str = "plugins abort the process when a buffer of tokens is made or read";

struct PjrtCpu;

impl Backend for PjrtCpu {
    fn name(&self) -> &str {
        "pjrt-cpu"
    }

    fn client(&self) -> Result<Arc<dyn Client>> {
        let options = CreateOptions::parse(["cpu_device_count=8"])?;
        Ok(PjrtClient::create(&plugin()?, &options)?)
    }

    fn caps(&self) -> Caps {
        Caps {
            // Neither the plugin nor the reference runtime above it reshards.
            reshard: false,
            // The plugin answers UNIMPLEMENTED.
            cost_analysis: false,
            ..Caps::ALL
        }
    }

    fn unsupported(&self) -> &[Listed<'_>] {
        &[
            ("arr::ARR_25_tokens", NO_TOKENS),
            ("arr::ARR_40_copy_tokens", NO_TOKENS),
        ]
    }

    fn program(
        &self,
        kind: ProgramKind,
        devices: &DeviceList,
    ) -> Option<(Program, CompileOptions)> {
        stablehlo(kind, devices)
    }
}

/// The plugin that the environment names, else the one that `cargo xtask setup` installs.
fn plugin() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(PLUGIN_PATH_VARIABLE) {
        return Ok(path.into());
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join("target/xtask/plugins/pjrt_cpu.so");
    if path.exists() {
        return Ok(path);
    }
    Err(Status::failed_precondition(format!(
        "there is no CPU plugin at {}; run: cargo xtask setup (or set {PLUGIN_PATH_VARIABLE})",
        path.display()
    )))
}

fn main() -> ExitCode {
    conformance::main(vec![Arc::new(PjrtCpu)])
}
