//! Feeds arbitrary bytes to `ifrt::fuzzing::status`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ifrt::fuzzing::status(data));
