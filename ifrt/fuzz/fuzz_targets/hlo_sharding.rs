//! Feeds arbitrary bytes to `ifrt::fuzzing::hlo_sharding`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ifrt::fuzzing::hlo_sharding(data));
