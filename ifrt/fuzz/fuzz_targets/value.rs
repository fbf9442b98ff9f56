//! Feeds arbitrary bytes to `ifrt::fuzzing::value`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ifrt::fuzzing::value(data));
