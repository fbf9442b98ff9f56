//! Feeds arbitrary bytes to `jax_api::fuzzing::safetensors_file`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jax_api::fuzzing::safetensors_file(data));
