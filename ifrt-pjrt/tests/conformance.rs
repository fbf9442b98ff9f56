//! The conformance suite of the contract on the CPU plugin, with eight devices.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ifrt::conformance::program::stablehlo;
use ifrt::conformance::{self, Backend, Caps, Listed, ProgramKind};
use ifrt::{Client, CompileOptions, DeviceList, Program, Result, Status};
use ifrt_pjrt::{CreateOptions, PLUGIN_PATH_VARIABLE, PjrtClient, Plugin};

const NO_TOKENS: &str = "plugins abort the process when a buffer of tokens is made or read";

/// Seen with 0.106: clients that compare texts are told another one.
const PREFIXED_ERRORS: &str = "the plugin puts words of its own before the text of an error buffer";

struct PjrtCpu {
    minor: i32,
}

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
            // The plugin answers UNIMPLEMENTED.
            cost_analysis: false,
            // Older plugins write another layout onto a buffer without moving its elements.
            physical_layouts: self.minor >= 115,
            // The function came with that version.
            bitcast: self.minor >= 98,
            ..Caps::ALL
        }
    }

    fn unsupported(&self) -> &[Listed<'_>] {
        &[
            ("arr::ARR_25_tokens", NO_TOKENS),
            ("arr::ARR_40_copy_tokens", NO_TOKENS),
        ]
    }

    fn expected_failures(&self) -> &[Listed<'_>] {
        match self.minor {
            // 0.81 has no error buffers, so this crate brings the text; 0.115 has mended it.
            82..115 => &[
                ("arr::ARR_26_make_error_arrays", PREFIXED_ERRORS),
                ("arr::ARR_39_empty_error_arrays", PREFIXED_ERRORS),
                ("arr::ARR_44_copies_of_an_error_array_fail", PREFIXED_ERRORS),
                ("rsh::RSH_03_one_of_two_fails", PREFIXED_ERRORS),
            ],
            _ => &[],
        }
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
    // Without a plugin the cases can still be listed; each that runs says what is wrong.
    let loaded = plugin().and_then(|path| Ok(Plugin::load(&path)?));
    let minor = loaded.map_or(i32::MAX, Plugin::api_minor);
    conformance::main(vec![Arc::new(PjrtCpu { minor })])
}
