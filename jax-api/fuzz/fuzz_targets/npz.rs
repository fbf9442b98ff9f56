//! Feeds arbitrary bytes to `jax_api::fuzzing::npz_archive`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jax_api::fuzzing::npz_archive(data));
