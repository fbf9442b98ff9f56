//! The same on the CPU plugin.

mod deletion;
#[cfg(feature = "npz")]
mod examples;
#[cfg(feature = "npz")]
mod exported;
#[cfg(feature = "proxy")]
mod far;
mod jit;

use std::path::PathBuf;

use ifrt_pjrt::PLUGIN_PATH_VARIABLE;
use jax_api::prelude::*;
use serde_json::Value;

/// The CPU plugin: the one that the environment names, else the one of `cargo xtask setup`.
fn plugin() -> PathBuf {
    if let Some(path) = std::env::var_os(PLUGIN_PATH_VARIABLE) {
        return path.into();
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join("target/xtask/plugins/pjrt_cpu.so");
    assert!(
        path.exists(),
        "these tests need the CPU plugin at {}; run: cargo xtask setup (or set \
         {PLUGIN_PATH_VARIABLE})",
        path.display()
    );
    path
}

fn client(devices: usize) -> Client {
    Client::pjrt(plugin(), ClientOptions::new().cpu_device_count(devices)).unwrap()
}

/// Arrays of a fixture: inputs or outputs.
fn arrays(fixture: &str, which: &str) -> Vec<(Vec<f32>, Vec<usize>)> {
    let fixture: Value = serde_json::from_str(fixture).unwrap();
    let arrays = fixture[which].as_array().unwrap();
    arrays
        .iter()
        .map(|array| {
            let data = array["data"].as_array().unwrap().iter();
            let shape = array["shape"].as_array().unwrap().iter();
            (
                // Written from single precision, so the way back is exact.
                data.map(|value| serde_json::from_value(value.clone()).unwrap())
                    .collect(),
                shape
                    .map(|dim| serde_json::from_value(dim.clone()).unwrap())
                    .collect(),
            )
        })
        .collect()
}

#[test]
fn what_cannot_be_loaded() {
    let options = ClientOptions::new;
    let missing = Client::pjrt("no/such/plugin.so", options()).unwrap_err();
    assert!(
        missing.to_string().contains("no/such/plugin.so"),
        "{missing}"
    );
    let text = Client::pjrt(
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        options(),
    );
    assert!(text.unwrap_err().to_string().contains("Cargo.toml"));
    let option = Client::pjrt(plugin(), options().option("cpu_device_count"));
    assert!(option.unwrap_err().to_string().contains("name=value"));
}

#[test]
fn devices() {
    let client = client(8);
    assert_eq!(client.platform_name(), "cpu");
    let ids: Vec<i32> = client.devices().iter().map(Device::id).collect();
    assert_eq!(ids, (0..8).collect::<Vec<i32>>());
    assert!(client.devices().iter().all(Device::is_addressable));
    assert!(format!("{client:?}").contains("cpu"));
}
