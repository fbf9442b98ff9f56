//! Feeds arbitrary bytes to `ifrt::fuzzing::program`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ifrt::fuzzing::program(data));
