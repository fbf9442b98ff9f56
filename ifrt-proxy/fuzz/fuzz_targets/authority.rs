//! Feeds arbitrary bytes to `ifrt_proxy::server::fuzzing::authority`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ifrt_proxy::server::fuzzing::authority(data));
