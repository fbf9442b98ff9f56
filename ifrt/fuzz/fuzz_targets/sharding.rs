//! Feeds arbitrary bytes to `ifrt::fuzzing::sharding`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ifrt::fuzzing::sharding(data));
