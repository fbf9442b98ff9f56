//! The bodies of the fuzz targets: each takes any bytes and must neither panic nor hang nor use
//! memory without bounds, whatever they are.
//!
//! What a reader accepts must be consistent: written and read again it is the same, and what it
//! says of itself is true. A broken promise is a panic, which a fuzzer reports and a test fails on.
//!
//! `jax-api/fuzz` drives these functions with libFuzzer and keeps a corpus for each, which an
//! ordinary test replays.

use std::sync::LazyLock;

use ifrt::fake::{FakeClient, FakeOptions};

use crate::{Client, Exported, npz, safetensors};

/// A target by name.
pub type Target = (&'static str, fn(&[u8]));

/// Every target by name.
pub const TARGETS: [Target; 3] = [
    ("exported", exported),
    ("npz", npz_archive),
    ("safetensors", safetensors_file),
];

/// An exported function: what is read can be described, and compiling it is no crash.
///
/// # Panics
/// If a promise is broken.
pub fn exported(data: &[u8]) {
    static CLIENT: LazyLock<Client> = LazyLock::new(|| {
        Client::from_ifrt(FakeClient::new(FakeOptions {
            num_devices: 8,
            ..FakeOptions::default()
        }))
    });
    let Ok(exported) = Exported::from_bytes(data) else {
        return;
    };
    let mut next = Some(exported);
    // A function may hold its gradient, which may hold its own.
    while let Some(function) = next {
        assert_eq!(function.in_tree().num_leaves(), function.in_avals().len());
        assert_eq!(function.out_tree().num_leaves(), function.out_avals().len());
        let words = format!(
            "{function:?} {} {} {:?}",
            function.in_tree(),
            function.out_tree(),
            function.platforms()
        );
        assert!(!words.is_empty());
        // The fake runs nothing that JAX has written, but everything before that is done.
        drop(function.compile(&CLIENT));
        next = function.vjp();
    }
}

/// An archive of arrays: what is read is the same once more after it was written.
///
/// # Panics
/// If a promise is broken.
pub fn npz_archive(data: &[u8]) {
    let Ok(arrays) = npz::read(data.to_vec()) else {
        return;
    };
    // Names may be longer than what is written back allows, with the ending that is added.
    if let Ok(written) = npz::write(arrays.clone()) {
        assert_eq!(npz::read(written).as_ref(), Ok(&arrays));
    }
}

/// A file of weights: what is read is the same once more after it was written.
///
/// # Panics
/// If a promise is broken.
pub fn safetensors_file(data: &[u8]) {
    let Ok(arrays) = safetensors::read(data.to_vec()) else {
        return;
    };
    let written = safetensors::write(arrays.clone());
    let again = written.and_then(safetensors::read);
    assert_eq!(again, Ok(arrays));
}
