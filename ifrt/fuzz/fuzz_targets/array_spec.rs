//! Feeds arbitrary bytes to `ifrt::fuzzing::array_spec`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ifrt::fuzzing::array_spec(data));
