//! Files that are no plugin, or none that can be used.

use std::path::{Path, PathBuf};

use ifrt::{Client, Code, Status};
use ifrt_pjrt::{CreateOptions, PjrtClient, Plugin, PluginError};

use crate::support::{client, plugin};

#[track_caller]
fn check(path: &Path, code: Code, parts: &[&str]) {
    let status = PjrtClient::create(path, &CreateOptions::new()).unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    assert!(
        status.message().contains(&*path.to_string_lossy()),
        "{status}"
    );
    for part in parts {
        assert!(status.message().contains(part), "{status}");
    }
}

#[test]
fn a_missing_file() {
    check(
        Path::new("/no/such/plugin.so"),
        Code::NotFound,
        &["cargo xtask setup"],
    );
}

#[test]
fn a_text_file() {
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    check(
        &text,
        Code::InvalidArgument,
        &["cannot be loaded as a shared library", "invalid ELF header"],
    );
}

#[test]
fn a_library_that_is_no_plugin() {
    // The C library, wherever this system has it.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .find(|path| path.contains("/libc.so"))
        .expect("no C library among the files of this process");
    check(
        Path::new(library),
        Code::InvalidArgument,
        &["does not export GetPjrtApi"],
    );
}

/// A library made from `examples/fake_plugin.rs`, which Cargo builds together with the tests.
fn fake_plugin() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let build = test.ancestors().find(|path| path.join("examples").is_dir());
    let path = build.map(|build| build.join("examples/libfake_plugin.so"));
    match path {
        Some(path) if path.exists() => path,
        _ => panic!("the fake plugin is not built; run: cargo build -p ifrt-pjrt --examples"),
    }
}

#[test]
fn a_plugin_that_is_too_old() {
    let path = fake_plugin();
    let error = Plugin::load(&path).unwrap_err();
    assert!(
        matches!(
            error,
            PluginError::UnsupportedVersion {
                major: 0,
                minor: 40,
                ..
            }
        ),
        "{error:?}"
    );
    check(
        &path,
        Code::FailedPrecondition,
        &["0.40", "0.57", "newer release"],
    );
}

#[test]
fn a_plugin_is_loaded_once_whatever_its_path_is_called() {
    let path = plugin();
    let one = Plugin::load(&path).unwrap();
    let folder = path.parent().unwrap();
    let roundabout = folder.join(".").join(path.file_name().unwrap());
    assert!(std::ptr::eq(one, Plugin::load(&roundabout).unwrap()));
    assert!(one.api_minor() >= 57);
    assert!(one.extensions().contains(&4));
    assert_eq!(one.path(), path.canonicalize().unwrap());
}

#[test]
fn options_that_the_plugin_refuses() {
    let path = plugin();
    let create = |options: &[&str]| -> Result<_, Status> {
        PjrtClient::create(&path, &CreateOptions::parse(options)?)
    };
    for option in [
        "cpu_device_count=-1",
        "cpu_device_count=x",
        "cpu_device_count=1e9",
    ] {
        assert_eq!(
            create(&[option]).unwrap_err().code(),
            Code::InvalidArgument,
            "{option}"
        );
    }
    // Newer plugins refuse names that they do not know, older ones ignore them.
    if let Err(error) = create(&["no_such_option=1"]) {
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("no_such_option=1"), "{error}");
    }
    assert_eq!(create(&["cpu_device_count=0"]).unwrap().devices().len(), 0);
    assert_eq!(client(2).devices().len(), 2);
}
